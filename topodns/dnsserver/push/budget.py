"""How many sessions and subscriptions the clients of the process may have, by address and in all."""

from topodns.dnsserver.push.answers import SUBSCRIPTION
from topodns.plugins.push import SESSIONS_OF_ADDRESS, PushCounts, PushRefusal, SessionEnd
from topodns.query.session import PushLimits

_SUBSCRIPTIONS_OF_ADDRESS = 2  # times those of one session: a node cache that reconnects has two sessions for a moment


class PushBudget:
    """Compares the counts of the process with the limits of one listener, and keeps them. Addresses are packed."""

    def __init__(self, limits: PushLimits, counts: PushCounts) -> None:
        self.limits = limits
        self.counts = counts

    def add_session(self, address: bytes) -> PushRefusal | None:
        """Count a session, unless a limit forbids it."""
        counts = self.counts
        held = counts.addresses.get(address, (0, 0))
        if counts.sessions >= self.limits.sessions or held[0] >= SESSIONS_OF_ADDRESS:
            return PushRefusal.SESSIONS
        counts.sessions += 1
        counts.addresses.setdefault(address, [0, 0])[0] += 1
        return None

    def remove_session(self, address: bytes, reason: SessionEnd) -> None:
        """Count the end of a session; its subscriptions are removed one by one."""
        self.counts.sessions -= 1
        self.counts.ended[reason] += 1
        self._release(address, 0)

    def add_subscription(self, address: bytes, held: int) -> PushRefusal | None:
        """Count a subscription of a session that holds so many, unless a limit forbids it."""
        counts, limits = self.counts, self.limits
        of_address = counts.addresses[address]
        if held >= limits.subscriptions or of_address[1] >= _SUBSCRIPTIONS_OF_ADDRESS * limits.subscriptions:
            return PushRefusal.SUBSCRIPTIONS
        if counts.octets >= limits.memory:
            return PushRefusal.MEMORY
        counts.subscriptions += 1
        counts.octets += SUBSCRIPTION
        of_address[1] += 1
        return None

    def remove_subscription(self, address: bytes) -> None:
        self.counts.subscriptions -= 1
        self.counts.octets -= SUBSCRIPTION
        self._release(address, 1)

    def _release(self, address: bytes, index: int) -> None:
        of_address = self.counts.addresses[address]
        of_address[index] -= 1
        if not any(of_address):
            del self.counts.addresses[address]
