"""The small HTTP of /health, /ready, /metrics and /explain: GET and HEAD, one answer, no body taken.

The only importer of h11. A slow or strange client costs one of few connections and nothing else.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import parse_qs, urlsplit

import h11

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
MAX_HEAD: Final = 8192  # octets of request line and headers
REQUEST_DEADLINE: Final = 5.0  # seconds from connection to complete request
IDLE_DEADLINE: Final = 60.0  # seconds a kept-alive connection may wait for its next request


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    arguments: Mapping[str, str]  # of the query string; the first of each name
    peer: str  # the client's address as text


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Route = Callable[[Request], Reply]


@dataclass
class AdminServer:
    """The listeners of the process, each with its routes by path. Routes may be replaced while it runs."""

    connections: int = 0
    _servers: dict[tuple[str, int], tuple[list[asyncio.Server], dict[str, Route]]] = field(default_factory=dict)

    async def listen(self, at: tuple[str, int], sockets: Iterable[socket.socket], routes: Mapping[str, Route]) -> None:
        """Serve these routes on these bound sockets, which together are the listener `at`."""
        own = dict(routes)
        loop = asyncio.get_running_loop()
        servers = [await loop.create_server(lambda: _Connection(self, own), sock=sock) for sock in sockets]
        self._servers[at] = (servers, own)

    def replace_routes(self, at: tuple[str, int], routes: Mapping[str, Route]) -> None:
        """Serve other routes on a listener that is there already."""
        own = self._servers[at][1]
        own.clear()
        own.update(routes)

    @property
    def addresses(self) -> frozenset[tuple[str, int]]:
        return frozenset(self._servers)

    def close(self, keep: frozenset[tuple[str, int]] = frozenset()) -> None:
        """Stop all listeners but those to keep."""
        for at in [at for at in self._servers if at not in keep]:
            servers, _ = self._servers.pop(at)
            for server in servers:
                server.close()


class _Connection(asyncio.Protocol):
    """One client. h11 knows HTTP; this moves bytes and keeps the time."""

    def __init__(self, server: AdminServer, routes: Mapping[str, Route]) -> None:
        self._server = server
        self._routes = routes
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._server.connections += 1
        if self._server.connections > MAX_CONNECTIONS:
            self._transport.abort()
            return
        self._peer = transport.get_extra_info("peername", ("",))[0]
        self._wait(REQUEST_DEADLINE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections -= 1
        if self._deadline is not None:
            self._deadline.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            self._http.receive_data(data)
            self._take_events()
        except h11.RemoteProtocolError as wrong:
            self._refuse(wrong.error_status_hint)

    def eof_received(self) -> bool:
        return False

    def _take_events(self) -> None:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.Request):
                self._respond(event)
            elif isinstance(event, h11.EndOfMessage):
                self._next_request()
            elif isinstance(event, h11.ConnectionClosed):
                self._close()
                return

    def _respond(self, event: h11.Request) -> None:
        reply = self._reply_to(event)
        headers = [("Content-Type", reply.content_type), ("Content-Length", str(len(reply.body)))]
        head = self._http.send(h11.Response(status_code=reply.status, headers=headers))
        body = b"" if event.method == b"HEAD" else self._http.send(h11.Data(data=reply.body))
        self._write((head or b"") + (body or b"") + (self._http.send(h11.EndOfMessage()) or b""))

    def _reply_to(self, event: h11.Request) -> Reply:
        if event.method not in (b"GET", b"HEAD"):
            return Reply(405, b"only GET and HEAD\n")
        target = urlsplit(event.target.decode("latin-1"))
        route = self._routes.get(target.path)
        if route is None:
            return Reply(404, b"not found\n")
        arguments = {name: values[0] for name, values in parse_qs(target.query, keep_blank_values=True).items()}
        try:
            return route(Request(target.path, arguments, self._peer))
        except Exception:
            log.exception("bug: %s", target.path)
            return Reply(500, b"internal error\n")

    def _next_request(self) -> None:
        if self._http.our_state is h11.MUST_CLOSE:
            self._close()
            return
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
            self._wait(IDLE_DEADLINE)

    def _refuse(self, status: int) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = h11.Response(status_code=status, headers=[("Content-Length", "0"), ("Connection", "close")])
            self._write((self._http.send(response) or b"") + (self._http.send(h11.EndOfMessage()) or b""))
        self._close()

    def _wait(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._close)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
