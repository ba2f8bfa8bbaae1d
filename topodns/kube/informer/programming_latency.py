"""DNS programming latency, coredns_kubernetes_dns_programming_duration_seconds: from a change of an endpoint until the
answers have it.

The endpoint controller writes the time of the change into an annotation of each EndpointSlice of a Service with a
selector (endpoints.kubernetes.io/last-change-trigger-time).
"""

from collections.abc import Mapping
from typing import Final

from topodns.cluster.model import ClusterObject, EndpointSlice, Service
from topodns.cluster.slices import owner_of
from topodns.cluster.state import ClusterState
from topodns.query.histogram import Histogram

BUCKETS: Final = tuple(0.001 * 2**k for k in range(20))  # seconds; CoreDNS's

_SERVICE_KINDS: Final = ("cluster_ip", "headless_with_selector")


class ProgrammingLatency:
    """The latencies of one cluster, in seconds, by CoreDNS's label `service_kind`."""

    def __init__(self) -> None:
        self.by_kind: Mapping[str, Histogram] = {kind: Histogram(BUCKETS) for kind in _SERVICE_KINDS}

    def observe(self, changed: ClusterObject, triggered: float, state: ClusterState, now: float) -> None:
        """Record the latency of a change that `state` has just got: from `triggered` to `now`, at least 0.

        Both are wall clock, in seconds since the epoch. Only a slice of a known Service is recorded.
        """
        service = state.service(*owner_of(changed)) if isinstance(changed, EndpointSlice) else None
        if service is not None:
            self.by_kind[_kind_of(service)].observe(max(0.0, now - triggered))


def _kind_of(service: Service) -> str:
    return "headless_with_selector" if service.headless else "cluster_ip"
