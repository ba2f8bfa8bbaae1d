"""The gauges and counters that are not per query: the process, reloads, clusters, sockets."""

import logging
import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from topodns import __version__
from topodns.assembly import Generation
from topodns.cluster.policy import InvalidPolicy
from topodns.clusters import Cluster
from topodns.counted import Counted, view_label
from topodns.dns.names import name_text
from topodns.edge.health_probe import BUCKETS, HealthProbe
from topodns.edge.kube_api import RequestTally
from topodns.edge.manifests import ManifestSource
from topodns.edge.metrics import Distribution, Published, Reading
from topodns.edge.mmsg import DatagramCounts
from topodns.edge.tcp import TcpCounts
from topodns.listeners import Listeners
from topodns.published_api import api_readings, request_readings
from topodns.published_forward import forward_readings
from topodns.published_resolver import resolver_readings
from topodns.resolve.tally import server_label
from topodns.workings import Workings

log = logging.getLogger(__name__)

MAX_NAMED = 100  # Services named in a metric; the log names them all

Rows = Iterable[tuple[tuple[str, ...], float]]


@dataclass(eq=False)
class Events:
    """What happened to the process, for its metrics. `generation` is the one in charge."""

    requests: RequestTally = field(default_factory=RequestTally)
    service_events: Counter[str] = field(default_factory=Counter)
    counted: Counted = field(default_factory=Counted)
    generation: Generation | None = None
    failed_reloads: int = 0
    health: HealthProbe = field(default_factory=HealthProbe)

    def reload_failed(self, problem: str) -> None:
        """A new Corefile cannot be served; the old one stays."""
        self.failed_reloads += 1
        log.error("plugin/reload: %s; the Corefile before it stays in force", problem)

    def clusters(self) -> list[Cluster]:
        return self.generation.clusters if self.generation is not None else []

    def workings(self) -> list[Workings]:
        return self.generation.workings if self.generation is not None else []


def readings(listeners: Listeners, events: Events) -> list[Published]:
    """Everything that is read at scrape time."""
    sources = [*_clusters(events), *api_readings(events.clusters), *request_readings(events.requests)]
    resolver = [
        *forward_readings(events.counted),
        *resolver_readings(events.counted, events.workings, listeners.tallies),
    ]
    return [*_process(events), *_health(events.health), *sources, *_sockets(listeners, events), *resolver]


def _process(events: Events) -> Iterator[Reading]:
    build = (__version__, "", f"python{platform.python_version()}")
    yield Reading(
        "coredns_build_info",
        "The version of this program; its language stands under goversion.",
        "gauge",
        ("version", "revision", "goversion"),
        lambda: [(build, 1)],
    )
    yield Reading(
        "coredns_plugin_enabled",
        "The directives of each server block.",
        "gauge",
        ("server", "zone", "view", "name"),
        lambda: _enabled(events),
    )
    yield Reading(
        "coredns_reload_failed", "Corefiles refused since start.", "counter", (), lambda: [((), events.failed_reloads)]
    )
    yield Reading(
        "coredns_reload_version_info",
        "The digest of the Corefile in force.",
        "gauge",
        ("hash", "value"),
        lambda: [(("sha512", events.generation.settings.digest), 1)] if events.generation is not None else [],
    )


def _health(probe: HealthProbe) -> Iterator[Published]:
    yield Distribution(
        "coredns_health_request_duration_seconds",
        "Time that our own /health took to answer us.",
        BUCKETS,
        lambda: (probe.slots, probe.seconds),
    )
    yield Reading(
        "coredns_health_request_failures",
        "Our own /health did not answer.",
        "counter",
        (),
        lambda: [((), probe.failures)],
    )


def _allowed(listeners: Listeners, events: Events) -> Rows:
    """Queries that `acl` let through: all of the blocks that have it, but those that it answered itself."""
    blocks = events.generation.settings.blocks if events.generation is not None else ()
    guarded = {(name_text(key.origin), view_label(block)) for block in blocks if block.acl for key in block.keys}
    counts: Counter[tuple[str, ...]] = Counter()
    for tally in listeners.tallies():
        for kind, times in tally.kinds():
            if (kind.origin, kind.view) in guarded and kind.plugin != "acl":
                counts[(tally.server, kind.view)] += times
    return counts.items()


def _enabled(events: Events) -> Rows:
    rows: dict[tuple[str, ...], float] = {}
    for block in events.generation.settings.blocks if events.generation is not None else ():
        for key in block.keys:
            for host in block.bind or ("",):
                for name in block.directives:
                    rows[(server_label((host, key.port)), name_text(key.origin), view_label(block), name)] = 1
    return rows.items()


