"""Where all reflectors of a cluster put what they learn: into its state, and the facts it touched to who must know."""

import time
from collections.abc import Callable, Iterator, Set
from typing import Final

from topodns.cluster.facts import Fact
from topodns.cluster.model import ClusterObject, EndpointSlice, Kind, ObjectKey, Replaced, Upserted
from topodns.cluster.slice_table import owner_of
from topodns.cluster.state import ClusterState
from topodns.cluster.watch import Event
from topodns.edge.api_source.programming_latency import Latencies, service_kind
from topodns.edge.api_source.removal_hold import RemovalHold

_SERVICE_KINDS: Final = ("cluster_ip", "headless_with_selector")


class Intake:
    """The one writer of `state`. `publish` is told what was touched in the same turn of the loop."""

    def __init__(
        self,
        state: ClusterState,
        publish: Callable[[frozenset[Fact]], None],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.state = state
        self.latencies = {kind: Latencies() for kind in _SERVICE_KINDS}
        self._publish = publish
        self._wall_clock = wall_clock
        self._hold = RemovalHold(state, self._apply)

    def take(self, kind: Kind, event: Event) -> None:
        """An object changed."""
        if kind == "EndpointSlice":
            self._hold.take(event)
        else:
            self._apply(event)

    def replace(self, kind: Kind, objects: tuple[ClusterObject, ...], news: Set[ObjectKey]) -> Iterator[int]:
        """All objects of a kind were listed; those under the keys of `news` have changed since.

        A little with each step, which tells how many objects were not as they were held.
        """
        self._hold.flush()
        for step in self.state.replace(Replaced(kind, objects), int(self._wall_clock()), news):
            if step.facts:
                self._publish(step.facts)
            yield step.differing

    def do_without(self, kind: Kind) -> None:
        """The kind may not be listed; what answers do not need it for goes on."""
        facts = self.state.do_without(kind)
        if facts:
            self._publish(facts)

    def _apply(self, event: Event) -> None:
        facts = self.state.apply(event.change, int(self._wall_clock()))
        if facts:
            self._publish(facts)
        if event.triggered is not None and isinstance(event.change, Upserted):
            self._measure(event.change.object, event.triggered)

    def _measure(self, changed: ClusterObject, triggered: float) -> None:
        service = self.state.service(*owner_of(changed)) if isinstance(changed, EndpointSlice) else None
        if service is not None:
            self.latencies[service_kind(service)].observe(max(0.0, self._wall_clock() - triggered))
