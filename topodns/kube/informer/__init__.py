"""Cluster state from an API server: one reflector for each kind that answers need.

Waiting is in `reflector` (for ever), `reader` with `pages` and `watch_run` (a list, a watch), `retry_gate` and `turns`;
what to believe in `ledger`; how changes reach the state in `intake`. The connection is given.
"""

from topodns.edge.api_source.programming_latency import BUCKETS, Latencies
from topodns.edge.api_source.progress import Progress
from topodns.edge.api_source.resources import Resource, needed_kinds, resources
from topodns.edge.api_source.source import ApiSource

__all__ = ["BUCKETS", "ApiSource", "Latencies", "Progress", "Resource", "needed_kinds", "resources"]
