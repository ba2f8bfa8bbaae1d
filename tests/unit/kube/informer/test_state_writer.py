"""Writes to the cluster state, and the subscribers of changes."""

from collections.abc import Sequence

from tests.support.model_builders import service
from topodns.cluster.decode.stream import Event
from topodns.cluster.model import Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact, service_fact
from topodns.kube.informer.state_writer import StateWriter

DB = service("db", "shop")


def writer_of(state: ClusterState) -> tuple[StateWriter, Sequence[frozenset[Fact]]]:
    published: list[frozenset[Fact]] = []
    return StateWriter(state, [published.append], lambda: 1000.0), published


def test_subscribers_get_the_dependencies_that_an_event_touches() -> None:
    writer, published = writer_of(ClusterState(frozenset()))
    writer.apply("Service", Event(Upserted(DB), "1"))
    assert [service_fact("shop", "db") in facts for facts in published] == [True]


def test_an_event_without_a_change_is_not_published() -> None:
    writer, published = writer_of(ClusterState(frozenset()))
    for version in ("1", "2"):
        writer.apply("Service", Event(Upserted(DB), version))
    assert len(published) == 1


def test_a_list_replaces_all_objects_but_those_that_changed_after_it() -> None:
    state = ClusterState(frozenset())
    writer, _ = writer_of(state)
    web = service("web", "shop")
    for one in (DB, web):
        writer.apply("Service", Event(Upserted(one), "1"))
    assert sum(writer.replace("Service", (), frozenset({web.key}))) == 1
    assert list(state.services) == [web.key]
