"""Metrics of clusters: objects held, age of the state, invalid topology keys, requests to API servers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Final

from topodns.cluster.model import InvalidPolicy
from topodns.kube.client.contract import RequestCounters
from topodns.kube.informer.informer import ApiSource
from topodns.kube.informer.progress import Progress
from topodns.kube.informer.state_writer import LATENCY_BUCKETS
from topodns.kube.manifests.source import ManifestSource
from topodns.metrics.registry import Distribution, Published, Reading
from topodns.plugins.kubernetes.clusters import Cluster, ClusterMaker
from topodns.query.histogram import Histogram
from topodns.time_slices import Job

Clusters = Callable[[], Iterable[Cluster]]
Rows = Iterable[tuple[tuple[str, ...], float]]

_COUNTERS: Final = (
    ("topodns_relists", "Whole lists read after the first.", attrgetter("relists")),
    (
        "topodns_resync_repairs",
        "Objects of which a list had another version than the events before it.",
        attrgetter("repairs"),
    ),
    ("topodns_decode_errors", "Objects that could not be read.", attrgetter("decode_errors")),
    ("topodns_watch_events", "Changes read from watches.", attrgetter("events")),
)


def api_readings(clusters: Clusters) -> Iterator[Published]:
    """Metrics of the watches at API servers. `clusters` returns the present clusters; it is called at each scrape."""
    for name, documentation, value_of in _COUNTERS:
        yield Reading(name, documentation, "counter", ("kind",), _summed(clusters, value_of))
    yield Reading(
        "topodns_watch_failing",
        "Kinds whose last request failed; status 0 is no response.",
        "gauge",
        ("kind", "verb", "status"),
        lambda: [(labels, 1.0) for labels in _failing(clusters)],
    )
    yield Distribution(
        "coredns_kubernetes_dns_programming_duration_seconds",
        "Time from a change of a Service's endpoints in the cluster to its being served.",
        ("service_kind",),
        lambda: _latencies(clusters),
    )


def request_readings(socket_counters: RequestCounters) -> Iterator[Published]:
    """Metrics of all requests to API servers, under client-go's names as CoreDNS has them."""
    yield Reading(
        "coredns_kubernetes_rest_client_requests",
        "Requests to API servers.",
        "counter",
        ("code", "method", "host"),
        socket_counters.results.items,
    )
    yield Distribution(
        "coredns_kubernetes_rest_client_request_duration_seconds",
        "Time from a request to an API server to the head of its response.",
        ("verb", "host"),
        socket_counters.durations.items,
    )


def _sources(clusters: Clusters) -> Iterator[ApiSource]:
    return (cluster.source for cluster in clusters() if isinstance(cluster.source, ApiSource))


def _progress(clusters: Clusters) -> Iterator[Progress]:
    return (progress for source in _sources(clusters) for progress in source.progress)


def _summed(clusters: Clusters, value_of: Callable[[Progress], int]) -> Callable[[], Rows]:
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


def _latencies(clusters: Clusters) -> Iterable[tuple[tuple[str, ...], Histogram]]:
    merged: dict[tuple[str, ...], Histogram] = {}
    for source in _sources(clusters):
        for kind, latencies in source.latencies.items():
            merged.setdefault((kind,), Histogram(LATENCY_BUCKETS)).add(latencies)
    return merged.items()


MAX_NAMED = 100  # label values of a metric of Services or slices; the log names all


def cluster_readings(clusters: Clusters, maker: ClusterMaker) -> list[Published]:
    """All metrics of these clusters, read at scrape time, and of the counters of `maker` for all clusters so far."""
    readings = [*_states(clusters, maker), *_snapshots(clusters, maker), *_budgets(clusters), *_locators(clusters)]
    return [*readings, *api_readings(clusters), *request_readings(maker.requests)]


def pod_wait_reading(clusters: Clusters) -> Reading:
    """The waits of queries for the Pod that they are from; a worker of `multisocket` has some, too."""
    return Reading(
        "topodns_pod_waits",
        "Queries by Pods that were not known yet, by the result of the wait.",
        "counter",
        ("outcome",),
        lambda: _pod_waits(clusters),
    )


