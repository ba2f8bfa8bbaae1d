"""Figures over rounds: medians, spreads, and ratios within a round, without measurements that were disturbed."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Generic, NamedTuple, TypeVar

MAX_TAKEN: Final = 0.05  # of the time in which it was measured, for which a server may have waited for its core

K = TypeVar("K")


class Reading(NamedTuple):
    """One measurement: microseconds of CPU for each answer; whether other programs disturbed it."""

    cpu: float
    disturbed: bool = False


@dataclass
class Figures(Generic[K]):
    """Readings by row and server, each of a round. `keep_all`: also those that were disturbed."""

    keep_all: bool = False
    _kept: defaultdict[tuple[K, str], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    _dropped: defaultdict[tuple[K, str], int] = field(default_factory=lambda: defaultdict(int))

    def note(self, row: K, server: str, round_number: int, reading: Reading) -> None:
        if reading.disturbed:
            self._dropped[row, server] += 1
        if self.keep_all or not reading.disturbed:
            self._kept[row, server][round_number] = reading.cpu

    def values(self, row: K, server: str) -> list[float]:
        return list(self._kept.get((row, server), {}).values())

    def ratio(self, row: K, server: str, other: str) -> float | None:
        """The median of the ratios in rounds that have both; None without such a round."""
        own, others = (self._kept.get((row, each), {}) for each in (server, other))
        ratios = [own[number] / others[number] for number in own.keys() & others.keys()]
        return median(ratios) if ratios else None

    def fewest(self) -> int:
        """The smallest number of kept readings that a figure has; 0 also if there are no figures."""
        measured = self._kept.keys() | self._dropped.keys()
        return min((len(self._kept.get(key, {})) for key in measured), default=0)

    @property
    def dropped(self) -> int:
        return sum(self._dropped.values())


class Spread(NamedTuple):
    """The median of a figure, and its least and greatest value."""

    middle: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread | None":
        return cls(median(values), min(values), max(values)) if values else None


class Latency(NamedTuple):
    """Quantiles of the latency and CPU time per answer, in microseconds; the number of queries without an answer."""

    p50: float
    p90: float
    p99: float
    p999: float
    cpu: float
    lost: int


class Changes(NamedTuple):
    """The changes under which a latency is measured: how many a second, and whether of Services that are queried."""

    rate: int
    queried: bool = True

    def __str__(self) -> str:
        return f"{self.rate}" if self.queried else f"{self.rate}, of other Services"


def median_latency(rounds: list[Latency]) -> Latency:
    """Each figure's median over rounds; of the lost queries the sum."""
    p50, p90, p99, p999, cpu, _ = (median(values) for values in zip(*rounds, strict=True))
    return Latency(p50, p90, p99, p999, cpu, sum(one.lost for one in rounds))


def is_disturbed(taken: float, elapsed: float) -> bool:
    """`taken`: seconds of `elapsed` in which a core was another program's, or the hypervisor's."""
    return taken > MAX_TAKEN * elapsed
