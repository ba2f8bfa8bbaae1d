"""What one upstream may cost, and what has been counted of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    """The numbers behind one upstream. Times are in seconds."""

    udp_sockets: int = 4096  # queries in flight over UDP, each with a socket of its own; more fail at once
    connections: int = 2  # over TCP or TLS; a second one may reach another backend of a Service
    in_flight: int = 2048  # queries without a reply on one connection, those that were given up included
    connect: float = 1.0  # an attempt at a connection has that time even if the query that began it has less
    expire: float = 10.0  # without a query in flight, then a connection is closed; CoreDNS's `expire`
    max_age: float = 60.0  # each connection takes queries for a random half to whole of it; 0: for ever
    max_idle_conns: int = 0  # connections kept without a query in flight; 0: all of them
    unacknowledged: float = 1.0  # that the other side's TCP may be silent about what it was sent (RFC 5482)
    second_attempt: float = 1.0  # between two attempts at a connection beside one that works
    sweep: float = 0.05  # between two looks at the deadlines: so much later than asked a query may be given up


@dataclass(slots=True)
class Counts:
    """What one transport of one upstream has seen. A query is a hit or a miss each time that it is sent."""

    hits: int = 0  # sent over a connection that was open: coredns_proxy_conn_cache_hits_total
    misses: int = 0  # sent over one made for it, or waiting for one: coredns_proxy_conn_cache_misses_total
    timed_out: int = 0
    resent: int = 0  # because the connection was lost
    strays: int = 0  # messages ignored: no reply to anything that was waited for
