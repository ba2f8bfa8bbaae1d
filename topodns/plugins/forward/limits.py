"""How many questions may wait for upstreams at a time: all together, and of one client."""

from typing import Final

MAX_TOTAL: Final = 4096
MAX_PER_CLIENT: Final = 256  # one that floods leaves room for fifteen others


class InFlight:
    """The questions that wait, whoever forwards them; one object for the whole process.

    Beyond the limits the newest is dropped: a client that floods gets no answers, all others do.
    """

    __slots__ = ("_by_client", "_max_per_client", "_max_total", "dropped_by_client", "dropped_in_total", "total")

    def __init__(self, max_total: int = MAX_TOTAL, max_per_client: int = MAX_PER_CLIENT) -> None:
        self._max_total = max_total
        self._max_per_client = max_per_client
        self._by_client: dict[bytes, int] = {}
        self.total = 0
        self.dropped_in_total = 0  # because of all that wait
        self.dropped_by_client = 0  # because of those of the same client

    def enter(self, address: bytes) -> bool:
        """Whether one more question of this client may wait; if so, `leave` has to follow, else perhaps `note_drop`."""
        waiting = self._by_client.get(address, 0)
        if waiting >= self._max_per_client or self.total >= self._max_total:
            return False
        self._by_client[address] = waiting + 1
        self.total += 1
        return True

    def note_drop(self, address: bytes) -> None:
        """Count a question of this client that was not let in, and is dropped for that."""
        if self._by_client.get(address, 0) >= self._max_per_client:
            self.dropped_by_client += 1
        else:
            self.dropped_in_total += 1

    def leave(self, address: bytes) -> None:
        """One question of this client waits no more."""
        self.total -= 1
        waiting = self._by_client[address] - 1
        if waiting:
            self._by_client[address] = waiting
        else:
            del self._by_client[address]
