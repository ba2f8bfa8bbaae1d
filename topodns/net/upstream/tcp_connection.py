"""One pipelined connection to an upstream over TCP or TLS (RFC 7766), with replies in any order.

It keeps its queries by id. Its owner chooses the connection for a query, and handles the queries of a lost connection.
Messages that match no query are counted (strays); an upstream that floods the connection with them loses it.
"""

import asyncio
import socket
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol, cast

from topodns.dns.tcp_framing import PREFIX, MessageReader, frame
from topodns.dns.wire_format import HEADER_SIZE
from topodns.net.upstream.address import LOST, Counts, UpstreamLimits, failure_of
from topodns.net.upstream.in_flight import RandomIds, is_reply
from topodns.query.deferred import Timer
from topodns.query.upstream import Failure, UpstreamQuery

if TYPE_CHECKING:
    from topodns.net.upstream.dso_session import DsoSession, SessionUser

_OPENING: Final = 1 << 16  # added to the load until connected; more than the queries of any open connection
_SILENT: Final = 1 << 17
_IN_FLIGHT: Final = _OPENING - 1  # mask for the number of queries in the load
_IDENT: Final = 2  # octets of a message id
_SLICE: Final = 4096  # octets that are taken in one turn of the loop: 290 messages at most, or 80 of usual size
_UNSOLICITED: Final = 16  # messages that an upstream may send beyond one for each query
_FLOODED: Final = Failure("more messages from the upstream than queries to it", timed_out=False)
_UNIDIRECTIONAL: Final = b"\0\0"  # id of DSO messages without a response (RFC 8490 section 5.4.1)


class ConnectionOwner(Protocol):
    """What opens connections and gives them queries: a `TcpCarrier`, or its `IsolatedConnections`.

    A connection calls these methods at its events.
    """

    def answered(self, query: UpstreamQuery) -> None:
        """A reply to a query with a twin has arrived; its connection has removed it. The twin is no longer needed."""

    def strayed(self) -> None:
        """A message arrived that matches no query in flight."""

    def idle(self, connection: "UpstreamConnection") -> None:
        """The connection has no query in flight any more; the owner may let it `leave`."""

    def leaving(self, connection: "UpstreamConnection") -> None:
        """The connection takes no new queries from now on."""

    def lost(self, connection: "UpstreamConnection", queries: list[UpstreamQuery], failure: Failure) -> None:
        """The connection is lost, with these queries in flight, which the owner sends again or fails."""


