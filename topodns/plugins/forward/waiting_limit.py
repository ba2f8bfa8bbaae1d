"""The limit of queries that wait for upstreams: in total, and for each client."""

from typing import Final, Protocol

MAX_TOTAL: Final = 4096


MAX_PER_CLIENT: Final = 256  # that a client may have in any case, until all places are taken


class Waiter(Protocol):
    """One client's query that waits for an upstream."""

    address: bytes  # of the client, packed

    def preempt(self) -> None:
        """Drop the query without a reply, since another client gets its place. Must not raise."""


class InFlight:
    """The queries that wait for upstreams, of all `forward` directives; one object per process.

    A client may use places that others do not need: a new query may wait if fewer of the client's queries wait than the
    larger of `max_per_client` and half of the free places. When all places are taken, the newest query of the client
    with the most waiting queries is dropped: the new one itself, or a waiting one that makes room for it.
    """

    __slots__ = (
        *("_by_client", "_max_per_client", "_max_total", "_ranking", "dropped_by_client", "dropped_in_total"),
        *("preempted", "total"),
    )

    def __init__(self, max_total: int = MAX_TOTAL, max_per_client: int = MAX_PER_CLIENT) -> None:
        self._max_per_client = max_per_client
        self._max_total = max_total
        self._by_client: dict[bytes, dict[Waiter, None]] = {}  # the newest last
        self._ranking: Ranking | None = None  # since all places were taken, until half of them are free
        self.total = 0
        self.dropped_in_total = 0  # by the limit in total
        self.dropped_by_client = 0  # by the limit per client
        self.preempted = 0  # waiting queries that made room for a client with fewer

    def bound(self, most: int) -> None:
        """Lower the limit in total to `most` queries; it is never raised."""
        self._max_total = min(self._max_total, most)

    def enter(self, waiter: Waiter) -> bool:
        """Take a place for one more query; False if it must not wait.

        `leave` must follow, unless the query is preempted; after False, `note_drop`. The newest query of another client
        may be preempted to make room.
        """
        address = waiter.address
        mine = self._by_client.get(address)
        waiting = 0 if mine is None else len(mine)
        free = self._max_total - self.total
        if waiting >= self._max_per_client and 2 * waiting >= free:
            return False
        if free <= 0:
            # Between two clients that would have equally many, the waiting query stays: an exchange gains nothing.
            if self._ranked().most <= waiting + 1:
                return False
            self._preempt()
            return self.enter(waiter)  # preempting has side effects: check everything again
        self.total += 1
        if mine is None:
            self._by_client[address] = {waiter: None}
        else:
            mine[waiter] = None
        if self._ranking is not None:
            self._ranking.move(address, waiting, waiting + 1)
        return True

    def leave(self, waiter: Waiter) -> None:
        """Release the place of a query that no longer waits."""
        self.total -= 1
        address = waiter.address
        mine = self._by_client[address]
        del mine[waiter]
        if not mine:
            del self._by_client[address]
        if self._ranking is not None:
            self._ranking.move(address, len(mine) + 1, len(mine))
            if 2 * self.total < self._max_total:
                self._ranking = None

    def note_drop(self, address: bytes) -> None:
        """Count a query of this client that `enter` refused, by the limit that was the reason."""
        waiting = len(self._by_client.get(address, ()))
        if waiting >= self._max_per_client and 2 * waiting >= self._max_total - self.total:
            self.dropped_by_client += 1
        else:
            self.dropped_in_total += 1

    def _ranked(self) -> "Ranking":
        ranking = self._ranking
        if ranking is None:
            ranking = self._ranking = Ranking()
            for address, waiters in self._by_client.items():
                ranking.move(address, 0, len(waiters))
        return ranking

    def _preempt(self) -> None:
        newest = next(reversed(self._by_client[self._ranked().first()]))
        self.leave(newest)
        self.preempted += 1
        newest.preempt()


class Ranking:
    """Clients by the number of their waiting queries.

    It is needed only while all places are taken. `InFlight` then makes it, in 1 ms for 4,096 clients, and keeps it
    until half of the places are free, so that a query does not pay for it at other times.
    """

    __slots__ = ("_by_number", "most")

    def __init__(self) -> None:
        self._by_number: list[dict[bytes, None]] = [{}]  # index 0 stays empty
        self.most = 0  # the largest number of one client's waiting queries

    def move(self, address: bytes, before: int, now: int) -> None:
        """The client had `before` waiting queries and has `now`; 0: it is not here."""
        by_number = self._by_number
        if before:
            del by_number[before][address]
        if now:
            while now >= len(by_number):
                by_number.append({})
            by_number[now][address] = None
            if now > self.most:
                self.most = now
        while self.most and not by_number[self.most]:
            self.most -= 1

    def first(self) -> bytes:
        """Of the clients with the most waiting queries, the one that has had so many for the longest time."""
        return next(iter(self._by_number[self.most]))
