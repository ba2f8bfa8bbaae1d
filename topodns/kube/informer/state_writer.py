"""Applies lists and watch events to the cluster state, some of them a moment later, and measures their latency."""

from collections.abc import Iterator, Set
from functools import partial

from topodns.cluster.decode.stream import Event
from topodns.cluster.model import ClusterObject, Kind, ObjectKey, Replaced, Upserted
from topodns.cluster.publishing_state import PublishingState
from topodns.kube.informer.programming_latency import ProgrammingLatency
from topodns.kube.informer.removal_hold import RemovalHold


class StateWriter:
    """Writes what the reflectors of one API server receive."""

    def __init__(self, published: PublishingState) -> None:
        self.state = published.state
        self.published = published
        self.latency = ProgrammingLatency()
        self._hold = RemovalHold(published.state, self._apply_now)

    def apply(self, kind: Kind, event: Event) -> None:
        """Apply one watch event; one of an EndpointSlice is perhaps held back for a moment (`removal_hold`)."""
        if kind == "EndpointSlice":
            self._hold.submit(event)
        else:
            self._apply_now(event)

    def replace(self, kind: Kind, objects: tuple[ClusterObject, ...], newer: Set[ObjectKey]) -> Iterator[int]:
        """`PublishingState.replace`, after the events that are held back."""
        self._hold.flush()
        yield from self.published.replace(Replaced(kind, objects), newer)

    def do_without(self, kind: Kind) -> None:
        """As `PublishingState.do_without`."""
        self.published.do_without(kind)

    def _apply_now(self, event: Event) -> None:
        self.published.apply(event.change)
        if event.triggered is not None and isinstance(event.change, Upserted):
            changed, triggered = event.change.object, event.triggered
            if self.state.journal is None:
                self._observe(changed, triggered)
            else:
                self.state.journal.when_copied(partial(self._observe, changed, triggered))

    def _observe(self, changed: ClusterObject, triggered: float) -> None:
        self.latency.observe(changed, triggered, self.state, self.published.wall_clock())
