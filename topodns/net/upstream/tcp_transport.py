"""Queries over TCP or TLS: a few pipelined connections to one upstream, opened on demand.

The age of a connection is limited, so that new backends of a Service are found. The queries of a lost connection are
sent again at once over the other one, and if that is lost too, each over one without other queries
(`IsolatedConnections`). The queries of a silent connection are hedged: sent over the other one too, the oldest over one
without other queries; the first reply counts.
"""

import asyncio
from collections.abc import Callable, Iterator
from random import uniform
from typing import TYPE_CHECKING, Any, Final

from topodns.net.upstream.address import BUSY, LOST, TIMED_OUT, Counts, UpstreamEndpoint, UpstreamLimits, failure_of
from topodns.net.upstream.in_flight import Deadlines, RandomIds, Retransmission, separate
from topodns.net.upstream.tcp_connection import ConnectionOwner, UpstreamConnection
from topodns.query.upstream import Failure, UpstreamQuery

if TYPE_CHECKING:
    from topodns.net.upstream.dso_session import SessionUser

MOST: Final = 8  # connections with one query each at a time; further queries wait for one

_SENDS: Final = 3  # of one query at most: over one connection, the other one, and a third or one without other queries
_TLS_SHUTDOWN: Final = 1.0  # seconds for the upstream to complete the TLS shutdown


