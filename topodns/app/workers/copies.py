"""The clusters of a worker: copies of the states of the first process."""

from collections import deque
from collections.abc import Collection, Iterable
from random import Random

from topodns.app.generation import Machine
from topodns.app.workers.messages import ChangeType, StateChange, changes_of
from topodns.cluster.decode.packed import unpack_objects
from topodns.dependency import Fact
from topodns.plugins.kubernetes.clusters import ClusterMaker, Feed, FeedSettings

_NONE: frozenset[Fact] = frozenset()


class CopyMaker(ClusterMaker):
    """Makes clusters with the feeds that `next_numbers` names, in the order of the Corefile.

    The source of such a feed is never started: its state has the changes that the first process sends.
    """

    def __init__(self, machine: Machine, rng: Random) -> None:
        super().__init__(machine.node_name, machine.addresses, "", rng)
        self.next_numbers: deque[int] = deque()
        self.feeds: dict[int, Feed] = {}
        self._chance = rng

    def feed(self, settings: FeedSettings, spare: list[Feed]) -> Feed:
        """The feed of the next number, which is made if it is new."""
        number = self.next_numbers.popleft()
        found = self.feeds.get(number)
        if found is None:
            found = self.feeds[number] = Feed(settings, self._chance)
        return found


class Copies:
    """The states of a worker, by the numbers of their feeds."""

    def __init__(self, machine: Machine, rng: Random) -> None:
        self.maker = CopyMaker(machine, rng)

    def expect(self, numbers: Iterable[int]) -> None:
        """The numbers of the feeds of the generation that is built next."""
        self.maker.next_numbers = deque(numbers)

    def keep_only(self, feeds: Collection[Feed]) -> None:
        """Forget all other feeds."""
        self.maker.feeds = {number: feed for number, feed in self.maker.feeds.items() if feed in feeds}

    def take(self, payload: bytes) -> None:
        """Take the changes of one message; those of feeds that this worker does not have are left out."""
        for change in changes_of(payload):
            feed = self.maker.feeds.get(change.feed)
            if feed is not None:
                feed.published.publish(_take(feed, change))


def _take(feed: Feed, change: StateChange) -> frozenset[Fact]:
    """Take a change into the state, and return the dependencies touched."""
    state = feed.state
    match change.type:
        case ChangeType.COMPLETE:
            return state.complete(change.kind)
        case ChangeType.DENIED:
            return state.do_without(change.kind)
        case ChangeType.SERIAL:
            state.serial = change.wall_seconds
            return _NONE
    upserted, deleted = unpack_objects(change.kind, change.packed)
    listing = change.type is ChangeType.LISTED_OBJECTS
    return state.take_copied(change.kind, upserted, deleted, change.wall_seconds, listing)