def _states(clusters: Clusters, maker: ClusterMaker) -> Iterator[Reading]:
    yield Reading("topodns_state_objects", "Objects held.", "gauge", ("kind",), lambda: _objects(clusters))
    yield Reading(
        "topodns_state_synced", "Whether every watched kind is known.", "gauge", (), lambda: [((), _synced(clusters))]
    )
    yield Reading(
        "topodns_policies",
        "Services with topology keys.",
        "gauge",
        ("source", "valid"),
        lambda: _policies(clusters),
    )
    yield Reading(
        "topodns_policy_invalid",
        f"Services whose topology keys break a rule; at most {MAX_NAMED} of them.",
        "gauge",
        ("namespace", "service"),
        lambda: _invalid(clusters),
    )
    yield Reading(
        "topodns_slice_contradictions",
        f"EndpointSlices with a wrong Node for a Pod, which locate no client; at most {MAX_NAMED} of them.",
        "gauge",
        ("namespace", "slice"),
        lambda: _contradicted(clusters),
    )
    yield pod_wait_reading(clusters)
    yield Reading(
        "topodns_service_events",
        "Warning Events on Services, by what became of them.",
        "counter",
        ("outcome",),
        lambda: [((outcome,), times) for outcome, times in maker.service_events.items()],
    )
    yield Reading(
        "topodns_state_age_seconds",
        "Seconds since the last data of the API server, or since all manifests could be read.",
        "gauge",
        (),
        lambda: _age(clusters),
    )
    for name, documentation, attribute in (
        ("topodns_manifest_files_bad", "Manifest files that keep their last good state.", "files_bad"),
        ("topodns_manifest_objects_skipped", "Malformed objects in manifests.", "objects_skipped"),
    ):
        yield Reading(name, documentation, "gauge", (), partial(_of_sources, clusters, attribute))
    yield Reading(
        "topodns_manifest_reloads",
        "Changes of manifests applied.",
        "counter",
        (),
        lambda: _of_sources(clusters, "reloads"),
    )


def _snapshots(clusters: Clusters, maker: ClusterMaker) -> Iterator[Reading]:
    yield Reading(
        "topodns_snapshot_age_seconds",
        "Age of the snapshot that answers are from; absent while they are from the API server's objects.",
        "gauge",
        (),
        lambda: _snapshot_age(clusters),
    )
    yield Reading(
        "topodns_snapshot_writes",
        "Snapshots of a cluster's state, by what became of them.",
        "counter",
        ("outcome",),
        lambda: [((outcome,), times) for outcome, times in maker.snapshots.writes.items()],
    )
    yield Reading(
        "topodns_snapshots_refused",
        "Snapshots that were not used, by the reason.",
        "counter",
        ("reason",),
        lambda: [((reason,), times) for reason, times in maker.snapshots.refused.items()],
    )


def _locators(clusters: Clusters) -> Iterator[Reading]:
    yield Reading(
        "topodns_locator_contradictions",
        "Addresses in NodeLocators and PodLocators that locate no client, by the reason.",
        "gauge",
        ("kind", "reason"),
        lambda: _locator_contradictions(clusters),
    )
    yield Reading(
        "topodns_locator_refused_addresses",
        "Addresses in NodeLocators and PodLocators that no Pod or Node can have, or beyond the limit of their field.",
        "gauge",
        ("kind", "reason"),
        lambda: _refused_addresses(clusters),
    )


def _of_sources(clusters: Clusters, attribute: str) -> Rows:
    sources = [cluster.source for cluster in clusters() if isinstance(cluster.source, ManifestSource)]
    values: list[float] = [getattr(source, attribute) for source in sources]
    return [((), sum(values))] if values else []


def _age(clusters: Clusters) -> Rows:
    ages = [cluster.source.age for cluster in clusters()]
    return [((), max(ages))] if ages else []


def _snapshot_age(clusters: Clusters) -> Rows:
    ages = [source.snapshot_age for source in _sources(clusters)]
    served = [age for age in ages if age is not None]
    return [((), max(served))] if served else []


