"""Copies of the first process's states in workers: the changes of each turn of the loop, snapshots, and the copies.

Objects cross the socket as MessagePack (`cluster.packed_objects`).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING

from topodns.app.workers.messages import ChangeType, MessageType, StateChange, message
from topodns.cluster.known_kinds import Restored
from topodns.cluster.model import ClusterObject, Keyed, Kind
from topodns.cluster.packed_objects import KINDS, batches, pack_objects, unpack_objects
from topodns.dependency import Fact

if TYPE_CHECKING:
    from topodns.cluster.state import ClusterState
    from topodns.plugins.kubernetes.feed import Feed, FeedSettings

_NONE: frozenset[Fact] = frozenset()


class TurnChanges:
    """Collects the changes of one turn of the loop into one message, so that workers take them in one turn, too.

    `send` gets the message; `copied` the actions to call once all workers have acknowledged it.
    """

    def __init__(
        self, send: Callable[[bytes], object], copied: Callable[[Sequence[Callable[[], object]]], object]
    ) -> None:
        self._send = send
        self._copied = copied
        self._changes: list[StateChange] = []
        self._actions: list[Callable[[], object]] = []

    def add(self, change: StateChange) -> None:
        self._schedule()
        self._changes.append(change)

    def when_copied(self, action: Callable[[], object]) -> None:
        self._schedule()
        self._actions.append(action)

    def flush(self) -> None:
        """Send the changes since the last flush as one message, and hand over the actions; nothing if there are none.

        It is called by itself after the turn of the loop in which a change or an action was added.
        """
        changes, self._changes = self._changes, []
        actions, self._actions = self._actions, []
        if changes:
            self._send(message(MessageType.CHANGES, changes))
        if actions:
            self._copied(actions)

    def _schedule(self) -> None:
        if not self._changes and not self._actions:
            asyncio.get_running_loop().call_soon(self.flush)


class FeedJournal:
    """The `cluster.state.Journal` of one feed; `number` is the feed's in messages."""

    def __init__(self, number: int, state: "ClusterState", turn: TurnChanges) -> None:
        self.number = number
        self._state = state
        self._turn = turn

    def taken(self, kind: Kind, changes: Sequence[Keyed], wall_seconds: int) -> None:
        upserted = [new for _, _, new in changes if new is not None]
        deleted = [key for key, _, new in changes if new is None]
        how = ChangeType.LISTED_OBJECTS if self._state.locators.listing else ChangeType.OBJECTS
        self._turn.add(
            StateChange(
                feed=self.number, type=how, kind=kind, wall_seconds=wall_seconds, packed=pack_objects(upserted, deleted)
            )
        )

    def synced(self, kind: Kind, denied: bool) -> None:
        self._turn.add(StateChange(self.number, ChangeType.DENIED if denied else ChangeType.COMPLETE, kind, 0))

    def restored(self, restored: Restored | None) -> None:
        self._turn.add(_restored(self.number, restored))

    def when_copied(self, action: Callable[[], object]) -> None:
        self._turn.when_copied(action)


def _restored(number: int, restored: Restored | None) -> StateChange:
    kinds, unix_time = restored or Restored(frozenset(), 0)
    return StateChange(number, ChangeType.RESTORED, "Namespace", unix_time, restored=tuple(sorted(kinds)))


def snapshot(number: int, state: "ClusterState") -> Iterator[bytes]:
    """The messages from which a worker builds the state of feed `number`, one a step; it may change between two steps.

    Send each message in the turn in which it is made, after all changes so far. Then the copy equals the state once the
    last message and all changes have come, whenever the objects changed: a message has objects as they are in its step,
    so a change sent before it is in it already, and one sent after it replaces the object of the message.
    """
    for kind in KINDS:
        for objects in batches(state, kind):
            yield _listed(number, kind, objects)
    yield _end(number, state)


def _listed(number: int, kind: Kind, objects: Sequence[ClusterObject]) -> bytes:
    change = StateChange(
        feed=number, type=ChangeType.LISTED_OBJECTS, kind=kind, wall_seconds=0, packed=pack_objects(objects)
    )
    return message(MessageType.CHANGES, [change])


def _end(number: int, state: "ClusterState") -> bytes:
    """The message on which kinds count as synced, and on the SOA serial, for which the times of objects are unknown."""
    listed = [kind for kind in sorted(state.known) if not state.is_restored(kind)]
    changes = [StateChange(number, ChangeType.COMPLETE, kind, 0) for kind in listed]
    changes += [StateChange(number, ChangeType.DENIED, kind, 0) for kind in sorted(state.denied)]
    if state.restored is not None:
        changes.append(_restored(number, state.restored))
    changes.append(StateChange(number, ChangeType.SERIAL, "Namespace", state.serial))
    return message(MessageType.CHANGES, changes)


class Copies:
    """The feeds of a worker, by the numbers that the first process has for them.

    The source of such a feed is never started: its state has the changes that the first process sends.
    """

    def __init__(self, rng: Random) -> None:
        self.feeds: dict[int, Feed] = {}
        self._rng = rng
        self._expected: deque[int] = deque()

    def expect(self, numbers: Iterable[int]) -> None:
        """The numbers of the feeds of the generation that is built next, in the order of the Corefile."""
        self._expected = deque(numbers)

    def feed(self, settings: "FeedSettings", _spare: "list[Feed]") -> "Feed":
        """The feed of the next number, which is made if it is new."""
        number = self._expected.popleft()
        found = self.feeds.get(number)
        if found is None:
            # Imported here: without clusters, half of the program is not needed.
            from topodns.plugins.kubernetes.feed import Feed

            found = self.feeds[number] = Feed(settings, self._rng)
        return found

    def keep_only(self, feeds: "Collection[Feed]") -> None:
        """Forget all other feeds."""
        self.feeds = {number: feed for number, feed in self.feeds.items() if feed in feeds}

    def take(self, changes: Iterable[StateChange]) -> None:
        """Take the changes of one message; those of feeds that this worker does not have are left out."""
        for change in changes:
            feed = self.feeds.get(change.feed)
            if feed is not None:
                feed.published.publish(_take(feed.state, change))


def _take(state: "ClusterState", change: StateChange) -> frozenset[Fact]:
    """Take a change into the state, and return the dependencies touched."""
    match change.type:
        case ChangeType.COMPLETE:
            return state.complete(change.kind)
        case ChangeType.DENIED:
            return state.do_without(change.kind)
        case ChangeType.RESTORED:
            kinds = frozenset(change.restored)
            return state.restore(Restored(kinds, change.wall_seconds) if kinds else None)
        case ChangeType.SERIAL:
            state.serial = change.wall_seconds
            return _NONE
    upserted, deleted = unpack_objects(change.kind, change.packed)
    listing = change.type is ChangeType.LISTED_OBJECTS
    return state.take_copied(change.kind, upserted, deleted, change.wall_seconds, listing)
