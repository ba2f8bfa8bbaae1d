"""Gauges and counters that are not per query: the process, reloads, health, sockets."""

import logging
import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topodns import __version__
from topodns.app.generation import Generation
from topodns.app.listeners import Listeners
from topodns.app.standard_streams import dropped_reading
from topodns.dns.name import name_text
from topodns.metrics.registry import Distribution, Published, Reading
from topodns.net.mmsg import DatagramCounts
from topodns.net.tcp_limits import TcpCounts
from topodns.plugins.health import HealthProbe
from topodns.plugins.setup import BlockSetup
from topodns.query.counters import server_label

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.clusters import Cluster

log = logging.getLogger(__name__)


Rows = Iterable[tuple[tuple[str, ...], float]]


@dataclass(eq=False)
class Events:
    """Events and state of the process, for its metrics. `generation` is the active one."""

    generation: Generation | None = None
    failed_reloads: int = 0
    health: HealthProbe = field(default_factory=HealthProbe)

    def reload_failed(self, problem: str) -> None:
        """Count and log that a new Corefile cannot be served and the old one stays. `problem`: a line an error."""
        self.failed_reloads += 1
        *others, last = problem.split("\n")
        for line in others:
            log.error("plugin/reload: %s", line)
        log.error("plugin/reload: %s; the Corefile before it stays in force", last)

    def clusters(self) -> "list[Cluster]":
        return self.generation.clusters if self.generation is not None else []

    def blocks(self) -> list[BlockSetup]:
        return self.generation.blocks if self.generation is not None else []


def readings_of_the_server(events: Events) -> list[Published]:
    """The metrics that the first process of a server has; plugins and their clusters (`plugins.kubernetes.metrics`)
    have further ones."""
    return [*_process(events), *_health(events.health)]


def _process(events: Events) -> Iterator[Reading]:
    build = (__version__, "", f"python{platform.python_version()}")
    yield Reading(
        "coredns_build_info",
        "The version of this program; goversion is the Python version.",
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
        "Time of this process's requests to its own /health.",
        (),
        lambda: [((), probe.durations)],
    )
    yield Reading(
        "coredns_health_request_failures",
        "Failures of this process's requests to its own /health.",
        "counter",
        (),
        lambda: [((), probe.failures)],
    )


def _enabled(events: Events) -> Rows:
    rows: dict[tuple[str, ...], float] = {}
    for block in events.generation.settings.blocks if events.generation is not None else ():
        for key in block.keys:
            for host in block.bound_hosts:
                for name in block.directives:
                    rows[(server_label(key.at(host)), name_text(key.origin), block.view_name, name)] = 1
    return rows.items()


def readings_of_each_process(listeners: Listeners) -> Iterator[Reading]:
    """The metrics of the packet caches, the sockets of clients and the log, which workers have, too."""
    yield dropped_reading()
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
            rows[(server, "evicted")] += counts.evicted
            rows[(server, "deadline")] += counts.timed_out
            rows[(server, "memory")] += counts.over_memory
            rows[(server, "tls")] += counts.no_tls
    return rows.items()
