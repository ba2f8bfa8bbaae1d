"""Queries over HTTPS (RFC 8484): HTTP/1.1 connections to one upstream, each with one query at a time.

HTTP/1.1 has no replies out of order, so a query that finds all connections busy opens another one, or waits for one.
A query whose idle connection was closed meanwhile is sent once more.
"""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from random import uniform
from typing import Final, cast

from topodns.dns.wire_format import MAX_MESSAGE
from topodns.net import http1
from topodns.net.upstream.address import (
    BUSY,
    LOST,
    TIMED_OUT,
    Counts,
    UpstreamEndpoint,
    UpstreamLimits,
    failure_of,
)
from topodns.net.upstream.in_flight import Deadlines, is_reply
from topodns.query.upstream import Failure, UpstreamQuery

PATH: Final = "/dns-query"
MEDIA_TYPE: Final = "application/dns-message"
MOST: Final = 64  # connections to one upstream
PORT: Final = 443

_HEAD: Final = 16 << 10  # octets of a response's head
_MESSAGE_ID: Final = b"\0\0"  # RFC 8484 section 4.1
_NO_HTTP: Final = Failure("no HTTP response", timed_out=False)
_TOO_LONG: Final = Failure("a reply of more than 65,535 octets", timed_out=False)
_MISMATCH: Final = Failure("a reply to another query", timed_out=False)


class HttpsCarrier:
    """The transport of one upstream over HTTPS. `method`: POST or GET."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        endpoint: UpstreamEndpoint,
        limits: UpstreamLimits,
        deadlines: Deadlines,
        counts: Counts,
        method: str,
    ) -> None:
        self.counts = counts
        self._loop = loop
        self._endpoint = endpoint
        self._limits = limits
        self._deadlines = deadlines
        self._requests = _Requests(method, endpoint)
        self._idle: dict[HttpsConnection, None] = {}  # the latest used is the last
        self._busy: dict[UpstreamQuery, HttpsConnection] = {}
        self._waiting: dict[UpstreamQuery, None] = {}
        self._attempts: set[asyncio.Task[None]] = set()
        self._connections = 0
        self._closing = False
        deadlines.add(self._in_flight)

    def exchange(self, query: UpstreamQuery, timeout: float, now: float) -> None:
        """Send a query, as `Upstream.exchange`. Its `on_reply` gets BUSY at once if too many wait."""
        if len(self._waiting) >= self._limits.in_flight:
            query.on_reply(BUSY)
            return
        query.carrier = self
        query.sends = 0
        query.deadline = query.due = now + timeout
        if self._deadlines.armed is None:
            self._deadlines.arm()
        self._waiting[query] = None
        self._send_waiting()

    def on_due(self, query: UpstreamQuery, now: float) -> None:
        """Give up the query, whose connection is of no further use: its reply may come at any time."""
        self.counts.timed_out += 1
        self.cancel(query)
        query.on_reply(TIMED_OUT)

    def cancel(self, query: UpstreamQuery) -> None:
        """As `UpstreamQuery.cancel`; the query's connection closes, as another query would wait for its reply."""
        query.carrier = None
        self._waiting.pop(query, None)
        connection = self._busy.pop(query, None)
        if connection is not None:
            connection.abort()

    def close(self) -> None:
        """Close connections as soon as their queries are settled; `exchange` must not be called any more."""
        self._closing = True
        for connection in tuple(self._idle):
            connection.close()
        self._idle.clear()

    def answered(self, query: UpstreamQuery, result: bytes | Failure) -> None:
        """A connection has the result of its query."""
        del self._busy[query]
        query.carrier = None
        query.on_reply(result)

    def idle(self, connection: "HttpsConnection") -> None:
        """A connection can take another query."""
        most = self._limits.max_idle_conns
        if self._closing or (most and len(self._idle) >= most and not self._waiting):
            connection.close()
            return
        self._idle[connection] = None
        self._send_waiting()

    def lost(self, connection: "HttpsConnection", query: UpstreamQuery | None, failure: Failure, again: bool) -> None:
        """A connection is closed. `again`: its query, if any, may be sent over another one."""
        self._connections -= 1
        self._idle.pop(connection, None)
        if query is not None and self._busy.pop(query, None) is not None:
            if again and not self._closing:
                self.counts.resent += 1
                self._waiting = {query: None, **self._waiting}
            else:
                query.carrier = None
                self.counts.timed_out += failure.timed_out
                query.on_reply(failure)
        self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting and (self._idle or self._connections < MOST):
            query = next(iter(self._waiting))
            del self._waiting[query]
            query.sends += 1
            if self._idle:
                connection, _ = self._idle.popitem()
                self.counts.hits += 1
            else:
                connection = self._open(query)
                self.counts.misses += 1
            self._busy[query] = connection
            connection.send(query)

    def _open(self, query: UpstreamQuery) -> "HttpsConnection":
        self._connections += 1
        age = uniform(self._limits.max_age / 2, self._limits.max_age)
        connection = HttpsConnection(self, self._loop, self._requests, self._limits.expire, age)
        seconds = max(self._limits.connect, query.deadline - self._deadlines.time())
        attempt = self._loop.create_task(self._connect(connection, seconds), name=f"connect to {self._endpoint.name}")
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)
        return connection

    async def _connect(self, connection: "HttpsConnection", seconds: float) -> None:
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(seconds):
                await self._loop.create_connection(
                    lambda: connection,
                    endpoint.address,
                    endpoint.port,
                    local_addr=endpoint.source,
                    ssl=endpoint.tls,
                    server_hostname=endpoint.server_name,
                    ssl_shutdown_timeout=self._limits.connect,
                )
        except (OSError, ValueError) as reason:  # ValueError: a server name that TLS cannot carry
            connection.fail(failure_of(reason))
        except asyncio.CancelledError:
            connection.fail(LOST)
            raise

    def _in_flight(self) -> Iterator[UpstreamQuery]:
        yield from tuple(self._waiting)
        yield from tuple(self._busy)