def _objects(clusters: Clusters) -> Rows:
    counts: Counter[tuple[str, ...]] = Counter()
    for cluster in clusters():
        held = cluster.state.counts()
        for kind in cluster.state.needed:
            counts[(kind,)] += held[kind]
    return counts.items()


def _synced(clusters: Clusters) -> float:
    return float(all(cluster.state.synced for cluster in clusters()))


def _policies(clusters: Clusters) -> Rows:
    counts: Counter[tuple[str, ...]] = Counter()
    for cluster in clusters():
        for policy in cluster.state.policies.all().values():
            counts[(policy.source.value, str(not isinstance(policy, InvalidPolicy)).lower())] += 1
    return counts.items()


def policy_steps(clusters: Clusters) -> Job[None]:
    """Look up the policies before an exposition counts them."""
    for cluster in clusters():
        yield from cluster.state.policies.look_up_steps()


def _invalid(clusters: Clusters) -> Rows:
    names = [
        (key.namespace, key.name)
        for cluster in clusters()
        for key, policy in cluster.state.policies.own.items()  # those that are inherited are valid
        if isinstance(policy, InvalidPolicy)
    ]
    return [(name, 1.0) for name in sorted(names)[:MAX_NAMED]]


def _budgets(clusters: Clusters) -> Iterator[Reading]:
    yield Reading(
        "topodns_left_out_objects",
        f"Objects that are left out, as their namespace has too many octets; of at most {MAX_NAMED} namespaces.",
        "gauge",
        ("namespace", "kind"),
        lambda: _left_out(clusters),
    )
    yield Reading(
        "topodns_objects_left_out",
        "Times that an object was left out, as its namespace had too many octets.",
        "counter",
        ("kind",),
        lambda: _times_left_out(clusters),
    )
    for name, documentation, attribute in (
        ("topodns_state_octets", "Estimated memory of the objects of clusters at API servers.", "octets"),
        ("topodns_state_octets_limit", "Most octets that they may take; beyond it objects are left out.", "limit"),
    ):
        yield Reading(name, documentation, "gauge", (), partial(_of_budgets, clusters, attribute))


def _of_budgets(clusters: Clusters, attribute: str) -> Rows:
    values = [getattr(cluster.feed.budget, attribute) for cluster in clusters() if cluster.feed.arrives_late]
    return [((), sum(values))] if values else []


def _left_out(clusters: Clusters) -> Rows:
    counts: Counter[tuple[str, ...]] = Counter()
    for cluster in clusters():
        counts.update((key.namespace, kind) for kind, key in cluster.state.left_out_that_count())
    named = frozenset(sorted({namespace for namespace, _ in counts})[:MAX_NAMED])
    return [(labels, count) for labels, count in counts.items() if labels[0] in named]


def _times_left_out(clusters: Clusters) -> Rows:
    counts: Counter[tuple[str, ...]] = Counter()
    for cluster in clusters():
        counts.update({(kind,): times for kind, times in cluster.feed.budget.times.items()})
    return counts.items()


def _contradicted(clusters: Clusters) -> Rows:
    names = {(key.namespace, key.name) for cluster in clusters() for key in cluster.feed.contradictions.found()}
    return [(name, 1.0) for name in sorted(names)[:MAX_NAMED]]


def _locator_contradictions(clusters: Clusters) -> Rows:
    counts: Counter[tuple[str, ...]] = Counter()
    for cluster in clusters():
        counts.update(cluster.feed.locator_contradictions.counts())
    return counts.items()


def _refused_addresses(clusters: Clusters) -> Rows:
    counts: Counter[tuple[str, ...]] = Counter()
    for cluster in clusters():
        counts.update(cluster.state.locators.refused())
    return counts.items()


def _pod_waits(clusters: Clusters) -> Rows:
    counts: Counter[tuple[str, ...]] = Counter()
    for cluster in clusters():
        if cluster.pod_wait is not None:
            counts.update({(outcome,): times for outcome, times in cluster.pod_wait.counts.items()})
    return counts.items()
