"""The metrics of the connections to API servers: what was asked, taken in and repaired, and what is denied."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Final

from topodns.clusters import Cluster
from topodns.edge.api_source import BUCKETS, ApiSource, Latencies, Progress
from topodns.edge.kube_api import RequestTally
from topodns.edge.kube_api.tally import BUCKETS as REQUEST_BUCKETS
from topodns.edge.metrics import Distributions, Published, Reading

Clusters = Callable[[], Iterable[Cluster]]
Rows = Iterable[tuple[tuple[str, ...], float]]

_COUNTERS: Final = (
    ("topodns_relists", "Whole lists taken in after the first.", "relists"),
    ("topodns_resync_repairs", "Objects that a list showed to be other than held: events were lost.", "repairs"),
    ("topodns_decode_errors", "Objects that could not be read.", "decode_errors"),
    ("topodns_watch_events", "Changes taken in.", "events"),
)


def api_readings(clusters: Clusters) -> Iterator[Published]:
    """What is read of the clusters that there are at scrape time."""
    for name, documentation, attribute in _COUNTERS:
        yield Reading(name, documentation, "counter", ("kind",), _summed(clusters, attribute))
    yield Reading(
        "topodns_watch_failing",
        "Kinds whose last request failed; status 0 is no response.",
        "gauge",
        ("kind", "verb", "status"),
        lambda: [(labels, 1.0) for labels in _failing(clusters)],
    )
    yield Distributions(
        "coredns_kubernetes_dns_programming_duration_seconds",
        "Time from a change of a Service's endpoints in the cluster to its being served.",
        ("service_kind",),
        BUCKETS,
        lambda: _latencies(clusters),
    )


def request_readings(tally: RequestTally) -> Iterator[Published]:
    """The same of all requests to API servers, under client-go's names as CoreDNS has them."""
    yield Reading(
        "coredns_kubernetes_rest_client_requests",
        "Requests to API servers.",
        "counter",
        ("code", "method", "host"),
        tally.results.items,
    )
    yield Distributions(
        "coredns_kubernetes_rest_client_request_duration_seconds",
        "Time from a request to an API server to the head of its response.",
        ("verb", "host"),
        REQUEST_BUCKETS,
        lambda: [(labels, found.slots, found.seconds) for labels, found in tally.durations.items()],
    )


def _sources(clusters: Clusters) -> Iterator[ApiSource]:
    return (cluster.source for cluster in clusters() if isinstance(cluster.source, ApiSource))


def _progress(clusters: Clusters) -> Iterator[Progress]:
    return (progress for source in _sources(clusters) for progress in source.progress)


def _summed(clusters: Clusters, attribute: str) -> Callable[[], Rows]:
    value_of = attrgetter(attribute)

    def read() -> Rows:
        sums: Counter[tuple[str, ...]] = Counter()
        for progress in _progress(clusters):
            sums[(progress.resource.kind,)] += value_of(progress)
        return sums.items()

    return read


def _failing(clusters: Clusters) -> set[tuple[str, str, str]]:
    return {
        (progress.resource.kind, progress.trouble.verb, str(progress.trouble.status))
        for progress in _progress(clusters)
        if progress.trouble is not None
    }


def _latencies(clusters: Clusters) -> Iterator[tuple[tuple[str, ...], list[int], float]]:
    merged: dict[str, Latencies] = {}
    for source in _sources(clusters):
        for kind, latencies in source.latencies.items():
            merged.setdefault(kind, Latencies()).add(latencies)
    for kind, latencies in merged.items():
        yield (kind,), latencies.slots, latencies.seconds