class _Requests:
    """Makes the requests to one server."""

    def __init__(self, method: str, endpoint: UpstreamEndpoint) -> None:
        self._method = method
        host = f"[{endpoint.server_name}]" if ":" in endpoint.server_name else endpoint.server_name
        authority = host if endpoint.port == PORT else f"{host}:{endpoint.port}"
        self._headers = [("Host", authority), ("Accept", MEDIA_TYPE)]

    def octets(self, http: http1.Connection, message: bytes) -> bytes:
        """The request with a message, which has no id yet."""
        message = _MESSAGE_ID + message
        if self._method == "GET":
            target, headers, body = f"{PATH}?dns={urlsafe_b64encode(message).decode().rstrip('=')}", self._headers, b""
        else:
            content = [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(message)))]
            target, headers, body = PATH, [*self._headers, *content], message
        head = http.send(http1.Request(method=self._method, target=target, headers=headers)) or b""
        data = (http.send(http1.Data(data=body)) or b"") if body else b""
        return head + data + (http.send(http1.EndOfMessage()) or b"")


class HttpsConnection(asyncio.Protocol):
    """One connection, which has a query from its first moment on. `expire`: seconds that it may be idle."""

    def __init__(
        self, owner: HttpsCarrier, loop: asyncio.AbstractEventLoop, requests: _Requests, expire: float, age: float
    ) -> None:
        self._owner = owner
        self._loop = loop
        self._requests = requests
        self._expire = expire
        self._old_at = loop.time() + age if age else float("inf")
        self._http = http1.Connection(http1.CLIENT, max_incomplete_event_size=_HEAD)
        self._query: UpstreamQuery | None = None
        self._body = bytearray()
        self._untouched = False  # no octet has arrived since the query was sent
        self._reused = False  # the connection has answered a query
        self._gone = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def send(self, query: UpstreamQuery) -> None:
        """Send a query, at once or when the connection is open."""
        self._query = query
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._write()

    def _write(self) -> None:
        assert self._query is not None
        assert self._transport is not None
        self._untouched = True
        self._body.clear()
        self._transport.write(self._requests.octets(self._http, self._query.message))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._gone:
            self._transport.abort()
        else:
            self._write()

    def data_received(self, data: bytes) -> None:
        if self._gone:
            return
        self._untouched = False
        try:
            self._http.receive_data(data)
            self._take_events()
        except http1.RemoteProtocolError:
            self.fail(_NO_HTTP)

    def _take_events(self) -> None:
        while not self._gone:
            event = self._http.next_event()
            if event is http1.NEED_DATA or event is http1.PAUSED:
                return
            if isinstance(event, http1.Response):
                self._check(event)
            elif isinstance(event, http1.Data):
                self._body += event.data
                if len(self._body) > MAX_MESSAGE:
                    self.fail(_TOO_LONG)
            elif isinstance(event, http1.EndOfMessage):
                self._answered()
                return

    def _check(self, response: http1.Response) -> None:
        """Fail unless a DNS message follows."""
        types = [value for name, value in response.headers if name == b"content-type"]
        if response.status_code != 200:
            self.fail(Failure(f"HTTP status {response.status_code}", timed_out=False))
        elif [each.partition(b";")[0].strip().lower() for each in types] != [MEDIA_TYPE.encode()]:
            self.fail(Failure(f"an HTTP response that is no {MEDIA_TYPE}", timed_out=False))

    def _answered(self) -> None:
        query, self._query = self._query, None
        assert query is not None
        reply = bytes(self._body)
        reusable = self._http.our_state is http1.DONE and self._http.their_state is http1.DONE
        self._owner.answered(query, reply if is_reply(reply, query.question) else _MISMATCH)
        if self._gone:
            return
        if not reusable or self._loop.time() >= self._old_at:
            self.close()
            return
        self._http.start_next_cycle()
        self._reused = True
        self._timer = self._loop.call_later(self._expire, self.close)
        self._owner.idle(self)

    def eof_received(self) -> bool:
        self.fail(LOST)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(failure_of(exc))

    def close(self) -> None:
        """Close an idle connection."""
        if self._transport is not None:
            self._transport.close()
        self._drop(LOST, again=False)

    def abort(self) -> None:
        """Close at once; the query is settled already."""
        self._query = None
        self.fail(LOST)

    def fail(self, failure: Failure) -> None:
        """Close at once. The query fails, unless a connection that was idle before it was closed without an answer."""
        if self._transport is not None:
            self._transport.abort()
        self._drop(failure, again=self._reused and self._untouched)

    def _drop(self, failure: Failure, again: bool) -> None:
        if self._gone:
            return
        self._gone = True
        if self._timer is not None:
            self._timer.cancel()
        query, self._query = self._query, None
        self._owner.lost(self, query, failure, again and query is not None and query.sends < 3)
