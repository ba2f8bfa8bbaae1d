"""The metrics of clusters: what is held of them, how old it is, whose topology wishes are wrong."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from topodns.cluster.policy import InvalidPolicy
from topodns.clusters import Cluster, ClusterMaker
from topodns.edge.manifests import ManifestSource
from topodns.edge.metrics import Published, Reading
from topodns.published_api import api_readings, request_readings

MAX_NAMED = 100  # Services named in a metric; the log names them all

Clusters = Callable[[], Iterable[Cluster]]
Rows = Iterable[tuple[tuple[str, ...], float]]


def cluster_readings(clusters: Clusters, maker: ClusterMaker) -> list[Published]:
    """Everything that is read at scrape time of these clusters, and of what their maker counts for all there were."""
    return [*_states(clusters, maker), *api_readings(clusters), *request_readings(maker.requests)]


def _states(clusters: Clusters, maker: ClusterMaker) -> Iterator[Reading]:
    yield Reading("topodns_state_objects", "Objects held.", "gauge", ("kind",), lambda: _objects(clusters))
    yield Reading(
        "topodns_state_synced", "Whether every watched kind is known.", "gauge", (), lambda: [((), _synced(clusters))]
    )
    yield Reading(
        "topodns_policies",
        "Services with a topology policy.",
        "gauge",
        ("source", "valid"),
        lambda: _policies(clusters),
    )
    yield Reading(
        "topodns_policy_invalid",
        f"Services whose topology policy breaks a rule; at most {MAX_NAMED} of them.",
        "gauge",
        ("namespace", "service"),
        lambda: _invalid(clusters),
    )
    yield Reading(
        "topodns_service_events",
        "Warning Events on Services, by what became of them.",
        "counter",
        ("outcome",),
        lambda: [((outcome,), times) for outcome, times in maker.service_events.items()],
    )
    yield Reading(
        "topodns_state_age_seconds",
        "Time since the source was last heard of, or could be read.",
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
        "Changes of manifests taken in.",
        "counter",
        (),
        lambda: _of_sources(clusters, "reloads"),
    )


def _of_sources(clusters: Clusters, attribute: str) -> Rows:
    sources = [cluster.source for cluster in clusters() if isinstance(cluster.source, ManifestSource)]
    values: list[float] = [getattr(source, attribute) for source in sources]
    return [((), sum(values))] if values else []


def _age(clusters: Clusters) -> Rows:
    ages = [cluster.source.age for cluster in clusters()]
    return [((), max(ages))] if ages else []


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
        for policy in cluster.state.policies().values():
            counts[(policy.source.value, str(not isinstance(policy, InvalidPolicy)).lower())] += 1
    return counts.items()


def _invalid(clusters: Clusters) -> Rows:
    names = [
        (key.namespace, key.name)
        for cluster in clusters()
        for key, policy in cluster.state.policies().items()
        if isinstance(policy, InvalidPolicy)
    ]
    return [(name, 1.0) for name in sorted(names)[:MAX_NAMED]]
