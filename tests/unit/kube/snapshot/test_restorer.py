"""A snapshot in the state: taken while the API server is away, replaced by its lists, dropped if of another cluster."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support import model_builders as model
from tests.support.api_objects import Object, endpoint_slice, namespace, pod, service
from tests.support.fake_api.server import FakeApi
from tests.support.snapshots import KINDS, UID, snapshot_file, write_snapshot
from tests.support.state_with_fake_api import MANY, WEB, Prepare, Setup, play, until
from topodns.cluster.model import ClusterObject, Kind
from topodns.cluster.packed_objects import batches
from topodns.cluster.publishing_state import RESTORED_STAY
from topodns.dependency import EVERYTHING
from topodns.kube.snapshot.restorer import SnapshotRestorer
from topodns.kube.snapshot.writer import SnapshotFile

WEB_OF_SNAPSHOT: tuple[ClusterObject, ...] = (
    model.namespace("default"),
    model.service("web"),
    model.service("old", cluster_ips=("10.96.0.9",)),
    model.endpoint_slice("web", model.endpoint("10.0.0.1", node="n1")),
)
SYSTEM: Object = namespace("kube-system")
SYSTEM["metadata"]["uid"] = UID
SOON = 60.0  # seconds

Story = Callable[[Setup, SnapshotRestorer, SnapshotFile], Awaitable[None]]


def away(
    story: Story, file: SnapshotFile, *objects: Object, prepare: Prepare = lambda _: None, up: bool = False
) -> None:
    """Play a story that begins while the API server is away, with this snapshot restored."""

    async def restored(setup: Setup) -> None:
        restorer = SnapshotRestorer(file, setup.writes, setup.source)
        comparing = asyncio.create_task(restorer.compare())
        await asyncio.sleep(1)
        await restorer.restore()
        try:
            await story(setup, restorer, file)
        finally:
            comparing.cancel()

    play(restored, SYSTEM, *objects, up=up, prepare=prepare)


def test_a_snapshot_is_the_state_until_the_lists_come(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, age=600)

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        state = setup.state
        assert (state.synced, state.is_covered, state.known) == (False, True, state.needed)
        assert state.restored is not None
        assert state.restored.kinds == state.needed
        assert setup.addresses("web") == {"10.0.0.1"}
        assert frozenset({EVERYTHING}) in setup.published
        assert setup.source.snapshot_age == pytest.approx(600, abs=5)
        await setup.api.open()
        await setup.synced(SOON)
        assert setup.source.snapshot_age is None
        assert setup.cluster_ip("front") == ""
        assert state.held("Service", ("default", "old")) is None
        assert setup.addresses("web") == {"10.0.0.1"}

    away(story, file, *WEB)


def test_an_unchanged_object_of_a_snapshot_stays(tmp_path: Path) -> None:
    listed: list[ClusterObject] = []

    async def before(setup: Setup) -> None:
        await setup.synced()
        listed.extend(each for kind in KINDS for some in batches(setup.state, kind) for each in some)

    play(before, SYSTEM, *WEB)
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *listed)

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        restored = setup.state.held("EndpointSlice", ("default", "web-1"))
        assert restored is not None
        await setup.api.open()
        await setup.synced(SOON)
        assert setup.state.held("EndpointSlice", ("default", "web-1")) is restored

    away(story, file, *WEB)


def test_each_kind_goes_over_when_its_own_list_is_complete(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT)

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        setup.api.deny("endpointslices")
        await setup.api.open()
        await until(lambda: setup.state.unsynced == ("EndpointSlice",), SOON)
        assert setup.state.restored is not None
        assert setup.state.restored.kinds == {"EndpointSlice"}
        assert (setup.state.is_covered, setup.addresses("web")) == (True, {"10.0.0.1"})
        setup.api.heal()
        await setup.synced(SOON)
        assert setup.addresses("web") == {"10.0.0.1"}

    away(story, file, *WEB)


def test_a_nearly_empty_list_after_a_snapshot_must_be_confirmed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    many = [model.service(f"s{number}", cluster_ips=(f"10.96.1.{number}",)) for number in range(150)]
    write_snapshot(tmp_path / "snapshot", model.namespace("default"), *many)

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        setup.api.empty("services")
        await setup.api.open()
        await until(lambda: "it has 0 objects where there were 150; asking again" in caplog.text, SOON)
        assert setup.state.is_restored("Service")
        assert len(setup.state.services) == 150
        await until(lambda: not setup.state.is_restored("Service"), 3.0)
        assert len(setup.state.services) == 0

    away(story, file, *WEB, *MANY)


@pytest.mark.parametrize("streaming", [True, False])
def test_an_older_list_after_a_snapshot_must_be_confirmed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, streaming: bool
) -> None:
    """As of an etcd that was wiped, or restored from a backup, while the snapshot was served."""
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, version="999999")

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        if not streaming:
            setup.api.refuse_watch_list()
        await setup.api.open()
        await until(lambda: "is older than 999999, which was seen before; asking again" in caplog.text, SOON)
        await setup.synced(SOON)
        assert setup.state.held("Service", ("default", "old")) is None

    away(story, file, *WEB)


def test_a_snapshot_of_another_cluster_is_dropped_once_the_api_server_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    written = write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, uid="another", version="999999")

    async def story(setup: Setup, _: SnapshotRestorer, file: SnapshotFile) -> None:
        setup.api.deny("endpointslices")
        setup.api.deny("services")
        await setup.api.open()
        await until(lambda: setup.state.restored is None, SOON)
        assert setup.addresses("web") == set()
        assert not setup.state.services
        await until(lambda: setup.state.unsynced == ("EndpointSlice", "Service"), SOON)
        assert f"is of another cluster: Namespace kube-system has uid another, expected {UID}" in caplog.text
        assert file.counts.refused == {"foreign": 1}
        setup.api.heal()
        await setup.synced(SOON)  # without a list that is judged by the other cluster's resourceVersions
        assert "asking again" not in caplog.text.partition("is of another cluster")[2]
        assert (tmp_path / "snapshot").read_bytes() == written

    away(story, file, *WEB)


def test_a_snapshot_of_another_cluster_is_not_taken_where_the_cluster_is_known(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, uid="another")

    async def story(setup: Setup, _: SnapshotRestorer, file: SnapshotFile) -> None:
        assert setup.source.cluster_uid == UID
        assert (setup.state.restored, file.counts.refused) == (None, {"foreign": 1})

    away(story, file, *WEB, prepare=lambda api: api.deny("services"), up=True)


def test_a_kind_that_is_known_stays_as_it_is(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, model.namespace("gone"))

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        assert setup.state.restored is not None
        assert setup.state.restored.kinds == {"Service"}
        assert ("", "gone") not in setup.state.namespaces
        assert ("default", "old") in setup.state.services

    away(story, file, *WEB, prepare=lambda api: api.deny("services"), up=True)


@pytest.mark.parametrize(
    ("age", "problem"),
    [
        (3700, "is 3700 s old, expected at most 3600 s (max_age)"),
        (-3700, "is of a time 3700 s ahead of the clock, expected at most 3600 s (max_age)"),
    ],
)
def test_a_snapshot_that_is_too_old_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, age: float, problem: str
) -> None:
    file = snapshot_file(tmp_path / "snapshot", max_age=3600)
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, age=age)

    async def story(setup: Setup, _: SnapshotRestorer, file: SnapshotFile) -> None:
        assert (setup.state.restored, file.counts.refused) == (None, {"old": 1})
        assert problem in caplog.text

    away(story, file)


@pytest.mark.parametrize("ahead", [0, 3600])
def test_a_clock_that_was_set_makes_no_snapshot_new(tmp_path: Path, ahead: float) -> None:
    """A time ahead of the clock by an hour counts as an hour ago, and its age grows with the loop's clock."""
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, age=-ahead)

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        assert setup.source.snapshot_age == pytest.approx(ahead, abs=5)
        await asyncio.sleep(7200)
        assert setup.source.snapshot_age == pytest.approx(ahead + 7200, abs=5)

    away(story, file)


