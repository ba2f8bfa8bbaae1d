"""Misses of the last minutes by Service, from the query counters, which only grow: a ring of earlier totals."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Final

from topodns.query.counters import QueryCounters

EVERY: Final = 15.0  # seconds between two samples
MINUTES: Final = 5
_SAMPLES: Final = round(MINUTES * 60 / EVERY) + 1


def totals_of(all_counters: Iterable[QueryCounters]) -> tuple[Counter[str], Counter[str]]:
    """(misses by Service, queries of unlocated clients by source prefix) since the start, as `LabelLimiters` names
    them: at most 101 values each.
    """
    misses: Counter[str] = Counter()
    prefixes: Counter[str] = Counter()
    for socket_counters in all_counters:
        for kind, times in socket_counters.kinds():
            if kind.missed:
                misses[kind.missed] += times
            if kind.prefix:
                prefixes[kind.prefix] += times
    return misses, prefixes


class RecentCounts:
    """Growth of totals over the last MINUTES; of a process that started later, since its start."""

    def __init__(self) -> None:
        self._samples: deque[Counter[str]] = deque([Counter()], maxlen=_SAMPLES)

    def sample(self, totals: Counter[str]) -> None:
        """Keep the totals of now; to be called once in EVERY."""
        self._samples.append(totals)

    def recent(self, totals: Counter[str]) -> Mapping[str, int]:
        """The growth of each total since the oldest sample, without totals that did not grow."""
        return totals - self._samples[0]
