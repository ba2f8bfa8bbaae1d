"""Copies of a state in workers: equal to the original after any history, whenever they began."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.corefile_settings import only_block
from tests.support.model_builders import (
    endpoint,
    endpoint_slice,
    namespace,
    node_locator,
    service,
)
from tests.support.random_clusters import KINDS as RANDOM_KINDS
from tests.support.random_clusters import History, histories
from topodns.app.workers.copies import Copies, FeedJournal, TurnChanges, snapshot
from topodns.app.workers.messages import MessageType, WorkerMessage, WorkerMessageReader
from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import ClusterObject, Kind, ObjectKey, Replaced, Upserted, kind_of
from topodns.cluster.packed_objects import KINDS
from topodns.cluster.slices import SliceOwner
from topodns.cluster.state import ClusterState
from topodns.dependency import EVERYTHING, Fact, service_fact
from topodns.plugins.kubernetes.feed import FeedSettings, feed_settings
from topodns.topology.keys import key_reader

DB = ObjectKey("shop", "db")


def settings_of(kubernetes: str = "pods verified", topology: str = "keys annotation") -> FeedSettings:
    block = only_block(f"kubernetes {{\n{kubernetes}\n}}\ntopology {{\n{topology}\n}}")
    return feed_settings(block.settings["kubernetes"], block.settings["topology"])


class Pair:
    """An original and its copy, which begins with `begin_copy`."""

    def __init__(self) -> None:
        given = settings_of()
        self.original = ClusterState(given.needed, key_reader(given.key_sources, given.default_keys))
        self.sent: list[bytes] = []
        self.copied: list[object] = []
        self.turn = TurnChanges(self.sent.append, self.copied.extend)
        self.original.journal = FeedJournal(1, self.original, self.turn)
        self.copies = Copies(Random(0))
        self.copies.expect([1])
        self.feed = self.copies.feed(given, [])
        self.published: list[frozenset[Fact]] = []
        self.feed.subscribe(self.published.append)
        self._steps: Iterator[bytes] = iter(())

    def begin_copy(self) -> None:
        self.turn.flush()
        self.sent.clear()
        self._steps = snapshot(1, self.original)

    def step(self) -> bool:
        """One step of the snapshot. Returns whether there was one."""
        self.turn.flush()
        step = next(self._steps, None)
        if step is not None:
            self.sent.append(step)
        return step is not None

    def deliver(self) -> list[WorkerMessage]:
        """Let the copy take all that was sent."""
        self.turn.flush()
        found = WorkerMessageReader().feed(b"".join(self.sent))
        self.sent.clear()
        for each in found:
            assert each.kind is MessageType.CHANGES
            self.copies.take(each.value)
        return found

    def relist(self, kind: Kind, *objects: ClusterObject) -> None:
        self.original.apply(Replaced(kind, objects), 7)

    def list_all(self, *objects: ClusterObject) -> None:
        for kind in sorted(self.original.needed | set(RANDOM_KINDS)):
            self.relist(kind, *(each for each in objects if kind_of(each) == kind))


def contents(state: ClusterState) -> dict[Kind, dict[tuple[str, str], tuple[ClusterObject | None, object]]]:
    """All objects with their versions."""
    return {
        kind: {key: (held := state.held(kind, key), getattr(held, "version", None)) for key in state.keys(kind)}
        for kind in KINDS
    }


def assert_equal(pair: Pair) -> None:
    original, copy = pair.original, pair.feed.state
    assert contents(copy) == contents(original)
    assert (copy.synced, copy.known, copy.denied) == (original.synced, original.known, original.denied)
    assert copy.serial == original.serial
    assert copy.policies.all() == original.policies.all()
    for key in map(ObjectKey._make, original.keys("Service")):
        assert copy.slice_table.owned.counted(SliceOwner(key)) == original.slice_table.owned.counted(SliceOwner(key))
        assert copy.backends(key).nodes == original.backends(key).nodes
    assert copy.locators.nodes == original.locators.nodes
    assert copy.nodes.pod_cidrs_verified == original.nodes.pod_cidrs_verified


@settings(deadline=None)
@given(histories, st.integers(0, 10), st.integers(0, 10), st.integers(1, 4))
def test_a_copy_is_equal_whenever_it_began(history: History, before: int, first_steps: int, between: int) -> None:
    async def story() -> None:
        pair = Pair()
        start, changes = history
        pair.list_all(*start)
        for change in changes[:before]:
            pair.original.apply(change, 8)
        pair.begin_copy()
        for _ in range(first_steps):
            pair.step()
        for at, change in enumerate(changes[before:]):
            pair.original.apply(change, 9 + at)
            if at % between == 0:
                pair.step()
        while pair.step():
            pass
        pair.deliver()
        assert_equal(pair)

    asyncio.run(story())


def run_story(*objects: ClusterObject) -> Pair:
    """A pair with these objects, whose copy has them all."""
    pair = Pair()
    pair.list_all(*objects)
    pair.begin_copy()
    while pair.step():
        pass
    pair.deliver()
    pair.published.clear()
    return pair


def test_a_copy_is_synced_only_with_the_end_of_its_snapshot() -> None:
    async def story() -> None:
        pair = Pair()
        pair.list_all(namespace("shop"), service("db", "shop"))
        pair.begin_copy()
        while pair.step():
            assert not pair.feed.state.synced
            last = pair.deliver()
        assert len(last) == 1
        assert pair.feed.state.synced
        assert pair.published[-1] == frozenset({EVERYTHING})

    asyncio.run(story())


def test_the_changes_of_a_turn_are_one_message_and_their_facts_are_published() -> None:
    async def story() -> None:
        pair = run_story(service("db", "shop"))
        for name in ("a", "b"):
            slice_ = endpoint_slice("db", endpoint(f"10.0.0.{ord(name)}"), name=f"db-{name}", namespace="shop")
            pair.original.apply(Upserted(slice_), 9)
        assert pair.sent == []
        assert len(pair.deliver()) == 1
        assert service_fact(*DB) in frozenset().union(*pair.published)
        assert [each.name for each in pair.feed.state.slice_table.owned.counted(SliceOwner(DB))] == ["db-a", "db-b"]

    asyncio.run(story())


def test_a_kind_that_is_done_without_is_so_in_the_copy() -> None:
    async def story() -> None:
        pair = Pair()
        for kind in pair.original.needed - {"Pod"}:
            pair.relist(kind)
        pair.begin_copy()
        while pair.step():
            pass
        pair.original.do_without("Pod")
        pair.deliver()
        assert pair.feed.state.denied == {"Pod"}
        assert_equal(pair)
        pair.relist("Pod")
        pair.deliver()
        assert (pair.feed.state.denied, pair.feed.state.synced) == (set(), True)

    asyncio.run(story())


@pytest.mark.parametrize("begins_first", [False, True])
def test_a_state_of_a_snapshot_is_one_in_the_copy(begins_first: bool) -> None:
    async def story() -> None:
        pair = Pair()
        pair.original.apply(Upserted(service("db", "shop")), 7)
        restored = Restored(pair.original.needed, 5)
        if not begins_first:
            pair.original.restore(restored)
        pair.begin_copy()
        while pair.step():
            pass
        if begins_first:
            pair.original.restore(restored)
        pair.deliver()
        assert pair.feed.state.restored == restored
        assert_equal(pair)
        pair.relist("Service")
        pair.deliver()
        assert pair.feed.state.restored == Restored(pair.original.needed - {"Service"}, 5)
        pair.original.restore(None)
        pair.deliver()
        assert pair.feed.state.restored is None
        assert_equal(pair)

    asyncio.run(story())


def test_an_older_version_that_the_original_took_is_in_the_copy() -> None:
    """After etcd was restored, a list may have older versions than those held."""

    async def story() -> None:
        pair = run_story(replace(service("db", "shop"), version=9))
        pair.relist("Service", replace(service("db", "shop", cluster_ips=("10.96.0.7",)), version=3))
        pair.deliver()
        assert_equal(pair)

    asyncio.run(story())


def test_locators_that_came_in_a_list_are_told_apart_from_later_ones() -> None:
    async def story() -> None:
        pair = run_story(node_locator("n0", ("10.0.0.1",)), node_locator("n1", ()))
        pair.original.apply(Upserted(node_locator("n1", ("10.0.0.1",))), 9)
        pair.deliver()
        assert_equal(pair)

    asyncio.run(story())


def test_changes_of_feeds_that_a_worker_does_not_have_are_left_out() -> None:
    async def story() -> None:
        pair = run_story(service("db", "shop"))
        stranger = ClusterState(frozenset())
        stranger.journal = FeedJournal(2, stranger, pair.turn)
        stranger.apply(Upserted(service("other", "shop")), 9)
        pair.deliver()
        assert pair.feed.state.keys("Service") == [DB]

    asyncio.run(story())


@pytest.mark.parametrize("kept", [True, False])
def test_a_generation_keeps_the_copies_that_it_has_in_common_with_the_one_before(kept: bool) -> None:
    copies = Copies(Random(0))
    copies.expect([1])
    first = copies.feed(settings_of(), [])
    copies.expect([1 if kept else 2])
    second = copies.feed(settings_of(), [])
    assert (second is first) == kept
    copies.keep_only([second])
    assert list(copies.feeds.values()) == [second]


def test_actions_wait_for_the_changes_of_their_turn() -> None:
    async def story() -> None:
        pair = run_story(service("db", "shop"))
        pair.original.apply(Upserted(service("new", "shop")), 9)
        assert pair.original.journal is not None
        pair.original.journal.when_copied(list)
        assert (pair.sent, pair.copied) == ([], [])
        pair.turn.flush()
        assert (len(pair.sent), pair.copied) == (1, [list])

    asyncio.run(story())
