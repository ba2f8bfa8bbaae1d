"""The addresses of the HTTP endpoints: /health, /ready, /metrics, and those of `inspect` through `MoreRoutes`."""

import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from topodns.app.generation import Generation
from topodns.app.hooks import MoreRoutes
from topodns.app.metrics import Metrics
from topodns.corefile.arguments import Address
from topodns.metrics.registry import Reading
from topodns.net.descriptors import Descriptors
from topodns.net.http_server.messages import AdminLimits, HttpReply, HttpRequest, Route
from topodns.net.http_server.server import AdminServer
from topodns.net.reuseport import Binding, Instance, leave_group
from topodns.net.sockets import ListenError, open_tcp
from topodns.plugins.health import PLUGIN as HEALTH
from topodns.plugins.prometheus import PLUGIN as PROMETHEUS
from topodns.plugins.ready import PLUGIN as READY
from topodns.plugins.ready import Readiness


class Admin:
    """The HTTP server of the process; the active generation decides which route is served at which address."""

    def __init__(
        self,
        metrics: Metrics,
        metrics_listen: Address | None = None,
        instance: Instance | None = None,
        waits_for: Callable[[], Iterable[str]] = tuple,
        descriptors: Descriptors | None = None,
        more: MoreRoutes | None = None,
    ) -> None:
        """`metrics_listen`: an address of /metrics beside those of the Corefile. `instance`: the ports are shared with
        other instances; None: they are not.

        `waits_for`: reasons for not being ready beside the clusters, a line each. `descriptors`: None for no limit by
        RLIMIT_NOFILE. `more`: routes of others at addresses of the Corefile.
        """
        self._instance = instance
        self._metrics = metrics
        self._metrics_listen = metrics_listen
        self._server = AdminServer(_limits(descriptors))
        self._readiness = Readiness(waits_for)
        self._more = more

    def follow(self, generation: Generation) -> None:
        """Serve the routes of this generation (and of `metrics_listen`), and close all other addresses.

        Raises ListenError; the previous routes and listeners then stay.
        """
        wanted = self._routes(generation)
        missing = [address for address in wanted if (address.host, address.port) not in self._server.addresses]
        opened = _open(missing, self._instance)
        for address, routes in wanted.items():
            at = (address.host, address.port)
            if at in opened:
                self._server.listen(at, opened[at], routes, _tls(generation, at))
            else:
                self._server.replace_routes(at, routes, _tls(generation, at))
        self._server.close(keep=frozenset((address.host, address.port) for address in wanted))

    def go_lame(self) -> None:
        """Answer /ready with 503 from now on; if another instance serves, new connections go to that instance."""
        self._readiness.stop()
        stays = self._instance.peers.successor() if self._instance is not None else None
        if stays is not None:
            for sock in self._server.sockets():
                leave_group(sock, stays)

    def close(self) -> None:
        self._server.close()
        if self._more is not None:
            self._more.close()

    def readings(self) -> Iterable[Reading]:
        """The metrics of the HTTP server and of the routes of others."""
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
        if self._more is not None:
            yield from self._more.readings()

    def _routes(self, generation: Generation) -> Mapping[Address, dict[str, Route]]:
        wanted: dict[Address, dict[str, Route]] = {}
        for block in generation.settings.blocks:
            if (health := HEALTH.settings_of(block)) is not None:
                wanted.setdefault(health.listen, {})["/health"] = _healthy
            if (ready := READY.settings_of(block)) is not None:
                wanted.setdefault(ready.listen, {})["/ready"] = self._readiness.route(
                    generation.clusters, ready.continuously
                )
            if (prometheus := PROMETHEUS.settings_of(block)) is not None:
                wanted.setdefault(prometheus.listen, {})["/metrics"] = self._metrics.route()
        if self._more is not None:
            for address, routes in self._more.of(generation):
                wanted.setdefault(address, {}).update(routes)
        if self._metrics_listen is not None:
            wanted.setdefault(self._metrics_listen, {})["/metrics"] = self._metrics.route()
        return wanted


def _tls(generation: Generation, at: tuple[str, int]) -> ssl.SSLContext | None:
    """The context of the first `prometheus` with `tls` at this address."""
    for prometheus in filter(None, map(PROMETHEUS.settings_of, generation.settings.blocks)):
        if prometheus.tls is not None and (prometheus.listen.host, prometheus.listen.port) == at:
            return prometheus.tls.context
    return None


def _limits(descriptors: Descriptors | None) -> AdminLimits:
    """The limits of one listener: for connections at most a third of the descriptors for HTTP, and at least 1.

    A third, as /health, /ready and /metrics have a port each. None: the default limits.
    """
    limits = AdminLimits()
    if descriptors is None:
        return limits
    return replace(limits, connections=min(limits.connections, max(1, descriptors.http // 3)))


def _open(addresses: Iterable[Address], instance: Instance | None) -> dict[tuple[str, int], list[socket.socket]]:
    opened: dict[tuple[str, int], list[socket.socket]] = {}
    try:
        for address in addresses:
            binding = instance.binding(address.host) if instance is not None else Binding()
            opened[address.host, address.port] = _open_one(address, binding)
    except BaseException:
        for sockets in opened.values():
            for sock in sockets:
                sock.close()
        raise
    return opened


def _open_one(address: Address, binding: Binding) -> list[socket.socket]:
    try:
        return open_tcp(address.host, address.port, binding)
    except ListenError as problem:
        if address.owner:
            problem.add_owner(address.owner)
        raise


def _healthy(request: HttpRequest) -> HttpReply:
    return HttpReply(200, b"OK")
