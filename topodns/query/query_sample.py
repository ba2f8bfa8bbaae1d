"""A sample of the last minutes' queries, over all sockets of the process, for `topodns top` and the topology page.

One query is taken every INTERVAL at most, and stands for all queries since the one before it. So the cost does not grow
with the load, and sums of `queries` are estimates of true counts.
"""

from collections import deque
from collections.abc import Iterator
from itertools import dropwhile
from typing import Final, NamedTuple

MINUTES: Final = 5
INTERVAL: Final = 1 / 16  # seconds between two sampled queries, at least
MAX_SIZE: Final = 512  # octets of a message; a longer one is not taken
_RCODE_AT, _RCODE = 3, 0xF  # its octet in the header, and its bits
_MOST: Final = round(MINUTES * 60 / INTERVAL)


class SampledQuery(NamedTuple):
    at: float  # seconds, of the clock of `UdpListener` and the TCP schedule
    queries: int  # for which it stands, itself included
    message: bytes
    address: bytes  # of the client, packed; IPv4 perhaps mapped into IPv6
    rcode: int | None  # of its reply, the four bits of the header; None: it has none, or not yet


class QuerySample:
    """The sampled queries.

    A socket adds to `queries` what it receives, and calls `take` for the first one once the clock shows `due`.
    """

    __slots__ = ("_taken", "due", "queries")

    def __init__(self) -> None:
        self.due = 0.0  # seconds
        self.queries = 0  # since the last one taken
        self._taken: deque[SampledQuery] = deque(maxlen=_MOST)

    def take(self, now: float, message: bytes, address: bytes, reply: object) -> None:
        """Take this message, which is among `queries`, for all of them. `reply`: octets, if they exist already."""
        if len(message) > MAX_SIZE:
            return
        rcode = reply[_RCODE_AT] & _RCODE if isinstance(reply, bytes) and len(reply) > _RCODE_AT else None
        self._taken.append(SampledQuery(now, self.queries, message, address, rcode))
        self.queries = 0
        self.due = now + INTERVAL

    def recent(self, now: float) -> Iterator[SampledQuery]:
        """The sampled queries of the last MINUTES, the oldest first."""
        return dropwhile(lambda each: each.at < now - MINUTES * 60, tuple(self._taken))
