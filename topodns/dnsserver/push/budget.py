"""Limits on DNS push: sessions, subscriptions and their memory, for each client address and for the process.

A client is an address, as several programs behind one cannot be told apart. The rule for memory: a new subscription
needs free memory, and an address gets it only if the memory that it holds already is not larger than the free memory,
which is the limit less the memory of all addresses. So one address alone can fill half of the limit, and beside others
half of what these leave. An answer that grows later may exceed the limit. Addresses are packed.
"""

from dataclasses import dataclass, field
from typing import Final

from topodns.dnsserver.push.subscriber import Subscriber
from topodns.plugins.push import SESSIONS_OF_ADDRESS, PushCounts, PushRefusal, SessionEnd
from topodns.query.session import PushLimits

SUBSCRIPTION: Final = 120
"""Octets of a subscription beside its answer, as measured by bench/push_memory.py."""

_SUBSCRIPTIONS_OF_ADDRESS: Final = 2  # times those of one session: a node cache that reconnects has two for a moment


@dataclass(slots=True)
class HeldByAddress:
    """The resources of one client address. `octets`: of its subscriptions, and of the answers that count for it."""

    sessions: dict[Subscriber, None] = field(default_factory=dict)  # the oldest first
    subscriptions: int = 0
    octets: int = 0


class PushShares:
    """The resources of each client address (packed), on all listeners of the process together."""

    def __init__(self) -> None:
        self._held: dict[bytes, HeldByAddress] = {}
        self._crowds: list[dict[bytes, None]] = [{} for _ in range(SESSIONS_OF_ADDRESS + 1)]  # by sessions

    def __len__(self) -> int:
        """The number of addresses with a session, a subscription or octets."""
        return len(self._held)

    def of(self, address: bytes) -> HeldByAddress:
        """The resources of this address; not to be changed by the caller."""
        return self._held.get(address) or HeldByAddress()

    def add_session(self, address: bytes, session: Subscriber) -> None:
        held = self._held.setdefault(address, HeldByAddress())
        self._crowds[len(held.sessions)].pop(address, None)
        held.sessions[session] = None
        self._crowds[len(held.sessions)][address] = None

    def remove_session(self, address: bytes, session: Subscriber) -> None:
        held = self._held[address]
        del self._crowds[len(held.sessions)][address]
        del held.sessions[session]
        if held.sessions:
            self._crowds[len(held.sessions)][address] = None
        self._forget_if_empty(address, held)

    def add(self, address: bytes, subscriptions: int, octets: int) -> None:
        """Add to the resources of an address; negative numbers subtract."""
        held = self._held.setdefault(address, HeldByAddress())
        held.subscriptions += subscriptions
        held.octets += octets
        self._forget_if_empty(address, held)

    def oldest_of_most(self, than: int) -> Subscriber | None:
        """The oldest session of an address with the most sessions, if these are more than `than`."""
        for crowd in self._crowds[:than:-1]:
            for address in crowd:
                return next(iter(self._held[address].sessions))
        return None

    def _forget_if_empty(self, address: bytes, held: HeldByAddress) -> None:
        if not (held.sessions or held.subscriptions or held.octets):
            del self._held[address]


class PushBudget:
    """Compares the counts and shares of the process with the limits of one listener, and keeps them."""

    def __init__(self, limits: PushLimits, counts: PushCounts, shares: PushShares) -> None:
        self.limits = limits
        self.counts = counts
        self.shares = shares

    def add_session(self, address: bytes, session: Subscriber) -> PushRefusal | None:
        """Count a session, unless a limit forbids it.

        Where all are taken, an address with at least two more sessions than this one loses its oldest.
        """
        held = len(self.shares.of(address).sessions)
        if held >= SESSIONS_OF_ADDRESS:
            return PushRefusal.SESSIONS
        if self.counts.sessions >= self.limits.sessions:
            evicted = self.shares.oldest_of_most(held + 1)
            if evicted is None:
                return PushRefusal.SESSIONS
            evicted.evict()
        self.counts.sessions += 1
        self.shares.add_session(address, session)
        return None

    def remove_session(self, address: bytes, session: Subscriber, reason: SessionEnd) -> None:
        """Count the end of a session; its subscriptions are removed one by one."""
        self.counts.sessions -= 1
        self.counts.ended[reason] += 1
        self.shares.remove_session(address, session)

    def add_subscription(self, address: bytes, held: int) -> PushRefusal | None:
        """Count a subscription of a session that holds so many, unless a limit forbids it."""
        counts, limits = self.counts, self.limits
        of_address = self.shares.of(address)
        most = _SUBSCRIPTIONS_OF_ADDRESS * limits.subscriptions
        if held >= limits.subscriptions or of_address.subscriptions >= most:
            return PushRefusal.SUBSCRIPTIONS
        free = limits.memory - counts.octets
        if free <= 0:
            return PushRefusal.MEMORY
        if of_address.octets > free:
            return PushRefusal.SHARE
        self._count(address, 1)
        return None

    def remove_subscription(self, address: bytes) -> None:
        self._count(address, -1)

    def _count(self, address: bytes, change: int) -> None:
        self.counts.subscriptions += change
        self.counts.octets += change * SUBSCRIPTION
        self.shares.add(address, change, change * SUBSCRIPTION)
