"""Limits for DNS clients over TCP, and a listener's counters. Values only."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class TcpLimits:
    """Limits for the clients of one listener (RFC 7766 section 6.2).

    Above `connections`, `per_prefix` or `per_address` a new connection may evict an open one; see `net.tcp_admission`.
    `idle`, `message`, `write` and `awaited` set the deadline of a connection; see `net.tcp_deadlines`.
    """

    connections: int = 1000
    per_prefix: int = 500  # connections of a /24 of IPv4 or a /64 of IPv6
    per_address: int = 300  # connections
    in_flight: int = 100  # queries of one connection answered in one batch, or waiting for an upstream
    idle: float = 10.0  # seconds without a message
    write: float = 10.0  # seconds for a client whose write buffer is full to read on
    queries: int = 0  # of one connection, which is closed after their replies; 0: no limit
    message: float = 3.0  # seconds from the first octet of a message to its last
    awaited: float = 5.0  # seconds that closing waits for replies of upstreams
    write_buffer: int = 256 << 10  # octets of unread replies of one connection; above, reading from it stops
    read_size: int = 8 << 10  # octets read at once
    begun: int = 16 << 10  # octets of an incomplete message that each connection may keep
    unfinished: int = 4 << 20  # octets beyond `begun` that all connections together may keep
    unread: int = 16 << 20  # octets of unread replies, kernel buffers included; above, the slowest clients are dropped
    sweep: float = 0.25  # seconds between two checks of the deadlines

    def within(self, connections: int) -> "TcpLimits":
        """These limits with at most `connections`; if these are fewer, with those per address and network reduced in
        proportion, to 1 at least.
        """
        if connections >= self.connections:
            return self
        return replace(
            self,
            connections=connections,
            per_prefix=max(1, self.per_prefix * connections // self.connections),
            per_address=max(1, self.per_address * connections // self.connections),
        )


@dataclass(slots=True)
class TcpCounts:
    """Counters of one listener since it was opened, in connections."""

    accepted: int = 0
    refused: int = 0  # connections over a limit, closed at once
    evicted: int = 0  # closed to make room for a newer one
    timed_out: int = 0
    over_memory: int = 0  # closed because `unfinished` or `unread` was used up
