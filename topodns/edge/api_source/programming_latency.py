"""How long a change of a Service's endpoints took to get here, as CoreDNS measures it.

From the time that the control plane notes on the EndpointSlice it writes: by the clocks of two machines, and with the
one second resolution that the status of a Pod has.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from topodns.cluster.model import Service

BUCKETS: Final = tuple(0.001 * 2**k for k in range(20))  # seconds


@dataclass(slots=True)
class Latencies:
    """Counts per bucket, the last beyond all of them, and the sum in seconds."""

    slots: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0

    def observe(self, seconds: float) -> None:
        self.slots[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def add(self, others: "Latencies") -> None:
        self.slots = [a + b for a, b in zip(self.slots, others.slots, strict=True)]
        self.seconds += others.seconds


def service_kind(service: Service) -> str:
    """CoreDNS's label `service_kind`. Only slices of Services with a selector carry the time."""
    return "headless_with_selector" if service.headless else "cluster_ip"
