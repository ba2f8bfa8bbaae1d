"""TCP connections to an upstream that carry one query at a time, for a query whose connection may fail because of it.

Some servers close a connection when they get a query that they do not answer (a response policy with DROP, a query that
makes them fail), and all other queries on the connection are lost with it. The client cannot see which query was the
cause. So a query that was in flight on two lost connections is sent a third time over a connection of its own, where it
costs no other query anything. The oldest query of a silent connection is also sent over one (hedging): the upstream may
be busy with that query, and answer no other one on the connection meanwhile. The upstream itself stays in use.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from topodns.net.upstream.address import Counts
from topodns.net.upstream.tcp_connection import UpstreamConnection
from topodns.query.upstream import Failure, UpstreamQuery

MOST: Final = 8  # connections at a time; further queries wait for one


class Opener(Protocol):
    """Opens connections and fails queries (`TcpCarrier`)."""

    counts: Counts

    def open_for(self, owner: "IsolatedConnections", timeout: float) -> UpstreamConnection:
        """A connection of this owner, which takes queries at once. Attempts to open it for at least `timeout`."""

    def fail(self, query: UpstreamQuery, failure: Failure) -> None:
        """End a query with this failure."""

    def answered(self, query: UpstreamQuery) -> None:
        """As `ConnectionOwner.answered`."""

    def continue_with_twin(self, query: UpstreamQuery) -> None:
        """Continue with the other sending of a query (`retransmission`), as the connection of this one is lost."""


class IsolatedConnections:
    """The connections with one query at a time of one transport. Implements `ConnectionOwner`.

    It is the `via` of a query that waits for such a connection.
    """

    def __init__(self, opener: Opener, time: Callable[[], float]) -> None:
        self._opener = opener
        self._time = time
        self._connections: set[UpstreamConnection] = set()
        self._leaving: set[UpstreamConnection] = set()
        self._waiting: dict[UpstreamQuery, None] = {}
        self._closing = False

    def send(self, query: UpstreamQuery) -> None:
        """Send a query, for the last time, over a connection without another query: at once, or when there is one."""
        self._waiting[query] = None
        query.via = self
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
        self._opener.answered(query)

    def strayed(self) -> None:
        self._opener.counts.strays += 1

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
                self._opener.continue_with_twin(query)
            else:
                self._opener.fail(query, failure)
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
        connection = self._opener.open_for(self, timeout)
        self._connections.add(connection)
        return connection
