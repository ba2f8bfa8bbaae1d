"""The only writer of the cluster state: applies lists and watch events."""

import time
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial

from topodns.cluster.decode.stream import Event
from topodns.cluster.model import ClusterObject, Kind, ObjectKey, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact
from topodns.kube.informer.programming_latency import ProgrammingLatency
from topodns.kube.informer.removal_hold import RemovalHold


class StateWriter:
    """Writes `state`.

    Each of `subscribers` (read at every change) is called with the facts that a change touched, if any, in the same
    turn of the loop as the change.
    """

    def __init__(
        self,
        state: ClusterState,
        subscribers: Sequence[Callable[[frozenset[Fact]], object]],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.state = state
        self.latency = ProgrammingLatency()
        self._subscribers = subscribers
        self._wall_clock = wall_clock
        self._hold = RemovalHold(state, self._apply_now)

    def apply(self, kind: Kind, event: Event) -> None:
        """Apply one watch event; one of an EndpointSlice is perhaps held back for a moment (`removal_hold`)."""
        if kind == "EndpointSlice":
            self._hold.submit(event)
        else:
            self._apply_now(event)

    def replace(self, kind: Kind, objects: tuple[ClusterObject, ...], newer: Set[ObjectKey]) -> Iterator[int]:
        """Replace all objects of a kind with a list, except the keys in `newer`, which changed after the list.

        Works in small steps; each yields the number of objects in it that differed from the held ones.
        """
        self._hold.flush()
        for step in self.state.replace(Replaced(kind, objects), int(self._wall_clock()), newer):
            self._publish(step.facts)
            yield step.differing

    def do_without(self, kind: Kind) -> None:
        """Stop waiting for a kind that is denied or missing; answers that do not need it go on."""
        self._publish(self.state.do_without(kind))

    def _apply_now(self, event: Event) -> None:
        self._publish(self.state.apply(event.change, int(self._wall_clock())))
        if event.triggered is not None and isinstance(event.change, Upserted):
            changed, triggered = event.change.object, event.triggered
            if self.state.journal is None:
                self._observe(changed, triggered)
            else:
                self.state.journal.when_copied(partial(self._observe, changed, triggered))

    def _observe(self, changed: ClusterObject, triggered: float) -> None:
        self.latency.observe(changed, triggered, self.state, self._wall_clock())

    def _publish(self, facts: frozenset[Fact]) -> None:
        if facts:
            for subscriber in self._subscribers:
                subscriber(facts)
