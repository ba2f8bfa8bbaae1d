"""The metrics of `topodns locator`."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from topodns.cluster.model import ObjectKey
from topodns.locator.objects import KINDS
from topodns.locator.pending import PendingWrites
from topodns.locator.projection import Projection
from topodns.metrics.registry import Published, Reading

RESULTS: Final = ("applied", "deleted", "conflict", "refused", "failed")
REASONS: Final = ("rbac", "crd", "refused", "api")


@dataclass(slots=True)
class LocatorCounts:
    """Counters of the controller, over all its terms as leader; `follow` sets the present term, for gauges."""

    writes: Counter[tuple[str, str]] = field(default_factory=Counter)  # by word of the kind, and result
    restarts: Counter[str] = field(default_factory=Counter)  # by collection: watches that ended in a fault
    refusals: Counter[str] = field(default_factory=Counter)  # by one of REASONS
    terms: int = 0  # how often it became the leader
    is_leader: Callable[[], bool] = lambda: False
    _left_out: dict[ObjectKey, int] = field(default_factory=dict)
    _term: tuple[PendingWrites, Projection, Callable[[], float]] | None = None

    def follow(self, pending: PendingWrites, projection: Projection, now: Callable[[], float]) -> None:
        self._term = (pending, projection, now)
        self._left_out.clear()

    def unfollow(self) -> None:
        self._term = None
        self._left_out.clear()

    def set_left_out(self, key: ObjectKey, addresses: int) -> bool:
        """Record how many addresses a locator has no room for; returns whether it had room for all before."""
        before = self._left_out.pop(key, 0)
        if addresses:
            self._left_out[key] = addresses
        return bool(addresses) and not before

    def readings(self, kind: str) -> Iterator[Published]:
        """All metrics; `kind` is the word of the kind that is written."""
        yield Reading(
            "topodns_locator_writes",
            "Writes of locators, by kind and result.",
            "counter",
            ("kind", "result"),
            lambda: [((kind, result), float(self.writes[kind, result])) for result in RESULTS],
        )
        yield _gauge("pending", "Locators that differ from what they should be.", lambda: float(self._pending()))
        yield _gauge("lag_seconds", "The age of the oldest change that is not written.", self._lag)
        yield _gauge("leader", "This replica writes.", lambda: float(self.is_leader()))
        yield Reading(
            "topodns_locator_terms",
            "Times that this replica became the leader.",
            "counter",
            (),
            lambda: [((), float(self.terms))],
        )
        yield Reading(
            "topodns_locator_watch_restarts",
            "Watches that ended in a fault, after which the collection is listed anew.",
            "counter",
            ("resource",),
            lambda: [((resource,), float(self.restarts[resource])) for resource in _watched(kind)],
        )
        yield Reading(
            "topodns_locator_refusals",
            "Requests without success, by reason.",
            "counter",
            ("reason",),
            lambda: [((reason,), float(self.refusals[reason])) for reason in REASONS],
        )
        yield Reading(
            "topodns_locator_objects",
            "Objects that the leader knows.",
            "gauge",
            ("resource",),
            lambda: self._objects(kind),
        )
        yield _gauge(
            "addresses_left_out",
            "Addresses that locators have no room for.",
            lambda: float(sum(self._left_out.values())),
        )

    def _pending(self) -> int:
        return len(self._term[0]) if self._term is not None else 0

    def _lag(self) -> float:
        return self._term[0].lag(self._term[2]()) if self._term is not None else 0.0

    def _objects(self, kind: str) -> list[tuple[tuple[str, ...], float]]:
        if self._term is None:
            return []
        pending, projection, _ = self._term
        known = {"pods": projection.pods, "nodes": projection.nodes, KINDS[kind].plural: pending.stored}
        return [((resource,), float(known[resource])) for resource in _watched(kind)]


def _watched(kind: str) -> tuple[str, ...]:
    return ("pods", KINDS[kind].plural) if KINDS[kind].namespaced else ("nodes", "pods", KINDS[kind].plural)


def _gauge(name: str, documentation: str, read: Callable[[], float]) -> Reading:
    return Reading(f"topodns_locator_{name}", documentation, "gauge", (), lambda: [((), read())])
