"""Counters and latencies of API server requests, with the labels of CoreDNS's client-go metrics."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from topodns.query.histogram import Histogram

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds, CoreDNS's
NO_RESPONSE: Final = "<error>"  # label `code` where no response came, as in client-go


@dataclass(slots=True)
class RequestCounters:
    """Request counters of the process: `results` by (status, method, host:port), `durations` by (method, host:port)."""

    results: Counter[tuple[str, ...]] = field(default_factory=Counter)
    durations: dict[tuple[str, ...], Histogram] = field(default_factory=dict)

    def count(self, method: str, host: str, code: str, seconds: float) -> None:
        """Count one request. `code`: status or NO_RESPONSE; `seconds`: to the head of the response or the failure."""
        self.results[(code, method, host)] += 1
        self.durations.setdefault((method, host), Histogram(BUCKETS)).observe(seconds)