class TcpCarrier:
    """The transport of one upstream over TCP connections, or TLS if the endpoint has it.

    It is the `ConnectionOwner` of those with many queries.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        endpoint: UpstreamEndpoint,
        limits: UpstreamLimits,
        deadlines: Deadlines,
        ids: RandomIds,
        counts: Counts,
    ) -> None:
        self.counts = counts
        self._loop = loop
        self._endpoint = endpoint
        self._limits = limits
        self._deadlines = deadlines
        self._ids = ids
        self._connections: list[UpstreamConnection] = []  # those that take queries, open or connecting
        # The connection that takes all queries of this turn of the loop, so that they leave with one write: the least
        # loaded at the first of them. After the turn it is still known, so that of two connections with equal load the
        # next turn takes the other. None while a further connection may be opened.
        self._filling: UpstreamConnection | None = None
        self._leaving: set[UpstreamConnection] = set()
        self._attempts: set[asyncio.Task[None]] = set()
        self._next_second = 0.0  # on the clock of the deadlines: earliest next attempt at a second connection
        self._next_instead = 0.0  # likewise at a replacement for a silent one
        self._twins = 0  # hedged queries
        self._closing = False
        self._isolated = IsolatedConnections(self, deadlines.time)
        deadlines.add(self._in_flight)

    def exchange(self, query: UpstreamQuery, timeout: float, now: float) -> None:
        """Send a query, as `Upstream.exchange`. Its `on_reply` gets BUSY at once if all connections are full."""
        connection = self._filling
        if connection is None or not connection.is_filling:
            connection = self._choose(timeout)
            if connection is None:
                query.on_reply(BUSY)
                return
            self._filling = connection if len(self._connections) >= self._limits.connections else None
        query.carrier = self
        query.sends = 0
        query.deadline = now + timeout
        patience = self._limits.tcp_patience
        query.due = now + (patience if patience < timeout else timeout)
        if self._deadlines.armed is None:
            self._deadlines.arm()
        connection.send(query)

    def begin_session(self, user: "SessionUser") -> bool:
        """Begin a DSO session over a connection that has had none, opened if there is no connection at all.

        False, without effect, if all connections have had one or are silent, or when closing. If True, the user learns
        the rest.
        """
        if self._closing:
            return False
        if not self._connections:
            self._open(self._limits.connect)
        for connection in self._connections:
            if connection.session is None and not connection.silent:
                connection.begin_session(user)
                return True
        return False

    def close(self) -> None:
        """Close connections as soon as their queries in flight are settled; `exchange` must not be called any more."""
        self._closing = True
        for connection in (*self._connections, *self._leaving):
            connection.leave()
        self._isolated.close()

    def on_due(self, query: UpstreamQuery, now: float) -> None:
        """Hedge the query, at its deadline give it up."""
        query.due = query.deadline
        if now < query.deadline:
            self._hedge(query, now)
        else:
            self._expire(query)

    def cancel(self, query: UpstreamQuery) -> None:
        """As `UpstreamQuery.cancel`. The ids stay in use until late replies."""
        query.carrier = None
        if query.twin is not None:
            twin = self._separate(query)
            twin.connection.forget(twin)
        query.connection.forget(query)

    def answered(self, query: UpstreamQuery) -> None:
        """Abandon the twin of a query that has its reply, whose connection leaves if it is silent."""
        twin = self._separate(query)
        connection = _connection_of(twin)
        if connection.silent:  # while the other one got a reply
            connection.leave()
        connection.forget(twin)

    def _hedge(self, query: UpstreamQuery, now: float) -> None:
        """Hedge a query if its connection is silent: no reply to any query has arrived there since it was sent.

        The first such query has all queries of the connection hedged, each later one only itself. If a reply to another
        query has arrived, `query` becomes due again after `tcp_patience`. Without effect on a query that is hedged
        already, or may not be sent again.
        """
        if query.twin is not None or query.sends >= _SENDS or query.connection is self._isolated:
            return
        connection = _connection_of(query)
        if connection.heard_since(query):
            query.due = min(query.deadline, now + self._limits.tcp_patience)
        elif connection.silent:
            self._send_elsewhere(query, connection, now)
        else:
            connection.note_silence()
            # An upstream that answers the queries of a connection one after the other, as CoreDNS does, is busy with
            # the oldest, which would delay those on another connection too.
            oldest, *others = [each for each in connection.queries.values() if each is not None]
            self._send_elsewhere(oldest, connection, now, alone=True)
            for each in others:
                self._send_elsewhere(each, connection, now)

    def _send_elsewhere(
        self, query: UpstreamQuery, silent: UpstreamConnection, now: float, alone: bool = False
    ) -> None:
        """Hedge a query of a silent connection over another one; `alone`: over one without other queries if possible.

        At most `sent_twice` queries are hedged at a time. If the query is hedged already, and its other connection is
        silent too, it is sent over a third one that is not, in place of `silent`.
        """
        left, twin = query.deadline - now, query.twin
        if twin is None:
            other = self._elsewhere(silent, left, alone) if self._twins < self._limits.sent_twice else None
            if other is not None:
                self._twins += 1
                self._send_again(Retransmission(query), other)
        elif _connection_of(twin).silent and _original(query).sends < _SENDS:
            other = self._elsewhere(silent, left, alone)
            if other is not None and not other.silent:
                silent.forget(query)
                self._send_again(query, other)

    def _elsewhere(self, silent: UpstreamConnection, timeout: float, alone: bool) -> UpstreamConnection | None:
        isolated = self._isolated.free(timeout) if alone and not self._closing else None
        return isolated or self._instead_of(silent, timeout)

    def _send_again(self, query: UpstreamQuery, connection: UpstreamConnection) -> None:
        self.counts.resent += 1
        if isinstance(query, Retransmission):  # `send` counts those of the query that it is given
            query.original.sends += 1
        connection.send(query)

    def _expire(self, query: UpstreamQuery) -> None:
        query.carrier = None
        self.counts.timed_out += 1
        if query.twin is not None:
            twin = self._separate(query)
            twin.connection.give_up(twin)
        query.connection.give_up(query)
        query.on_reply(TIMED_OUT)

    def strayed(self) -> None:
        self.counts.strays += 1

    def idle(self, connection: UpstreamConnection) -> None:
        kept = self._limits.max_idle_conns
        if not kept or connection.is_pinned:
            return
        if sum(each.is_open and not each.in_flight for each in self._connections) > kept:
            connection.leave()

    def leaving(self, connection: UpstreamConnection) -> None:
        self._connections.remove(connection)
        self._leaving.add(connection)

    def lost(self, connection: UpstreamConnection, queries: list[UpstreamQuery], failure: Failure) -> None:
        if connection in self._leaving:
            self._leaving.remove(connection)
        else:
            self._connections.remove(connection)
        for query in queries:
            if query.carrier is None:  # the result of another one has cancelled it
                continue
            if query.twin is not None:
                self.continue_with_twin(query)
                continue
            if query.sends == _SENDS - 1 and connection.is_open and not self._closing:
                self.counts.resent += 1
                self._isolated.send(query)
                continue
            other = self._another(query, connection)
            if other is None:
                self.fail(query, failure)
            else:
                self.counts.resent += 1
                other.send(query)

    def _separate(self, query: UpstreamQuery) -> UpstreamQuery:
        """Separate a query from its twin. Returns the former twin, which is in flight no longer."""
        self._twins -= 1
        twin = separate(query)
        twin.carrier = None
        return twin

    def continue_with_twin(self, query: UpstreamQuery) -> None:
        """The connection of `query` is lost: wait for the reply to its twin only, over the other connection."""
        self._twins -= 1
        twin = separate(query)
        if isinstance(query, Retransmission):
            return
        # `query` is the original, which callers know: it takes the place of its twin.
        connection = _connection_of(twin)
        query.connection, query.ident, query.heard = connection, twin.ident, twin.heard
        connection.queries[query.ident] = query

    def _instead_of(self, silent: UpstreamConnection, timeout: float) -> UpstreamConnection | None:
        """The connection to use instead of `silent`: one that is not silent, opened if necessary.

        If no more connections are allowed, `silent` leaves to make room for the new one. If none may be opened now: the
        least loaded other one, perhaps silent, or None if there is no other. None when closing, too.
        """
        if self._closing:
            return None
        now = self._deadlines.time()
        best = self._least_loaded(besides=silent)
        if (best is not None and not best.silent) or now < self._next_instead:
            return best
        if len(self._connections) >= self._limits.connections and silent in self._connections:
            silent.leave()
        if len(self._connections) >= self._limits.connections:
            return best
        self._next_instead = now + self._limits.tcp_patience
        return self._open(timeout)

    def _another(self, query: UpstreamQuery, lost: UpstreamConnection) -> UpstreamConnection | None:
        """The connection over which to send a query of a lost one again.

        None if there is none, after _SENDS sends, or when closing. If `lost` never opened, no other connection is tried
        that is not open yet.
        """
        if self._closing or query.sends >= _SENDS:
            return None
        if lost.is_open:
            return self._choose(query.deadline - self._deadlines.time())
        best = self._least_loaded()
        return best if best is not None and best.is_open else None

    def _choose(self, timeout: float) -> UpstreamConnection | None:
        """The connection for the next query: the least loaded, or a new one if there is none. None if all are full.

        If the least loaded has queries in flight, and the limit allows, a further connection is opened for later
        queries; this query takes it only if the least loaded is silent.
        """
        best = self._least_loaded()
        if len(self._connections) >= self._limits.connections:
            return best
        if best is not None and not (best.is_open and best.in_flight):
            return best
        if best is None:
            return self._open(timeout)
        now = self._deadlines.time()
        if now >= self._next_second:
            self._next_second = now + self._limits.second_attempt
            opened = self._open(timeout)
            return opened if best.silent else best
        return best

    def _least_loaded(self, besides: UpstreamConnection | None = None) -> UpstreamConnection | None:
        """The connection with the lowest load that is not full; of two with equal load not the one filled last."""
        best, limit = None, self._limits.in_flight
        for connection in self._connections:
            if connection is besides or len(connection.queries) >= limit:
                continue
            if best is None or connection.load < best.load or (connection.load == best.load and best is self._filling):
                best = connection
        return best

    def fail(self, query: UpstreamQuery, failure: Failure) -> None:
        """End a query in flight with this failure."""
        query.carrier = None
        self.counts.timed_out += failure.timed_out
        query.on_reply(failure)

    def _in_flight(self) -> Iterator[UpstreamQuery]:
        for connection in (*self._connections, *self._leaving):
            for query in connection.queries.values():
                if query is not None:
                    yield query
        yield from self._isolated.in_flight()

    def _open(self, timeout: float) -> UpstreamConnection:
        """Begin to open a connection for any queries."""
        connection = self.open_for(self, timeout)
        self._connections.append(connection)
        return connection

    def open_for(self, owner: ConnectionOwner, timeout: float) -> UpstreamConnection:
        """Begin to open a connection. If that fails or takes too long, it is `lost` with its queries.

        The time is that of the query that needs it, but at least `limits.connect`: other queries may soon wait for it
        too, and a query sent again may have almost no time left.
        """
        seconds = max(timeout, self._limits.connect)
        age = uniform(self._limits.max_age / 2, self._limits.max_age)
        connection = UpstreamConnection(owner, self._loop, self._limits, self._ids, self.counts, age)
        attempt = self._loop.create_task(self._attempt(connection, seconds), name=f"connect to {self._endpoint.name}")
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)
        return connection

    async def _attempt(self, connection: UpstreamConnection, seconds: float) -> None:
        endpoint = self._endpoint
        with_tls: dict[str, Any] = {}
        if endpoint.tls is not None:
            with_tls = {
                "ssl": endpoint.tls,
                "server_hostname": endpoint.server_name,
                "ssl_shutdown_timeout": _TLS_SHUTDOWN,
            }
        try:
            async with asyncio.timeout(seconds):
                await self._loop.create_connection(
                    lambda: connection, endpoint.address, endpoint.port, local_addr=endpoint.source, **with_tls
                )
        except (OSError, ValueError) as reason:  # ValueError: a server name that TLS cannot carry
            connection.fail(failure_of(reason))
        except asyncio.CancelledError:
            connection.fail(LOST)
            raise


class IsolatedConnections:
    """TCP connections that carry one query at a time, for a query whose connection may fail because of it.

    Some servers close a connection when they get a query that they do not answer (a response policy with DROP, a query
    that makes them fail), and all other queries on the connection are lost with it. The client cannot see which query
    was the cause. So a query that was in flight on two lost connections is sent a third time over a connection of its
    own, where it costs no other query anything. The oldest query of a silent connection is also sent over one
    (hedging): the upstream may be busy with that query, and answer no other one on the connection meanwhile. The
    upstream itself stays in use.

    Implements `ConnectionOwner`, and `PipelinedConnection` for the queries that wait for a connection.
    """

    def __init__(self, carrier: TcpCarrier, time: Callable[[], float]) -> None:
        self._carrier = carrier
        self._time = time
        self._connections: set[UpstreamConnection] = set()
        self._leaving: set[UpstreamConnection] = set()
        self._waiting: dict[UpstreamQuery, None] = {}
        self._closing = False

    def send(self, query: UpstreamQuery) -> None:
        """Send a query, for the last time, over a connection without another query; it waits until there is one."""
        self._waiting[query] = None
        query.connection = self
        self._send_waiting()

    def in_flight(self) -> Iterator[UpstreamQuery]:
        """The queries without a result, those that wait for a connection included."""
        yield from self._waiting
        for connection in (*self._connections, *self._leaving):
            for query in connection.queries.values():
                if query is not None:
                    yield query

    def close(self) -> None:
        """Close the connections as soon as their queries have a result, those that wait included."""
        self._closing = True
        for connection in tuple(self._connections):
            connection.leave()

    def forget(self, query: UpstreamQuery) -> None:
        """Abandon a query that waits for a connection."""
        self._waiting.pop(query, None)

    give_up = forget

    def answered(self, query: UpstreamQuery) -> None:
        self._carrier.answered(query)

    def strayed(self) -> None:
        self._carrier.counts.strays += 1

    def idle(self, connection: UpstreamConnection) -> None:
        if connection.queries:  # its query was abandoned, and the upstream may still be busy with it
            connection.leave()
        self._send_waiting()

    def leaving(self, connection: UpstreamConnection) -> None:
        self._connections.discard(connection)
        self._leaving.add(connection)

    def lost(self, connection: UpstreamConnection, queries: list[UpstreamQuery], failure: Failure) -> None:
        self._connections.discard(connection)
        self._leaving.discard(connection)
        for query in queries:
            if query.carrier is None:
                continue
            if query.twin is not None:
                self._carrier.continue_with_twin(query)
            else:
                self._carrier.fail(query, failure)
        self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting:
            query = next(iter(self._waiting))
            connection = self.free(query.deadline - self._time())
            if connection is None:
                return
            del self._waiting[query]
            connection.send(query)
            if self._closing:
                connection.leave()

    def free(self, timeout: float) -> UpstreamConnection | None:
        """A connection without queries, opened if necessary; None if MOST are open. Not after `close`."""
        for connection in self._connections:
            if not connection.in_flight:
                return connection
        if len(self._connections) + len(self._leaving) >= MOST:
            return None
        connection = self._carrier.open_for(self, timeout)
        self._connections.add(connection)
        return connection


def _connection_of(query: UpstreamQuery) -> UpstreamConnection:
    """The connection of a query that does not wait for one."""
    connection = query.connection
    assert isinstance(connection, UpstreamConnection)
    return connection


def _original(query: UpstreamQuery) -> UpstreamQuery:
    return query.original if isinstance(query, Retransmission) else query
