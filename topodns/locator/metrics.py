"""The metrics of `topodns locator`."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from topodns.cluster.model import ObjectKey
from topodns.locator.objects import KINDS
from topodns.locator.store import LocatorStore, resources
from topodns.metrics.registry import Published, Reading

RESULTS: Final = ("applied", "deleted", "conflict", "refused", "failed")
REASONS: Final = ("rbac", "crd", "refused", "api")


@dataclass(slots=True)
class LocatorCounts:
    """Counters of the controller, over all its terms as leader; `follow` sets the present one, for gauges."""

    writes: Counter[tuple[str, str]] = field(default_factory=Counter)  # by word of the kind, and result
    restarts: Counter[str] = field(default_factory=Counter)  # by collection: watches and lists that ended in a fault
    refusals: Counter[str] = field(default_factory=Counter)  # by one of REASONS
    terms: int = 0  # how often it became the leader
    is_leader: Callable[[], bool] = lambda: False
    _left_out: dict[ObjectKey, int] = field(default_factory=dict)
    _term: LocatorStore | None = None

    def follow(self, term: LocatorStore | None) -> None:
        """Read the gauges from the store of this term; None: this replica does not lead."""
        self._term = term
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
        yield _gauge(
            "lag_seconds", "The age of the oldest change that is not written, without those of labels alone.", self._lag
        )
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
            "Watches and lists that ended in a fault.",
            "counter",
            ("resource",),
            lambda: [((each.plural,), float(self.restarts[each.plural])) for each in resources(KINDS[kind])],
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
        return len(self._term.pending) if self._term is not None else 0

    def _lag(self) -> float:
        return self._term.pending.lag(self._term.clock()) if self._term is not None else 0.0

    def _objects(self, kind: str) -> list[tuple[tuple[str, ...], float]]:
        if self._term is None:
            return []
        return [((each.plural,), float(len(self._term.values(each.kind)))) for each in resources(KINDS[kind])]


def _gauge(name: str, documentation: str, read: Callable[[], float]) -> Reading:
    return Reading(f"topodns_locator_{name}", documentation, "gauge", (), lambda: [((), read())])
