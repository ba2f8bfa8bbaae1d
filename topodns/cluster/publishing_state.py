"""The state of a cluster with its subscribers: sources write through it, and each change is published at once."""

from collections.abc import Callable, Iterator, Sequence, Set

from topodns.cluster.model import Change, Deleted, Kind, ObjectKey, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact

Subscriber = Callable[[frozenset[Fact]], object]
"""Called with the facts (dependencies of answers) that a change touched, at least one."""


class PublishingState:
    """Changes `state` for the sources of a cluster, which change it in no other way.

    Each of `subscribers` (read at every change) is called in the same turn of the event loop as the change, before any
    query is answered. `wall_clock`: seconds since the epoch.
    """

    def __init__(
        self, state: ClusterState, wall_clock: Callable[[], float], subscribers: Sequence[Subscriber] = ()
    ) -> None:
        self.state = state
        self.wall_clock = wall_clock
        self.subscribers = subscribers

    def apply(self, change: Upserted | Deleted) -> None:
        """Apply a change of one object."""
        self.publish(self.state.apply(change, int(self.wall_clock())))

    def replace(self, change: Replaced, newer: Set[ObjectKey] = frozenset()) -> Iterator[int]:
        """Replace all objects of a kind, except the keys in `newer`, which changed after the list was read.

        Works in small steps; each yields the number of objects in it that differed from the held ones.
        """
        for step in self.state.replace(change, int(self.wall_clock()), newer):
            self.publish(step.facts)
            yield step.differing

    def take(self, change: Change) -> Iterator[int]:
        """`apply` or `replace`, by the sort of the change; an object alone is one step."""
        if isinstance(change, Replaced):
            yield from self.replace(change)
        else:
            self.apply(change)
            yield 1

    def do_without(self, kind: Kind) -> None:
        """Stop waiting for a kind that is denied or missing; answers that do not need it go on."""
        self.publish(self.state.do_without(kind))

    def publish(self, facts: frozenset[Fact]) -> None:
        """Call the subscribers with the facts that a change touched, if any.

        For a copy of another state (`cluster.replica`), whose changes come with their own clock.
        """
        if facts:
            for subscriber in self.subscribers:
                subscriber(facts)