def _clusters(events: Events) -> Iterator[Reading]:
    yield Reading("topodns_state_objects", "Objects held.", "gauge", ("kind",), lambda: _objects(events))
    yield Reading(
        "topodns_state_synced", "Whether every watched kind is known.", "gauge", (), lambda: [((), _synced(events))]
    )
    yield Reading(
        "topodns_policies", "Services with a topology policy.", "gauge", ("source", "valid"), lambda: _policies(events)
    )
    yield Reading(
        "topodns_policy_invalid",
        f"Services whose topology policy breaks a rule; at most {MAX_NAMED} of them.",
        "gauge",
        ("namespace", "service"),
        lambda: _invalid(events),
    )
    yield Reading(
        "topodns_service_events",
        "Warning Events on Services, by what became of them.",
        "counter",
        ("outcome",),
        lambda: [((outcome,), times) for outcome, times in events.service_events.items()],
    )
    yield Reading(
        "topodns_state_age_seconds",
        "Time since the source was last heard of, or could be read.",
        "gauge",
        (),
        lambda: _age(events),
    )
    for name, documentation, attribute in (
        ("topodns_manifest_files_bad", "Manifest files that keep their last good state.", "files_bad"),
        ("topodns_manifest_objects_skipped", "Malformed objects in manifests.", "objects_skipped"),
    ):
        yield Reading(name, documentation, "gauge", (), partial(_of_sources, events, attribute))
    yield Reading(
        "topodns_manifest_reloads",
        "Changes of manifests taken in.",
        "counter",
        (),
        lambda: _of_sources(events, "reloads"),
    )


def _of_sources(events: Events, attribute: str) -> Rows:
    sources = [cluster.source for cluster in events.clusters() if isinstance(cluster.source, ManifestSource)]
    values: list[float] = [getattr(source, attribute) for source in sources]
    return [((), sum(values))] if values else []


def _age(events: Events) -> Rows:
    ages = [cluster.source.age for cluster in events.clusters()]
    return [((), max(ages))] if ages else []


def _objects(events: Events) -> Rows:
    counts: Counter[tuple[str, ...]] = Counter()
    for cluster in events.clusters():
        held = cluster.state.counts()
        for kind in cluster.state.needed:
            counts[(kind,)] += held[kind]
    return counts.items()


def _synced(events: Events) -> float:
    return float(all(cluster.state.synced for cluster in events.clusters()))


def _policies(events: Events) -> Rows:
    counts: Counter[tuple[str, ...]] = Counter()
    for cluster in events.clusters():
        for policy in cluster.state.policies().values():
            counts[(policy.source.value, str(not isinstance(policy, InvalidPolicy)).lower())] += 1
    return counts.items()


def _invalid(events: Events) -> Rows:
    names = [
        (key.namespace, key.name)
        for cluster in events.clusters()
        for key, policy in cluster.state.policies().items()
        if isinstance(policy, InvalidPolicy)
    ]
    return [(name, 1.0) for name in sorted(names)[:MAX_NAMED]]


def _sockets(listeners: Listeners, events: Events) -> Iterator[Reading]:
    yield Reading(
        "coredns_acl_allowed_requests",
        "Queries that acl let through.",
        "counter",
        ("server", "view"),
        lambda: _allowed(listeners, events),
    )
    yield Reading(
        "topodns_hot_entries", "Ready-made answers held.", "gauge", (), lambda: [((), listeners.hot_entries())]
    )
    yield Reading(
        "topodns_datagrams_dropped",
        "Datagrams not answered, and why.",
        "counter",
        ("server", "reason"),
        lambda: _dropped(listeners),
    )
    yield Reading(
        "topodns_tcp_connections_closed",
        "TCP connections that were closed on the client, and why.",
        "counter",
        ("server", "reason"),
        lambda: _closed(listeners),
    )


def _dropped(listeners: Listeners) -> Rows:
    rows: Counter[tuple[str, ...]] = Counter()
    for server, counts in listeners.counts():
        if isinstance(counts, DatagramCounts):
            rows[(server, "oversize")] += counts.dropped_oversize
            rows[(server, "port_zero")] += counts.dropped_port_zero
            rows[(server, "send_buffer_full")] += counts.dropped_full
            rows[(server, "send_failed")] += counts.failed_sends
    return rows.items()


def _closed(listeners: Listeners) -> Rows:
    rows: Counter[tuple[str, ...]] = Counter()
    for server, counts in listeners.counts():
        if isinstance(counts, TcpCounts):
            rows[(server, "limit")] += counts.refused
            rows[(server, "deadline")] += counts.timed_out
            rows[(server, "memory")] += counts.over_memory
    return rows.items()
