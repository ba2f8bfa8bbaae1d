"""The addresses of the HTTP endpoints: /health, /ready, /explain, /who, /audit, /metrics and the topology page."""

import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from topodns.app.audit.endpoint import audit_route
from topodns.app.explain.endpoint import explain_route, who_route
from topodns.app.generation import Generation, ListenAt
from topodns.app.metrics import Metrics
from topodns.corefile.arguments import Address
from topodns.metrics.registry import Reading
from topodns.net.descriptors import Descriptors
from topodns.net.http_server.messages import AdminLimits, HttpReply, HttpRequest, Route
from topodns.net.http_server.server import AdminServer
from topodns.net.reuseport import Binding, Instance, leave_group
from topodns.net.sockets import open_tcp
from topodns.plugins.health import PLUGIN as HEALTH
from topodns.plugins.prometheus import PLUGIN as PROMETHEUS
from topodns.plugins.ready import PLUGIN as READY
from topodns.plugins.ready import Readiness
from topodns.query.counters import QueryCounters

if TYPE_CHECKING:
    from topodns.app.topology_page.page import TopologyPage


class Admin:
    """The HTTP server of the process; the active generation decides which route is served at which address."""

    def __init__(
        self,
        metrics: Metrics,
        metrics_listen: Address | None = None,
        instance: Instance | None = None,
        waits_for: Callable[[], Iterable[str]] = tuple,
        descriptors: Descriptors | None = None,
        all_counters: Callable[[], Iterable[QueryCounters]] = tuple,
    ) -> None:
        """`metrics_listen`: an address of /metrics beside those of the Corefile. `instance`: the ports are shared with
        other instances; None: they are not.

        `waits_for`: reasons for not being ready beside the clusters, a line each. `descriptors`: None for no limit by
        RLIMIT_NOFILE. `all_counters`: the query counters, for the misses on the topology page.
        """
        self._instance = instance
        self._metrics = metrics
        self._metrics_listen = metrics_listen
        self._server = AdminServer(_limits(descriptors))
        self._readiness = Readiness(waits_for)
        self._all_counters = all_counters
        self._page: TopologyPage | None = None  # None until a Corefile has the option `page`

    def follow(self, generation: Generation) -> None:
        """Serve the routes of this generation (and of `metrics_listen`), and close all other addresses.

        Raises ListenError; the previous routes and listeners then stay.
        """
        wanted = self._routes(generation)
        opened = _open((at for at in wanted if at not in self._server.addresses), self._instance)
        for at, routes in wanted.items():
            if at in opened:
                self._server.listen(at, opened[at], routes)
            else:
                self._server.replace_routes(at, routes)
        self._server.close(keep=frozenset(wanted))

    def go_lame(self) -> None:
        """Answer /ready with 503 from now on; if another instance serves, new connections go to that instance."""
        self._readiness.stop()
        stays = self._instance.peers.successor() if self._instance is not None else None
        if stays is not None:
            for sock in self._server.sockets():
                leave_group(sock, stays)

    def close(self) -> None:
        self._server.close()
        if self._page is not None:
            self._page.close()

    def readings(self) -> Iterable[Reading]:
        """The metrics of the HTTP server and of the topology page."""
        counts = self._server.counts
        yield Reading(
            "topodns_http_refused",
            "HTTP requests refused, by status.",
            "counter",
            ("status",),
            lambda: [((str(status),), times) for status, times in counts.refused.items()],
        )
        yield Reading(
            "topodns_http_streams", "Topology pages that are live now.", "gauge", (), lambda: [((), counts.streams)]
        )
        yield Reading(
            "topodns_http_streams_dropped",
            "Live topology pages that were cut off, mostly as the browser did not read.",
            "counter",
            (),
            lambda: [((), counts.streams_dropped)],
        )
        yield Reading(
            "topodns_topology_page_rejects",
            "Requests for the topology page answered with 503, by what was full.",
            "counter",
            ("reason",),
            lambda: [
                ((reason,), self._page.rejects[reason] if self._page is not None else 0)
                for reason in ("queue", "streams")
            ],
        )

    def _routes(self, generation: Generation) -> Mapping[ListenAt, dict[str, Route]]:
        wanted: dict[ListenAt, dict[str, Route]] = {}
        for block in generation.settings.blocks:
            if (health := block.get(HEALTH)) is not None:
                _at(wanted, health.listen)["/health"] = _healthy
            if (ready := block.get(READY)) is not None:
                routes = _at(wanted, ready.listen)
                routes["/ready"] = self._readiness.route(generation.clusters, ready.continuously)
                routes["/explain"] = explain_route(generation.clusters)
                routes["/who"] = who_route(generation.clusters)
                routes["/audit"] = audit_route(generation.clusters)
            if (prometheus := block.get(PROMETHEUS)) is not None:
                _at(wanted, prometheus.listen)["/metrics"] = self._metrics.route()
        self._add_pages(generation, wanted)
        if self._metrics_listen is not None:
            _at(wanted, self._metrics_listen)["/metrics"] = self._metrics.route()
        return wanted

    def _add_pages(self, generation: Generation, wanted: dict[ListenAt, dict[str, Route]]) -> None:
        """Add the routes of the topology pages. Each shows all clusters; at one address the first block decides."""
        pages = [cluster.topology.page for cluster in generation.clusters if cluster.topology is not None]
        by_address = {page.listen: page for page in reversed(pages) if page is not None}
        if self._page is not None:
            self._page.begin()
        elif by_address:
            # Imported here: a node cache has no cluster, and most servers have no page.
            from topodns.app.topology_page.page import TopologyPage

            self._page = TopologyPage(self._all_counters)
        for address, page in by_address.items():
            assert self._page is not None
            _at(wanted, address).update(self._page.routes(generation.clusters, page))


def _limits(descriptors: Descriptors | None) -> AdminLimits:
    """The limits of one listener: for connections at most a third of the descriptors for HTTP, and at least 1.

    A third, as /health, /ready and /metrics have a port each. None: the default limits.
    """
    limits = AdminLimits()
    if descriptors is None:
        return limits
    return replace(limits, connections=min(limits.connections, max(1, descriptors.http // 3)))


def _open(addresses: Iterable[ListenAt], instance: Instance | None) -> dict[ListenAt, list[socket.socket]]:
    opened: dict[ListenAt, list[socket.socket]] = {}
    try:
        for at in addresses:
            opened[at] = open_tcp(*at, instance.binding(at[0]) if instance is not None else Binding())
    except BaseException:
        for sockets in opened.values():
            for sock in sockets:
                sock.close()
        raise
    return opened


def _healthy(request: HttpRequest) -> HttpReply:
    return HttpReply(200, b"OK")


def _at(wanted: dict[ListenAt, dict[str, Route]], address: Address) -> dict[str, Route]:
    return wanted.setdefault((address.host, address.port), {})
