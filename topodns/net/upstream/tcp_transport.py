"""Queries over TCP or TLS: a few pipelined connections to one upstream, opened when they are needed.

A connection of limited age finds new backends of a Service. The queries of one that is lost are sent again over the
other one at once, and should that be lost as well, over a new one.
"""

import asyncio
from collections.abc import Callable
from random import uniform
from typing import Any, Final

from topodns.edge.upstream.connection import Connection, Query
from topodns.edge.upstream.deadlines import Deadlines
from topodns.edge.upstream.endpoint import Endpoint
from topodns.edge.upstream.failures import BUSY, LOST, failure_of
from topodns.edge.upstream.limits import Counts, UpstreamLimits
from topodns.edge.upstream.matching import RandomIds
from topodns.resolve.exchange import Came, Failure

_SENDS: Final = 3  # of one query at most: over one connection, the other one, and a new one
_GOODBYE: Final = 1.0  # seconds that the other side has to end TLS in an orderly way


class TcpCarrier:
    """Carries queries to one upstream over connections, with TLS where the endpoint has it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        endpoint: Endpoint,
        limits: UpstreamLimits,
        deadlines: Deadlines,
        ids: RandomIds,
        counts: Counts,
    ) -> None:
        self.counts = counts
        self.settled: Callable[[Query], None] = deadlines.discard
        self._loop = loop
        self._endpoint = endpoint
        self._limits = limits
        self._deadlines = deadlines
        self._ids = ids
        self._connections: list[Connection] = []  # those that take queries, open or being opened
        self._leaving: set[Connection] = set()
        self._attempts: set[asyncio.Task[None]] = set()
        self._next_second = 0.0  # on the loop's clock: no second connection is tried before
        self._closing = False

    @property
    def open_sockets(self) -> int:
        return len(self._connections) + len(self._leaving)

    def exchange(self, message: bytes, question: bytes, timeout: float, came: Came) -> None:
        """As `Upstream.exchange`."""
        connection = self._choose(timeout)
        if connection is None:
            came(BUSY)
            return
        query = Query(message, question, self._loop.time() + timeout, came)
        self._deadlines.add(query)
        connection.send(query)

    def close(self) -> None:
        """Close connections as soon as what is in flight is settled; nothing may be asked any more."""
        self._closing = True
        for connection in tuple(self._connections):
            connection.leave()

    def expired(self, query: Query) -> None:
        self.counts.timed_out += 1

    def strayed(self) -> None:
        self.counts.strays += 1

    def idle(self, connection: Connection) -> None:
        kept = self._limits.max_idle_conns
        if kept and sum(each.is_open and not each.in_flight for each in self._connections) > kept:
            connection.leave()

    def leaving(self, connection: Connection) -> None:
        self._connections.remove(connection)
        self._leaving.add(connection)

    def lost(self, connection: Connection, queries: list[Query], failure: Failure) -> None:
        if connection in self._leaving:
            self._leaving.remove(connection)
        else:
            self._connections.remove(connection)
        for query in queries:
            other = self._another(query, connection)
            if other is None:
                self._fail(query, failure)
            else:
                self.counts.resent += 1
                other.send(query)

    def _another(self, query: Query, lost: Connection) -> Connection | None:
        """The connection to send a query again over. Who could not be reached just now is not tried again at once."""
        if self._closing or query.sends >= _SENDS:
            return None
        if lost.is_open:
            return self._choose(query.deadline - self._loop.time())
        best = self._least_loaded()
        return best if best is not None and best.is_open else None

    def _choose(self, timeout: float) -> Connection | None:
        """The connection for the next query, a new one where need be; None where all are full.

        A query that finds its connection busy has a second one opened for those that come after it.
        """
        best = self._least_loaded()
        if len(self._connections) >= self._limits.connections:
            return best
        if best is not None and not (best.is_open and best.in_flight):
            return best
        if best is None:
            return self._open(timeout)
        now = self._loop.time()
        if now >= self._next_second:
            self._next_second = now + self._limits.second_attempt
            self._open(timeout)
        return best

    def _least_loaded(self) -> Connection | None:
        best, room = None, self._limits.in_flight
        for connection in self._connections:
            if (best is None or connection.load < best.load) and len(connection.queries) < room:
                best = connection
        return best

    def _fail(self, query: Query, failure: Failure) -> None:
        self.settled(query)
        self.counts.timed_out += failure.timed_out
        query.came(failure)

    def _open(self, timeout: float) -> Connection:
        """A connection that is being opened; whoever waits for it fails with it when its time is over.

        That is the time of the query that needs it, but others may soon wait for it too, and a query sent again may
        have next to none left.
        """
        seconds = max(timeout, self._limits.connect)
        age = uniform(self._limits.max_age / 2, self._limits.max_age)
        connection = Connection(self, self._loop, self._limits, self._ids, self.counts, age)
        self._connections.append(connection)
        attempt = self._loop.create_task(self._attempt(connection, seconds), name=f"connect to {self._endpoint.name}")
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)
        return connection

    async def _attempt(self, connection: Connection, seconds: float) -> None:
        endpoint = self._endpoint
        with_tls: dict[str, Any] = {}
        if endpoint.tls is not None:
            with_tls = {
                "ssl": endpoint.tls,
                "server_hostname": endpoint.server_name,
                "ssl_shutdown_timeout": _GOODBYE,
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
