"""The connections of HTTP clients to one listener."""

import asyncio
import logging
import re
import socket
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import parse_qs, urlsplit

from topodns.net import http1
from topodns.net.http_server.messages import AdminLimits, HttpCounts, HttpReply, HttpRequest, HttpStream, Route
from topodns.net.socket_memory import reset_on_close


class HttpTask(Protocol):
    def step(self) -> None:
        """Do a bounded amount of work, and `join` again if more is left."""


class RoundRobin:
    """The queue of members with work: each turn of the loop runs one step of the first, round robin."""

    def __init__(self) -> None:
        self._waiting: dict[HttpTask, None] = {}
        self._scheduled = False

    def join(self, member: HttpTask) -> None:
        self._waiting[member] = None
        self._schedule()

    def leave(self, member: HttpTask) -> None:
        self._waiting.pop(member, None)

    def has(self, member: HttpTask) -> bool:
        return member in self._waiting

    def _schedule(self) -> None:
        if not self._scheduled and self._waiting:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        member = next(iter(self._waiting), None)
        if member is not None:
            del self._waiting[member]
            try:
                member.step()
            finally:
                self._schedule()


log = logging.getLogger(__name__)


METHODS: Final = (b"GET", b"HEAD")
MAX_HEADERS: Final = 100  # lines of a request's head; 8 KiB could have 2,000, which take 3 ms to parse
MAX_ARGUMENTS: Final = 80  # of a query string; a what-if has up to 64 changes

_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_FIRST_OF_METHOD: Final = 0x21  # RFC 9110 section 5.6.2: no token starts below it


@dataclass(eq=False)
class HttpClients:
    """The open connections of one listener, and what they share: limits, scheduler, counts, routes by path."""

    limits: AdminLimits
    turns: RoundRobin
    counts: HttpCounts
    routes: dict[str, Route]
    tls: ssl.SSLContext | None = None  # of new connections; None: they are not encrypted
    connections: dict["HttpConnection", None] = field(default_factory=dict)  # open ones, the oldest first

    @property
    def full(self) -> bool:
        return len(self.connections) >= self.limits.connections

    def to_evict(self) -> "HttpConnection | None":
        """The oldest connection of the address with the most; those that await their first reply are never evicted.

        None if all do.
        """
        held = Counter(connection.peer for connection in self.connections)
        others = (connection for connection in self.connections if not connection.awaits_first_reply)
        return max(others, key=lambda connection: held[connection.peer], default=None)


