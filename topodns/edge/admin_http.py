"""The small HTTP of /health, /ready, /metrics and /explain: GET and HEAD, one answer, no body taken.

The only importer of h11. A slow or strange client costs one of few connections and nothing else.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import parse_qs, urlsplit

import h11

log = logging.getLogger(__name__)

METHODS: Final = (b"GET", b"HEAD")


@dataclass(frozen=True, slots=True)
class AdminLimits:
    """What clients may take of each listener. Beyond `connections` the oldest one makes room for the new one.

    (Refusing the new one would let 64 idle connections, which cost nothing, keep the kubelet's probes out.)
    """

    connections: int = 64
    head: int = 8192  # octets of a request's first line and headers
    request: float = 5.0  # seconds for a whole request, once the connection is there or its first octet
    idle: float = 60.0  # seconds until the next request, or for the client to take its reply


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


@dataclass(eq=False)
class _Listener:
    limits: AdminLimits
    routes: dict[str, Route]
    servers: list[asyncio.Server] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)
    connections: dict["_Connection", None] = field(default_factory=dict)  # open ones, the oldest first


@dataclass
class AdminServer:
    """The listeners of the process, each with its routes by path. Routes may be replaced while it runs."""

    limits: AdminLimits = AdminLimits()
    _listeners: dict[tuple[str, int], _Listener] = field(default_factory=dict)

    @property
    def connections(self) -> int:
        """Now open, on all listeners."""
        return sum(len(listener.connections) for listener in self._listeners.values())

    async def listen(self, at: tuple[str, int], sockets: Iterable[socket.socket], routes: Mapping[str, Route]) -> None:
        """Serve these routes on these bound sockets, which together are the listener `at`."""
        listener = self._listeners[at] = _Listener(self.limits, dict(routes))
        loop = asyncio.get_running_loop()
        for sock in sockets:
            listener.servers.append(await loop.create_server(lambda: _Connection(listener), sock=sock))
            listener.sockets.append(sock)

    def sockets(self) -> Iterator[socket.socket]:
        """Those that listen."""
        return (sock for listener in self._listeners.values() for sock in listener.sockets)

    def replace_routes(self, at: tuple[str, int], routes: Mapping[str, Route]) -> None:
        """Serve other routes on a listener that is there already."""
        self._listeners[at].routes = dict(routes)

    @property
    def addresses(self) -> frozenset[tuple[str, int]]:
        return frozenset(self._listeners)

    def close(self, keep: frozenset[tuple[str, int]] = frozenset()) -> None:
        """Stop all listeners but those to keep."""
        for at in [at for at in self._listeners if at not in keep]:
            for server in self._listeners.pop(at).servers:
                server.close()


class _Connection(asyncio.Protocol):
    """One client. h11 knows HTTP; this moves bytes and keeps the time.

    Of a client that does not read its replies nothing more is read, so that they cannot pile up.
    """

    def __init__(self, listener: _Listener) -> None:
        self._listener = listener
        self._limits = listener.limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=listener.limits.head)
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._idle = False
        self._clogged = False
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        others = self._listener.connections
        if len(others) >= self._limits.connections:
            next(iter(others)).drop()
        others[self] = None
        self._peer = transport.get_extra_info("peername", ("",))[0]
        self._wait(self._limits.request)

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.connections.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()

    def drop(self) -> None:
        """Make room for another client."""
        self._listener.connections.pop(self, None)
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._idle:
            self._idle = False
            self._wait(self._limits.request)
        self._take(data)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._clogged = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._clogged = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._take(b"")

    def _take(self, data: bytes) -> None:
        try:
            if data:
                self._http.receive_data(data)
            self._take_events()
        except h11.RemoteProtocolError as wrong:
            self._refuse(wrong.error_status_hint)

    def _take_events(self) -> None:
        while not self._clogged:
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
        if reply.status == 405:
            headers.append(("Allow", b", ".join(METHODS).decode()))  # RFC 9110 section 15.5.6
        head = self._http.send(h11.Response(status_code=reply.status, headers=headers))
        body = b"" if event.method == b"HEAD" else self._http.send(h11.Data(data=reply.body))
        self._write((head or b"") + (body or b"") + (self._http.send(h11.EndOfMessage()) or b""))

    def _reply_to(self, event: h11.Request) -> Reply:
        if event.method not in METHODS:
            return Reply(405, b"only GET and HEAD\n")
        try:
            target = urlsplit(event.target.decode("latin-1"))
        except ValueError:
            return Reply(400, b"not a URL\n")
        route = self._listener.routes.get(target.path)
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
            self._idle = True
            self._wait(self._limits.idle)

    def _refuse(self, status: int) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = h11.Response(status_code=status, headers=[("Content-Length", "0"), ("Connection", "close")])
            self._write((self._http.send(response) or b"") + (self._http.send(h11.EndOfMessage()) or b""))
        self._close()

    def _wait(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
