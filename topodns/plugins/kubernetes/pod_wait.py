"""Queries from Pods too new to be in the cluster state: they wait briefly for the watch of Pods, or of locators.

The number of waiting queries is limited, and so is how often one address may wait: hosts outside the cluster are never
Pods, and must neither wait at each query nor keep queries of new Pods from waiting.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from topodns.dependency import EVERYTHING, Fact, address_fact
from topodns.memory.bounded import TTLCache
from topodns.query.deferred import Outcome, Timer, Timers

SECONDS: Final = 0.2  # the longest wait
WAIT_AGAIN: Final = 30.0  # seconds before an address that waited in vain may wait again
MAX_WAITING: Final = 256  # queries at one time
MAX_OF_ONE: Final = 8  # queries of one address at one time: A and AAAA, twice, and some spare
MAX_IN_VAIN: Final = 4096  # remembered addresses that waited in vain


@dataclass(slots=True)
class _Arrival:
    """The wait of all queries of one address."""

    timer: Timer
    outcome: Outcome[None] = field(default_factory=Outcome)
    queries: int = 0


class PodWait:
    """The waiting queries of one cluster. `enabled`: whether the watches would report a new Pod at all."""

    def __init__(self, timers: Timers, enabled: Callable[[], bool]) -> None:
        self._timers = timers
        self._enabled = enabled
        self._waiting: dict[bytes, _Arrival] = {}
        self._queries = 0
        self._in_vain: TTLCache[bytes, None] = TTLCache(MAX_IN_VAIN, WAIT_AGAIN, timers.time)  # by address
        self.counts = {"arrived": 0, "expired": 0, "refused": 0}  # queries by outcome

    def wait(self, address: bytes) -> Outcome[None] | None:
        """An outcome that is settled after the next change that concerns this address, at the latest after 200 ms.

        None if the query must not wait: the watches would report no Pod, the address waited in vain in the last 30 s,
        the table of such addresses is full, or too many queries wait, of this address or in all.
        """
        if not self._enabled():
            return None
        arrival = self._waiting.get(address)
        if arrival is None and self._waited_in_vain(address):
            return None
        if self._queries >= MAX_WAITING or (arrival is not None and arrival.queries >= MAX_OF_ONE):
            self.counts["refused"] += 1
            return None
        if arrival is None:
            timer = self._timers.call_later(SECONDS, partial(self._expire, address))
            arrival = self._waiting[address] = _Arrival(timer)
        arrival.queries += 1
        self._queries += 1
        return arrival.outcome

    def wake(self, facts: Collection[Fact]) -> None:
        """End the waits of the addresses that a change of the cluster state concerns."""
        if self._waiting:
            news = EVERYTHING in facts
            for address in [each for each in self._waiting if news or address_fact(each) in facts]:
                self._end(address, "arrived")

    def _expire(self, address: bytes) -> None:
        if len(self._in_vain) < MAX_IN_VAIN:
            self._in_vain[address] = None
        self._end(address, "expired")

    def _end(self, address: bytes, outcome: str) -> None:
        arrival = self._waiting.pop(address)
        arrival.timer.cancel()
        self._queries -= arrival.queries
        self.counts[outcome] += arrival.queries
        arrival.outcome.settle(None)

    def _waited_in_vain(self, address: bytes) -> bool:
        """Whether the address waited in vain in the last 30 s; True also for every address while the table is full."""
        return address in self._in_vain or len(self._in_vain) >= MAX_IN_VAIN