class HttpConnection:
    """One connection. h11 parses one request head at a time and writes replies; this class does I/O and deadlines."""

    def __init__(self, clients: HttpClients, sock: socket.socket, peer: str) -> None:
        self.peer = peer
        self._clients = clients
        self._limits = clients.limits
        self._turns = clients.turns
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._http = http1.Connection(http1.SERVER, max_incomplete_event_size=clients.limits.head)
        self._unread = bytearray()  # received and not parsed yet
        self._unsent: list[memoryview] = []
        self._method = b""
        self._reply: HttpReply | None = None  # result of the route's future, not sent yet
        self._stream: HttpStream | None = None  # the reply that goes on, once its head is being sent
        self._awaiting = False
        self._idle = False  # between two requests
        self._ended = False  # the client has sent EOF
        self._closing = False  # no request follows this one
        self._lingering = False  # the last reply is sent: further input is discarded until EOF
        self._answered = 0
        self._closed = False
        clients.connections[self] = None
        self._deadline = self._loop.call_later(self._limits.request, self.drop)
        self._turns.join(self)

    @property
    def awaits_first_reply(self) -> bool:
        """Whether the first request may have arrived and is unanswered only because of the server's own delay."""
        return not self._answered and (self._awaiting or self._turns.has(self))

    def step(self) -> None:
        try:
            self._continue()
        except Exception:  # a bug, for the loop to log
            self.drop()
            raise

    def _continue(self) -> None:
        if self._lingering:
            self._discard()
        elif self._unsent:
            self._send()
        elif self._stream is not None:
            self._continue_stream(self._stream)
        elif self._reply is not None:
            reply, self._reply = self._reply, None
            self._respond(reply)
        else:
            self._read_request()

    def drop(self) -> None:
        """Close at once with a reset; the kernel discards unsent data."""
        if not self._closed:
            self._clients.counts.streams_dropped += self._stream is not None
            with suppress(OSError):
                reset_on_close(self._sock)
            self._close()

    def finish(self) -> None:
        """Close because the listener stops: in a stream and between two requests at once, else after the next reply.

        That is the reply to the request that is being handled or received, or to the first one of a new connection.
        """
        self._closing = True
        if self._stream is not None:
            self._end_stream()
        elif self._idle and not self._turns.has(self):
            self._close()

    def _read_request(self) -> None:
        """Read, and answer the next request if its head is complete; refuse it if it is invalid or too long."""
        head = self._next_head()
        if head is None and not self._ended:
            data = self._receive()
            if data is None:
                return
            self._ended = not data
            self._unread += data
            if self._idle and data:
                self._idle = False
                self._wait(self._limits.request)
            head = self._next_head()
        if head is not None:
            self._read_head(head)
        elif self._unread[:1] and self._unread[0] < _FIRST_OF_METHOD:
            self._refuse(400)
        elif len(self._unread) > self._limits.head:
            self._refuse(431)
        elif self._ended:
            self._close()
        else:
            self._watch()

    def _receive(self) -> bytes | None:
        """Received octets, b"" at EOF; None if there are none yet, or if the connection failed and was dropped."""
        try:
            return self._sock.recv(self._limits.head)
        except BlockingIOError:
            self._watch()
        except OSError:
            self.drop()
        return None

    def _next_head(self) -> bytes | None:
        """Take first line and headers of the next request from the input; None if incomplete or too long."""
        end = _END_OF_HEAD.search(self._unread)
        if end is None or end.end() > self._limits.head:
            return None
        head = bytes(self._unread[: end.end()])
        del self._unread[: end.end()]
        return head

    def _read_head(self, head: bytes) -> None:
        if head.count(b"\n") > MAX_HEADERS + 2:
            self._refuse(431)
            return
        try:
            self._http.receive_data(head)
            event = self._http.next_event()
            if not isinstance(event, http1.Request):
                self._refuse(400)
                return
            if self._http.next_event() is http1.NEED_DATA:
                self._closing = True  # a body, which is not read
        except http1.RemoteProtocolError as wrong:
            # h11 raises it in a frame that refers to it: a cycle, with this connection in it.
            wrong.__traceback__ = None
            self._refuse(wrong.error_status_hint)
            return
        self._method = event.method
        reply = self._reply_to(event)
        if isinstance(reply, HttpReply):
            self._respond(reply)
        elif isinstance(reply, HttpStream):
            self._begin_stream(reply)
        else:
            self._awaiting = True
            self._wait(self._limits.answer)
            reply.add_done_callback(self._fulfilled)

    def _reply_to(self, event: http1.Request) -> HttpReply | HttpStream | asyncio.Future[HttpReply]:
        if event.method not in METHODS:
            return HttpReply(405, b"only GET and HEAD\n")
        try:
            target = urlsplit(event.target.decode("latin-1"))
            given = parse_qs(target.query, keep_blank_values=True, max_num_fields=MAX_ARGUMENTS)
        except ValueError:
            return HttpReply(400, f"not a URL with at most {MAX_ARGUMENTS} arguments\n".encode())
        route = self._clients.routes.get(target.path)
        if route is None:
            return HttpReply(404, b"not found\n")
        arguments = {name: values[0] for name, values in given.items()}
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        if target.netloc:
            headers["host"] = target.netloc  # RFC 9112 section 3.2.2
        repeated = {name: tuple(values) for name, values in given.items()}
        try:
            return route(HttpRequest(target.path, arguments, self.peer, headers, repeated))
        except Exception:
            log.exception("bug: %s", target.path)
            return HttpReply(500, b"internal error\n")

    def _fulfilled(self, made: asyncio.Future[HttpReply]) -> None:
        self._awaiting = False
        if self._closed:
            return
        failed = made.cancelled() or made.exception() is not None
        self._reply = HttpReply(500, b"internal error\n") if failed else made.result()
        self._turns.join(self)

    def _respond(self, reply: HttpReply) -> None:
        headers = [("Content-Type", reply.content_type), ("Content-Length", str(len(reply.body))), *reply.headers]
        self._count(reply.status)
        if reply.status == 405:
            headers.append(("Allow", b", ".join(METHODS).decode()))  # RFC 9110 section 15.5.6
        if self._closing:
            headers.append(("Connection", "close"))
        head = self._http.send(_response(reply.status, headers))
        body = b""
        if self._method != b"HEAD":
            self._http.send_with_data_passthrough(http1.Data(data=reply.body))
            body = reply.body  # not copied: connections that send the same reply share it
        self._http.send(http1.EndOfMessage())
        self._closing = self._closing or self._http.our_state is not http1.DONE
        self._start_sending(head or b"", body)

    def _count(self, status: int) -> None:
        if 400 <= status < 500:
            self._clients.counts.refused[status] += 1

    def _begin_stream(self, stream: HttpStream) -> None:
        if self._method == b"HEAD":
            stream.ended(stream)
            self._respond(HttpReply(200, b"", stream.content_type, stream.headers))
            return
        self._stream = stream
        self._clients.counts.streams += 1
        stream.wake, stream.close = lambda: self._turns.join(self), self._end_stream
        headers = [("Content-Type", stream.content_type), *stream.headers]
        self._start_sending(self._http.send(_response(200, headers)) or b"")

    def _end_stream(self) -> None:
        """Close, after the octets that end a whole body if the client has taken all before."""
        if not self._unsent:
            with suppress(OSError):
                self._sock.send(self._http.send(http1.EndOfMessage()) or b"")
        self._close()

    def _continue_stream(self, stream: HttpStream) -> None:
        """Send the next part, or else look whether the client has closed, or has sent anything, which ends it too."""
        if stream.part:
            part, stream.part = stream.part, b""
            stream.sending = True
            framed = self._http.send_with_data_passthrough(http1.Data(data=part)) or ()
            self._start_sending(*framed)  # the part is not copied: streams of the same part share it
            return
        data = self._receive()
        if data:
            self.drop()
        elif data is not None:
            self._close()

    def _refuse(self, status: int) -> None:
        self._count(status)
        head = b""
        if self._http.our_state in (http1.IDLE, http1.SEND_RESPONSE):
            response = _response(status, [("Content-Length", "0"), ("Connection", "close")])
            head = (self._http.send(response) or b"") + (self._http.send(http1.EndOfMessage()) or b"")
        self._closing = True
        self._start_sending(head)

    def _start_sending(self, *parts: bytes) -> None:
        self._unsent = [memoryview(part) for part in parts if part]
        self._wait(self._limits.reply)
        self._send()

    def _send(self) -> None:
        try:
            sent = self._sock.sendmsg(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.drop()
            return
        while self._unsent and sent >= len(self._unsent[0]):
            sent -= len(self._unsent.pop(0))
        if self._unsent:
            self._unsent[0] = self._unsent[0][sent:]
            self._loop.add_writer(self._sock.fileno(), self._writable)
        else:
            self._replied()

    def _replied(self) -> None:
        self._answered += 1
        if self._stream is not None:
            self._stream.sending = False
            self._wait(self._limits.idle)
            self._watch()
            if self._stream.part:
                self._turns.join(self)
            return
        if self._closing:
            self._linger()
            return
        self._http.start_next_cycle()
        self._idle = not self._unread
        self._wait(self._limits.idle if self._idle else self._limits.request)
        if self._idle and not self._ended:
            self._watch()
        else:
            self._turns.join(self)

    def _linger(self) -> None:
        """Send FIN and discard input until EOF or the deadline.

        Closing a socket with unread input resets the connection, and the reply could be lost.
        """
        self._lingering = True
        self._unread.clear()
        self._wait(self._limits.request)
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.drop()
            return
        self._turns.join(self)

    def _discard(self) -> None:
        data = self._receive()
        if data:
            self._turns.join(self)
        elif data is not None:
            self._close()

    def _wait(self, seconds: float) -> None:
        self._deadline.cancel()
        self._deadline = self._loop.call_later(seconds, self.drop)

    def _watch(self) -> None:
        self._loop.add_reader(self._sock.fileno(), self._readable)

    def _readable(self) -> None:
        self._loop.remove_reader(self._sock.fileno())
        self._turns.join(self)

    def _writable(self) -> None:
        self._loop.remove_writer(self._sock.fileno())
        self._turns.join(self)

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._stream is not None:
            self._clients.counts.streams -= 1
            self._stream.wake = self._stream.close = lambda: None
            self._stream.ended(self._stream)
        self._clients.connections.pop(self, None)
        self._turns.leave(self)
        self._deadline.cancel()
        self._loop.remove_reader(self._sock.fileno())
        self._loop.remove_writer(self._sock.fileno())
        self._sock.close()


def _response(status: int, headers: list[tuple[str, str]]) -> http1.Response:
    """The head of a response, with the reason phrase that `curl -i` shows, as that of CoreDNS has."""
    return http1.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase)