@pytest.mark.parametrize(
    ("octets", "reason"),
    [(b"", "damaged"), (b"topodns snapshot\n\0\2", "version"), (b"apiVersion: v1\n", "foreign")],
)
def test_a_file_that_is_no_snapshot_is_refused_and_left(tmp_path: Path, octets: bytes, reason: str) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    (tmp_path / "snapshot").write_bytes(octets)

    async def story(setup: Setup, _: SnapshotRestorer, file: SnapshotFile) -> None:
        assert (setup.state.restored, file.counts.refused) == (None, {reason: 1})
        assert (tmp_path / "snapshot").read_bytes() == octets

    away(story, file)


def test_without_a_file_the_state_stays_unknown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = snapshot_file(tmp_path / "snapshot")

    async def story(setup: Setup, _: SnapshotRestorer, file: SnapshotFile) -> None:
        assert (setup.state.restored, setup.state.is_covered, file.counts.refused) == (None, False, {})
        assert "there is no snapshot" in caplog.text

    away(story, file)


def test_a_directory_in_place_of_the_file_is_no_snapshot(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path)

    async def story(setup: Setup, _: SnapshotRestorer, file: SnapshotFile) -> None:
        assert (setup.state.restored, file.counts.refused) == (None, {"unreadable": 1})

    away(story, file)


