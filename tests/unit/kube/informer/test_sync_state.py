"""The resourceVersions of one kind: from where to watch, and how old a list may be."""

from tests.support.model_builders import service
from topodns.cluster.decode.stream import Bookmark, Event
from topodns.cluster.model import Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.cluster.state import ClusterState
from topodns.kube.informer.progress import Progress
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.state_writer import StateWriter
from topodns.kube.informer.sync_state import SyncState

SERVICES = Resource("Service", "services", ("/api/v1/services",))


def sync_state() -> SyncState:
    state = ClusterState(frozenset({"Service"}))
    return SyncState(Progress(SERVICES, 0.0), StateWriter(PublishingState(state, lambda: 1000.0)))


def test_before_any_version_was_seen_a_list_may_be_of_any_age() -> None:
    sync = sync_state()
    assert (sync.version, sync.not_older_than) == (None, {})


def test_a_list_is_not_older_than_the_last_version_seen() -> None:
    sync = sync_state()
    sync.list_applied("7")
    sync.apply(Bookmark("9"))
    assert sync.version == "9"
    assert sync.not_older_than == {"resourceVersion": "9", "resourceVersionMatch": "NotOlderThan"}


def test_an_older_version_never_moves_the_watch_back() -> None:
    sync = sync_state()
    sync.list_applied("9")
    sync.apply(Bookmark("7"))
    assert (sync.version, sync.is_behind("8"), sync.is_behind("9")) == ("9", True, False)


def test_after_a_restore_of_etcd_the_newest_list_counts_whatever_its_version() -> None:
    sync = sync_state()
    sync.list_applied("9")
    sync.forget_version(any_age=True)
    assert (sync.version, sync.not_older_than) == (None, {})
    sync.list_applied("3")
    assert sync.not_older_than["resourceVersion"] == "3"


def test_changes_are_recorded_only_between_the_calls_for_it() -> None:
    sync = sync_state()
    changes = sync.record_changes()
    sync.apply(Event(Upserted(service("db", "shop")), "10"))
    sync.stop_recording(changes)
    sync.apply(Event(Upserted(service("web", "shop")), "11"))
    assert [key.name for key in changes] == ["db"]
