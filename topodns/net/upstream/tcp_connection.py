"""One pipelined connection over TCP or TLS (RFC 7766): queries out as they come, replies in whatever order.

It knows its queries and their ids; which connection a query goes over, and what becomes of those of a lost one, is its
owner's business.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol, cast

from topodns.dns.framing import PREFIX, MessageReader
from topodns.edge.upstream.failures import LOST, TIMED_OUT, failure_of
from topodns.edge.upstream.limits import Counts, UpstreamLimits
from topodns.edge.upstream.matching import HEADER, RandomIds, is_reply
from topodns.resolve.course import Timer
from topodns.resolve.exchange import Came, Failure

_OPENING: Final = 1 << 16  # a load that no open connection has


class Query:
    """One query over connections; it is always with one of them until it is settled."""

    __slots__ = ("came", "connection", "deadline", "heard", "ident", "message", "question", "sends")

    connection: "Connection"
    ident: bytes
    heard: int  # replies on its connection before it was sent

    def __init__(self, message: bytes, question: bytes, deadline: float, came: Came) -> None:
        self.message = message
        self.question = question
        self.deadline = deadline
        self.came = came
        self.sends = 0

    def expire(self) -> None:
        self.connection.give_up(self)
        self.came(TIMED_OUT)


class Owner(Protocol):
    """Who opens connections and hands out queries."""

    @property
    def settled(self) -> Callable[[Query], None]:
        """Called before a query gets the reply to it; the connection has forgotten it."""

    def expired(self, query: Query) -> None:
        """A query's time is over, and nothing more will be said of it."""

    def strayed(self) -> None:
        """A message came that is no reply to anything that is waited for."""

    def idle(self, connection: "Connection") -> None:
        """Nothing is in flight any more."""

    def leaving(self, connection: "Connection") -> None:
        """It takes no new query from now on."""

    def lost(self, connection: "Connection", queries: list[Query], failure: Failure) -> None:
        """It is gone, and these were in flight."""


class Connection(asyncio.Protocol):
    """Takes queries while it is being opened too; they leave when it is open.

    `age` is for how many seconds it does so, 0 for ever.
    """

    def __init__(
        self,
        owner: Owner,
        loop: asyncio.AbstractEventLoop,
        limits: UpstreamLimits,
        ids: RandomIds,
        counts: Counts,
        age: float,
    ) -> None:
        self.is_open = False
        self.load = _OPENING  # the less, the better for the next query: those in flight, and more until it is open
        self._owner = owner
        self._loop = loop
        self._limits = limits
        self._counts = counts
        self._settled = owner.settled
        self._draw = ids.draw
        # By the ids in use. None stands for a query that was given up: its id is not used again, or a late reply could
        # be taken for one to another query.
        self.queries: dict[bytes, Query | None] = {}
        self._unsent: list[bytes] = []
        self._reader = MessageReader()
        self._leaving = self._gone = False
        self._heard = 0  # replies
        self._used = loop.time()
        self._old_at = self._used + age if age else float("inf")
        self._timer: Timer | None = None
        self._transport: asyncio.Transport

    @property
    def in_flight(self) -> int:
        return self.load if self.is_open else self.load - _OPENING

    def send(self, query: Query) -> None:
        """Have this query leave with all others of this turn of the loop. There must be room."""
        ident = self._draw()
        while ident in self.queries:
            ident = self._draw()
        self.queries[ident] = query
        query.connection, query.ident, query.heard = self, ident, self._heard
        query.sends += 1
        self.load += 1
        if self.is_open:
            self._counts.hits += 1
            if not self._unsent:
                self._loop.call_soon(self._flush)
        else:
            self._counts.misses += 1
        message = query.message
        self._unsent.append(len(message).to_bytes(PREFIX, "big") + ident + message[2:])

    def give_up(self, query: Query) -> None:
        """Its time is over. Where no reply came since it was sent, this connection is not trusted with another one."""
        self.queries[query.ident] = None
        self.load -= 1
        if self._heard == query.heard or len(self.queries) - self.in_flight > self._limits.in_flight // 2:
            self.leave()
        self._owner.expired(query)
        self._note_idle()

    def leave(self) -> None:
        """Take no new query, and close when those in flight are settled."""
        if not self._leaving:
            self._leaving = True
            self._owner.leaving(self)
        self._close_if_done()

    def fail(self, failure: Failure) -> None:
        """It could not be opened, or there is no use in it any more."""
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
        self._look_at_age()
        self._close_if_done()

    def data_received(self, data: bytes) -> None:
        for message in self._reader.receive_data(data):
            query = self.queries.get(message[:2])
            if query is not None and is_reply(message, query.question):
                del self.queries[query.ident]
                self.load -= 1
                self._heard += 1
                self._settled(query)
                query.came(message)
            else:
                self._stray(query, message)
        if not self.load:
            self._note_idle()

    def eof_received(self) -> bool:
        """What is in flight will not be answered here: whoever closes its half has said all."""
        self.fail(LOST)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop(failure_of(exc))

    def _stray(self, query: Query | None, message: bytes) -> None:
        """No reply, though perhaps with the id of this query."""
        if len(message) < HEADER:  # no DNS message: what follows cannot be trusted to be any
            self.fail(LOST)
            return
        if query is None:
            self.queries.pop(message[:2], None)
        self._owner.strayed()

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
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
        if self._leaving and self.is_open and not self.in_flight:
            self._end()
            self._drop(LOST)

    def _look_at_age(self) -> None:
        """Leave where the time has come, else look again when it may have."""
        if self._gone or self._leaving:
            return
        now = self._loop.time()
        idle_until = now + self._limits.expire if self.in_flight else self._used + self._limits.expire
        due = min(self._old_at, idle_until)
        if due <= now:
            self.leave()
        else:
            self._timer = self._loop.call_later(due - now, self._look_at_age)

    def _end(self) -> None:
        """An orderly end, unless that would wait for somebody who does not read."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    def _drop(self, failure: Failure) -> None:
        if self._gone:
            return
        self._gone = self._leaving = True
        if self._timer is not None:
            self._timer.cancel()
        queries = [query for query in self.queries.values() if query is not None]
        self.queries = {}
        self._owner.lost(self, queries, failure)
