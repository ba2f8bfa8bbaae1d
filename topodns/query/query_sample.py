"""A sample of the last minutes' queries, over all sockets of the process, for `topodns top`, the topology page and the
metric of distances.

While there are few, all queries are taken, else one after a random number of others, so that a query's place in a burst
makes no difference. One that is taken counts for those passed over since the one before it: sums are estimates.

The number of queries passed over grows as more are taken than RATE a second allows, as if each query taken cost a
token, of which there are MOST_TOKENS at rest. So the cost does not grow with the load.
"""

from collections import deque
from collections.abc import Iterator
from itertools import dropwhile
from random import Random
from typing import Final, NamedTuple

from topodns.dns.message import Query
from topodns.dns.wire_format import HEADER_SIZE
from topodns.dns.wire_reader import WireError, read_query

MINUTES: Final = 5
RATE: Final = 16  # queries taken a second, in the long run
MAX_SIZE: Final = 512  # octets of a message that is kept; a longer one counts only
MOST_TOKENS: Final = 64.0
_ALL: Final = 32.0  # tokens from which on every query is taken
_HALVING: Final = 4.0  # tokens below that which double the number passed over
_STALE: Final = 2.0  # seconds
_MOST: Final = MINUTES * 60 * RATE + round(MOST_TOKENS)
_RCODE_AT, _RCODE = 3, 0xF  # its octet in the header, and its bits
_RESPONSE_OR_OPCODE: Final = 0xF8  # QR and OPCODE, in the third octet of the header


class SampledQuery(NamedTuple):
    at: float  # seconds, of the clock of `UdpListener` and the TCP schedule
    queries: int  # that it counts for, itself included
    message: bytes
    address: bytes  # of the client, packed; IPv4 perhaps mapped into IPv6
    rcode: int | None  # of its reply, the four bits of the header; None: it has none, or not yet


def query_of(message: bytes) -> Query | None:
    """The query in a sampled message; None for a response, another opcode, and one that is malformed."""
    if len(message) < HEADER_SIZE or message[2] & _RESPONSE_OR_OPCODE:
        return None
    try:
        return read_query(message)
    except WireError:
        return None


class QuerySample:
    """The sampled queries.

    A socket counts `left` down for each query that it receives, and calls `take` for the one that makes it 0; or
    `advance`, which sets `left` anew, and `add` once the reply exists. After `until` it calls `redraw` first.
    """

    __slots__ = ("_gap", "_rng", "_taken", "_tokens", "_tokens_at", "added", "left", "until")

    def __init__(self, rng: Random | None = None) -> None:
        self.left = 1  # queries until the next one to take, itself included
        self.added = 0  # queries added since the start, kept or not
        self.until = 0.0  # seconds: after a flood `left` is for a rate that has passed
        self._rng = rng or Random()
        self._gap = 1  # `left` after the last `take`
        self._tokens, self._tokens_at = MOST_TOKENS, 0.0
        self._taken: deque[SampledQuery] = deque(maxlen=_MOST)

    def take(self, now: float, message: bytes, address: bytes, reply: object) -> None:
        """Take this message. `reply`: octets, if they exist already."""
        self.add(now, self.advance(now), message, address, reply)

    def advance(self, now: float) -> int:
        """Choose the next query to take. Returns how many the present one counts for."""
        gap = self._gap
        self._draw(now, 1)
        return gap

    def redraw(self, now: float) -> None:
        """Choose the next query to take anew. Those that were passed over are booked for no client: a flood's."""
        passed = self._gap - self.left
        self._draw(now, 0)
        if passed:
            self.add(now, passed, b"", b"", None)

    def _draw(self, now: float, cost: int) -> None:
        tokens = min(MOST_TOKENS, self._tokens + (now - self._tokens_at) * RATE) - cost
        self._tokens, self._tokens_at = tokens, now
        mean = 2 ** ((_ALL - tokens) / _HALVING)
        self.left = self._gap = 1 if mean <= 1 else 1 + int(self._rng.expovariate(1 / mean))
        self.until = now + _STALE

    def add(self, now: float, queries: int, message: bytes, address: bytes, reply: object) -> None:
        """Keep this message, which counts for so many queries; only their number if it is longer than MAX_SIZE."""
        if len(message) > MAX_SIZE:
            message = b""
        rcode = reply[_RCODE_AT] & _RCODE if isinstance(reply, bytes) and len(reply) > _RCODE_AT else None
        self._taken.append(SampledQuery(now, queries, message, address, rcode))
        self.added += 1

    def recent(self, now: float) -> Iterator[SampledQuery]:
        """The sampled queries of the last MINUTES, the oldest first."""
        return dropwhile(lambda each: each.at < now - MINUTES * 60, tuple(self._taken))

    def since(self, added: int) -> tuple[SampledQuery, ...]:
        """The sampled queries after the first `added` ones, without those that are no longer kept."""
        held = tuple(self._taken)
        return held[max(0, len(held) - (self.added - added)) :]