def test_objects_that_were_selected_in_another_way_are_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, selection="labelSelector=app=web")

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        assert (setup.state.restored, len(setup.state.services)) == (None, 0)
        assert "it has no kind that is missing; it lacks" in caplog.text

    away(story, file)


def test_a_snapshot_without_a_needed_kind_covers_the_others(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    kinds: list[Kind] = [kind for kind in KINDS if kind != "EndpointSlice"]
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT[:3], kinds=kinds)

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        assert "EndpointSlice" not in setup.state.known
        assert (setup.state.is_covered, len(setup.state.services)) == (False, 2)

    away(story, file)


def test_a_kind_that_was_denied_is_done_without(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    kinds: list[Kind] = [kind for kind in KINDS if kind != "Pod"]
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, kinds=kinds, denied=("Pod",))

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        assert (setup.state.denied, setup.state.is_covered) == ({"Pod"}, True)

    away(story, file)


def test_objects_of_a_kind_that_stays_denied_are_dropped(tmp_path: Path) -> None:
    """And not at once: an API server that has just started may deny everything."""
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, model.pod("web-0", ("10.0.0.1",), node="n1"))

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        assert len(setup.state.pods) == 1
        setup.api.deny("pods")
        await setup.api.open()
        await until(lambda: setup.state.unsynced == ("Pod",), SOON)
        denied_since = setup.now
        await setup.synced(3 * RESTORED_STAY)
        assert setup.now - denied_since > 0.5 * RESTORED_STAY
        assert (setup.state.denied, len(setup.state.pods)) == ({"Pod"}, 0)

    away(story, file, *WEB)


def test_objects_of_a_kind_that_is_denied_for_a_moment_stay(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, model.pod("web-0", ("10.0.0.1",), node="n1"))

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        setup.api.deny("pods")
        await setup.api.open()
        await until(lambda: setup.state.unsynced == ("Pod",), SOON)
        assert (setup.state.denied, len(setup.state.pods)) == (set(), 1)
        setup.api.heal()
        await setup.synced(SOON)
        assert (setup.state.denied, len(setup.state.pods)) == (set(), 1)

    away(story, file, *WEB, pod("web-0", "10.0.0.1", "n1"))


def test_objects_of_every_kind_are_those_of_the_lists_in_the_end(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, model.pod("gone", ("10.0.0.9",), node="n1"))

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        await setup.api.open()
        await setup.synced(SOON)
        assert {name for _, name in setup.state.pods} == {"web-0"}

    away(story, file, *WEB, pod("web-0", "10.0.0.1", "n1"))


def test_the_serial_never_goes_back(tmp_path: Path) -> None:
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT)

    async def story(setup: Setup, _: SnapshotRestorer, __: SnapshotFile) -> None:
        before = setup.state.serial
        assert before > 1_700_000_000
        setup.writes.wall_clock = lambda: before - 3600.0
        await setup.api.open()
        await setup.synced(SOON)
        assert setup.state.serial == before

    away(story, file, *WEB, service("new", cluster_ip="10.96.0.3"), endpoint_slice("new", {}))


def test_while_a_snapshot_is_served_the_log_says_so_each_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    file = snapshot_file(tmp_path / "snapshot")
    write_snapshot(tmp_path / "snapshot", *WEB_OF_SNAPSHOT, age=100)

    async def story(_: Setup, __: SnapshotRestorer, ___: SnapshotFile) -> None:
        await asyncio.sleep(61)
        assert "answering from a snapshot, 159 s old: Namespace (cannot watch" in caplog.text
        assert "not known yet" not in caplog.text

    away(story, file)


def test_only_the_api_server_that_has_the_namespace_names_the_cluster() -> None:
    """A server whose etcd is empty has no kube-system for a moment."""

    async def story(setup: Setup) -> None:
        identifying = asyncio.create_task(setup.source.identify())
        await asyncio.sleep(30)
        assert setup.source.cluster_uid == ""
        setup.api.put(SYSTEM)
        await asyncio.wait_for(identifying, SOON)
        assert setup.source.cluster_uid == UID

    play(story, *WEB, prepare=FakeApi.no_bookmarks)
