"""The clients with sessions, and the limits on what they hold, for each address and for the process.

A client is a packed address, as several programs behind one cannot be told apart. `query.session.PushLimits` has the
numbers for the process and for a session; an address has at most SESSIONS_OF_ADDRESS sessions, twice the subscriptions
of a session, and the memory that `memory.budget.FairShares` leaves to it. An answer that grows later may exceed that.
"""

from collections import Counter
from typing import Final

from topodns.dnsserver.push.answers import Subscriber
from topodns.plugins.push import SESSIONS_OF_ADDRESS, PushCounts, PushRefusal
from topodns.query.session import PushLimits

SUBSCRIPTION: Final = 120
"""Octets of a subscription beside its answer, as measured by bench/push_memory.py."""

_SUBSCRIPTIONS_OF_ADDRESS: Final = 2  # times those of one session: a node cache that reconnects has two for a moment


class PushClients:
    """The sessions and subscriptions of each address, on all listeners of the process together."""

    def __init__(self, counts: PushCounts) -> None:
        self.counts = counts
        self._sessions: dict[bytes, dict[Subscriber, None]] = {}  # by address, the oldest first
        self._crowds: list[dict[bytes, None]] = [{} for _ in range(SESSIONS_OF_ADDRESS + 1)]  # by number of sessions
        self._subscriptions: Counter[bytes] = Counter()

    def room_for_session(self, address: bytes, limits: PushLimits) -> PushRefusal | Subscriber | None:
        """Look for room for another session of this address. None: there is some; a session: this one is to end first.

        Where all are taken, an address with at least two more sessions than this one loses its oldest.
        """
        held = len(self._sessions.get(address, ()))
        if held >= SESSIONS_OF_ADDRESS:
            return PushRefusal.SESSIONS
        if self.counts.sessions < limits.sessions:
            return None
        for crowd in self._crowds[: held + 1 : -1]:
            for crowded in crowd:
                return next(iter(self._sessions[crowded]))
        return PushRefusal.SESSIONS

    def add_session(self, session: Subscriber) -> None:
        self.counts.sessions += 1
        address = session.connection.address
        sessions = self._sessions.setdefault(address, {})
        self._crowds[len(sessions)].pop(address, None)
        sessions[session] = None
        self._crowds[len(sessions)][address] = None

    def remove_session(self, session: Subscriber) -> None:
        """Count the end of a session, for the reason `end`; its subscriptions are removed one by one."""
        self.counts.sessions -= 1
        self.counts.ended[session.end] += 1
        address = session.connection.address
        sessions = self._sessions[address]
        del self._crowds[len(sessions)][address]
        del sessions[session]
        if sessions:
            self._crowds[len(sessions)][address] = None
        else:
            del self._sessions[address]

    def add_subscription(self, session: Subscriber, limits: PushLimits) -> PushRefusal | None:
        """Count another subscription of a session, unless a limit forbids it."""
        address, memory = session.connection.address, self.counts.memory
        most = _SUBSCRIPTIONS_OF_ADDRESS * limits.subscriptions
        if len(session.answers) >= limits.subscriptions or self._subscriptions[address] >= most:
            return PushRefusal.SUBSCRIPTIONS
        if memory.is_full(limits.memory):
            return PushRefusal.MEMORY
        if not memory.may_grow(address, limits.memory):
            return PushRefusal.SHARE
        self._count(address, 1)
        return None

    def remove_subscription(self, session: Subscriber) -> None:
        self._count(session.connection.address, -1)

    def _count(self, address: bytes, change: int) -> None:
        self.counts.subscriptions += change
        self.counts.memory.add(address, change * SUBSCRIPTION)
        self._subscriptions[address] += change
        if not self._subscriptions[address]:
            del self._subscriptions[address]