class UpstreamConnection(asyncio.Protocol):
    """A connection, which takes queries also while it is connecting; they are sent when it is open.

    It ends once the upstream has sent many more messages that match no query than there were queries, and it reads no
    faster than _SLICE octets in a turn of the loop, so that no upstream keeps the loop from other work.

    `age`: seconds for which it takes new queries, 0 for ever.
    """

    def __init__(
        self,
        owner: ConnectionOwner,
        loop: asyncio.AbstractEventLoop,
        limits: UpstreamLimits,
        ids: RandomIds,
        counts: Counts,
        age: float,
    ) -> None:
        self.is_open = False
        # Queries in flight, plus _OPENING until it is open, plus _SILENT while silent. The next query goes to the
        # connection with the lowest load.
        self.load = _OPENING
        self.silent = False  # queries wait, and no reply has arrived for `tcp_patience` seconds
        self._owner = owner
        self._loop = loop
        self._limits = limits
        self._counts = counts
        self._draw = ids.draw
        # By the ids in use. None marks an abandoned query: its id is not reused, since a late reply could be taken for
        # the reply to another query.
        self.queries: dict[bytes, UpstreamQuery | None] = {}
        self._kept: set[bytes] = set()  # ids of operations of the session that go on after their response
        self._unsent: list[bytes] = []
        # Open and not silent, takes queries, and has some that are written at the end of this turn of the loop.
        self.is_filling = False
        self._reader = MessageReader()
        self._slices: deque[bytes] = deque()  # octets of the stream that are not taken yet; it is not read meanwhile
        self._unsolicited = 0  # messages that match no query, late replies not among them
        self._leaving = self._gone = False
        self._retired = False  # takes no queries, and stays open as long as a session needs it
        self.replies = 0  # number of replies to queries
        self._used = loop.time()
        self._old_at = self._used + age if age else float("inf")
        self._timer: Timer | None = None
        self._transport: asyncio.Transport
        self.session: DsoSession | None = None  # also one that is over: a connection has one at most

    @property
    def in_flight(self) -> int:
        return self.load & _IN_FLIGHT

    def send(self, query: UpstreamQuery) -> None:
        """Send this query under a free id, which must exist: with all others of this turn of the loop.

        On a connection that is not open yet, all wait until it is.
        """
        ident, queries = self._draw(), self.queries
        while ident in queries or ident in self._kept:
            ident = self._draw()
        queries[ident] = query
        query.connection, query.ident, query.heard = self, ident, self.replies
        query.sends += 1
        self.load += 1
        if self.is_open:
            self._counts.hits += 1
            if not self._unsent:
                self._loop.call_soon(self._flush)
                self.is_filling = not self.silent and not self._leaving
            elif len(queries) >= self._limits.in_flight:
                self.is_filling = False
        else:
            self._counts.misses += 1
        message = query.message
        self._unsent += ((_IDENT + len(message)).to_bytes(PREFIX, "big"), ident, message)

    def begin_session(self, user: "SessionUser") -> None:
        """Begin a DSO session, at once or when the connection is open. Called once at most."""
        # Imported here: most processes have no session.
        from topodns.net.upstream.dso_session import DsoSession

        self.session = DsoSession(user, self, self._loop)
        if self.is_open:
            self.session.begin()

    def last_query(self) -> float:
        """The loop's time when the latest query was settled, or the connection opened; now, while a query waits."""
        return self._loop.time() if self.in_flight else self._used

    @property
    def is_pinned(self) -> bool:
        """Whether a DSO session needs this connection, so that neither age nor idleness closes it."""
        return self.session is not None and self.session.needs_connection

    def reserve(self) -> bytes:
        """A free message id for a request of the session, used until `release`."""
        ident = self._draw()
        while ident in self.queries or ident in self._kept or ident == _UNIDIRECTIONAL:
            ident = self._draw()
        self.queries[ident] = None
        return ident

    def keep(self, ident: bytes) -> None:
        """The request with this id has its response, but its operation goes on: the id is in use until `release`."""
        self.queries.pop(ident, None)
        self._kept.add(ident)

    def release(self, ident: bytes) -> None:
        self.queries.pop(ident, None)
        self._kept.discard(ident)

    def post(self, message: bytes) -> None:
        """Send a message of the session with all others of this turn of the loop."""
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(frame(message))

    def abort(self) -> None:
        """Close at once, because the session has failed."""
        self.fail(LOST)

    def heard_since(self, query: UpstreamQuery) -> bool:
        """Whether a reply to any query has arrived here since `query` was sent, or since the last call with it."""
        before, query.heard = query.heard, self.replies
        return before != self.replies

    def note_silence(self) -> None:
        """Note that queries wait and no reply comes: until one does, new queries get this connection last."""
        if not self.silent:
            self.silent = True
            self.is_filling = False
            self.load += _SILENT

    def give_up(self, query: UpstreamQuery) -> None:
        """Abandon a query that has timed out.

        If no reply to any query has arrived since it was sent (`heard_since`), also take no new queries.
        """
        if not self.heard_since(query):
            self.leave()
        self.forget(query)

    def forget(self, query: UpstreamQuery) -> None:
        """Abandon a query.

        Its id stays in use until a late reply; with more than `limits.in_flight` / 2 such ids, take no new queries.
        """
        self.queries[query.ident] = None
        self.load -= 1
        if len(self.queries) - self.in_flight > self._limits.in_flight // 2:
            self.leave()
        self._note_idle()

    def leave(self) -> None:
        """Take no new queries, and close when those in flight are settled."""
        self._retired = False
        self._take_no_queries()
        self._close_if_done()

    def _take_no_queries(self) -> None:
        if not self._leaving:
            self._leaving = True
            self.is_filling = False
            self._owner.leaving(self)

    def fail(self, failure: Failure) -> None:
        """Close at once, and report the connection as `lost`: it could not be opened, or is of no use any more."""
        if self.is_open:
            self._transport.abort()
        self._drop(failure)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._gone:
            self._transport.abort()
            return
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self._limits.unacknowledged * 1000))
        self.is_open = True
        self.load -= _OPENING
        self._used = self._loop.time()
        self._flush()
        if self.session is not None:
            self.session.begin()
        self._look_at_age()
        self._close_if_done()

    def data_received(self, data: bytes) -> None:
        slices = self._slices
        if len(data) <= _SLICE and not slices:
            self._take(data)
            return
        if not slices:
            self._transport.pause_reading()
            self._loop.call_soon(self._take_slice)
        slices.extend(data[at : at + _SLICE] for at in range(0, len(data), _SLICE))

    def _take_slice(self) -> None:
        if self._gone:
            return
        self._take(self._slices.popleft())
        if self._slices:
            self._loop.call_soon(self._take_slice)
        elif not self._gone:
            self._transport.resume_reading()

    def _take(self, data: bytes) -> None:
        """Take the messages that these octets of the stream complete."""
        for message in self._reader.receive_data(data):
            ident = message[:2]
            query = self.queries.get(ident)
            if query is not None and is_reply(message, query.question):
                del self.queries[ident]
                self.load -= 1
                self.replies += 1
                if self.silent:
                    self.silent = False
                    self.load -= _SILENT
                query.carrier = None
                if query.twin is not None:
                    self._owner.answered(query)
                query.on_reply(message)
            else:
                self._stray(query, message)
                if self._gone:
                    return
        if not self.load:
            self._note_idle()

    def eof_received(self) -> bool:
        """Close as by `fail`: an upstream that closes its half sends no more replies."""
        self.fail(LOST)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop(failure_of(exc))

    def _stray(self, query: UpstreamQuery | None, message: bytes) -> None:
        """Hand a message that is no reply to a query in flight to the session, or count it.

        `query`: the query in flight with the id of the message. If there is none, the message may be the late reply to
        an abandoned query, whose id is then free again. Any other message counts as unsolicited. The upstream may send
        one of these for each query (its reply, a second time) and _UNSOLICITED more; with another one the connection
        closes, as it does with a message shorter than a header.
        """
        if len(message) < HEADER_SIZE:  # no DNS message: the rest of the stream is not trusted either
            self.fail(LOST)
            return
        if self.session is not None and self.session.receive(message):
            return
        self._owner.strayed()
        if query is None and self.queries.pop(message[:2], self) is None:
            return
        self._unsolicited += 1
        if self._unsolicited > self.replies + len(self.queries) + _UNSOLICITED:
            self.fail(_FLOODED)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        self.is_filling = False
        if unsent and not self._gone:
            self._transport.write(b"".join(unsent))

    def _note_idle(self) -> None:
        if self.in_flight or self._gone:
            return
        self._used = self._loop.time()
        self._close_if_done()
        if not self._leaving:
            self._owner.idle(self)

    def _close_if_done(self) -> None:
        if self._leaving and self.is_open and not self.in_flight and not (self._retired and self.is_pinned):
            self._end()
            self._drop(LOST)

    def _look_at_age(self) -> None:
        """`leave` if the age or the idle time is over, else check again when it may be.

        A connection that a session needs takes no new queries beyond its age, so that queries spread over the replicas
        behind the upstream's address, and is closed once the session has ended.
        """
        if self._gone:
            return
        now = self._loop.time()
        if self.is_pinned:
            if self._old_at <= now and not self._leaving:
                self._retired = True
                self._take_no_queries()
            self._timer = self._loop.call_later(self._limits.expire, self._look_at_age)
            return
        if self._leaving:
            self._close_if_done()
            return
        idle_until = now + self._limits.expire if self.in_flight else self._used + self._limits.expire
        due = min(self._old_at, idle_until)
        if due <= now:
            self.leave()
        else:
            self._timer = self._loop.call_later(due - now, self._look_at_age)

    def _end(self) -> None:
        """Close in an orderly way, or abort if unsent data would make that wait for the upstream to read."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    def _drop(self, failure: Failure) -> None:
        if self._gone:
            return
        self._gone = self._leaving = True
        self.is_filling = False
        self._slices.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self.session is not None:
            self.session.lost()
        queries = [query for query in self.queries.values() if query is not None]
        self.queries = {}
        self._owner.lost(self, queries, failure)
