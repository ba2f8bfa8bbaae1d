"""What the process tells over HTTP: /health, /ready, /metrics and /explain, where the Corefile says."""

import json
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from topodns.assembly import Generation, ListenAt
from topodns.edge.admin_http import AdminServer, Reply, Request, Route
from topodns.edge.exposition import CONTENT_TYPE
from topodns.edge.metrics import Metrics
from topodns.edge.port_sharing import Binding, Instance, leave_group
from topodns.edge.sockets import open_tcp
from topodns.settings.server import Address

if TYPE_CHECKING:
    from topodns.clusters import Cluster

_LOOPBACK = ("127.", "::1", "::ffff:127.")


class Admin:
    """The HTTP side; a generation decides what is served where."""

    def __init__(
        self,
        metrics: Metrics,
        metrics_listen: Address | None = None,
        instance: Instance | None = None,
        waits_for: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """`metrics_listen`: where they are told whatever the Corefile says. `instance`: the ports are shared.

        `waits_for`: what keeps the process from being ready beside its clusters, a line each.
        """
        self._waits_for = waits_for
        self._instance = instance
        self._metrics = metrics
        self._metrics_listen = metrics_listen
        self._server = AdminServer()
        self._was_ready = False
        self._lame = False

    async def follow(self, generation: Generation) -> None:
        """Serve what this generation asks for. Raises ListenError, with the listeners there were still serving."""
        wanted = self._routes(generation)
        opened = _open((at for at in wanted if at not in self._server.addresses), self._instance)
        for at, routes in wanted.items():
            if at in opened:
                await self._server.listen(at, opened[at], routes)
            else:
                self._server.replace_routes(at, routes)
        self._server.close(keep=frozenset(wanted))

    def go_lame(self) -> None:
        """Not ready any more; where another instance serves, who comes from now on comes to it."""
        self._lame = True
        stays = self._instance.company.successor() if self._instance is not None else None
        if stays is not None:
            for sock in self._server.sockets():
                leave_group(sock, stays)

    def close(self) -> None:
        self._server.close()

    def _routes(self, generation: Generation) -> Mapping[ListenAt, dict[str, Route]]:
        wanted: dict[ListenAt, dict[str, Route]] = {}
        for block in generation.settings.blocks:
            if block.health is not None:
                _at(wanted, block.health.listen)["/health"] = _healthy
            if block.ready is not None:
                routes = _at(wanted, block.ready.listen)
                routes["/ready"] = self._readiness(generation, block.ready.continuously)
                routes["/explain"] = explain_route(generation)
            if block.prometheus is not None:
                _at(wanted, block.prometheus.listen)["/metrics"] = self._exposition
        if self._metrics_listen is not None:
            _at(wanted, self._metrics_listen)["/metrics"] = self._exposition
        return wanted

    def _exposition(self, request: Request) -> Reply:
        return Reply(200, self._metrics.exposition(), CONTENT_TYPE)

    def _readiness(self, generation: Generation, continuously: bool) -> Route:
        def ready(request: Request) -> Reply:
            if self._lame:
                return Reply(503, b"Shutting down")
            waiting = [*self._waits_for(), *unready(generation.clusters)]
            if waiting and (continuously or not self._was_ready):
                return Reply(503, "\n".join(waiting).encode())
            self._was_ready = True
            return Reply(200, b"OK")

        return ready


def unready(clusters: "Iterable[Cluster]") -> list[str]:
    """What is still waited for and, where it is denied or cannot be reached, why; a line a cluster."""
    return [
        f"kubernetes: waiting for {', '.join(cluster.waiting_for())}"
        for cluster in clusters
        if not cluster.state.synced
    ]


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


def _healthy(request: Request) -> Reply:
    return Reply(200, b"OK")


def explain_route(generation: Generation) -> Route:
    """Answers /explain, to loopback only."""

    def explain(request: Request) -> Reply:
        # It tells where Pods run; whoever may `kubectl port-forward` or exec comes from loopback.
        if not request.peer.startswith(_LOOPBACK):
            return Reply(403, b"only from loopback: kubectl port-forward, or exec\n")
        # Imported here: what explains knows all of clusters, and takes 6 MB that a node's cache would never use.
        from topodns.explain import Unexplained, explain_request

        try:
            explanation = explain_request(generation.clusters, request.arguments)
        except Unexplained as problem:
            return Reply(400, f"{problem}\n".encode())
        return Reply(200, json.dumps(explanation.as_dict()).encode(), "application/json")

    return explain


def _at(wanted: dict[ListenAt, dict[str, Route]], address: Address) -> dict[str, Route]:
    return wanted.setdefault((address.host, address.port), {})
