"""An upstream's endpoint, limits, counters and failures."""

import errno
import os
import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

from topodns.query.upstream import Failure


@dataclass(frozen=True, slots=True)
class UpstreamEndpoint:
    """Local and remote address of an upstream, and its TLS settings."""

    address: str
    port: int
    family: socket.AddressFamily
    peer: tuple[Any, ...]  # argument of `socket.connect`
    source_address: str  # "": the kernel's choice
    tls: ssl.SSLContext | None
    server_name: str  # name or address that the certificate must have; with TLS never ""

    @property
    def name(self) -> str:
        """Address and port for metrics and logs: "10.0.0.10:53", "[2001:db8::1]:853"."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    @property
    def source(self) -> tuple[str, int] | None:
        """Argument of `socket.bind`, with port 0 (the kernel's choice); None if there is no source address."""
        return (self.source_address, 0) if self.source_address else None


def resolve_endpoint(
    address: str, port: int, tls: ssl.SSLContext | None, server_name: str, source_address: str
) -> UpstreamEndpoint:
    """The endpoint for an IP address as text; no name is resolved.

    The zone of an address that is not link-local says nothing, and is left out (RFC 4007 section 11). Raises ValueError
    for any other text, OSError for an interface that does not exist here.
    """
    parsed = ip_address(address)  # getaddrinfo would take 10.1 for 10.0.0.1
    if not parsed.is_link_local:
        address = address.partition("%")[0]
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV)) from None
    family, _, _, _, peer = found[0]
    return UpstreamEndpoint(address, port, family, peer, source_address, tls, server_name or address)


TIMED_OUT: Final = Failure("i/o timeout", timed_out=True)
LOST: Final = Failure("connection closed by the upstream", timed_out=False)
BUSY: Final = Failure("too many queries in flight", timed_out=False)
CLOSED: Final = Failure("no longer in use", timed_out=False)


def failure_of(reason: Exception | None) -> Failure:
    """The failure for an error of a socket or of TLS; None means an orderly close."""
    if reason is None:
        return LOST
    if isinstance(reason, TimeoutError):
        return TIMED_OUT
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Failure(f"certificate not accepted: {reason.verify_message}", timed_out=False)
    if isinstance(reason, ssl.SSLError):
        why = getattr(reason, "reason", None) or "protocol error"  # None if not raised by OpenSSL
        return Failure(f"TLS: {why.lower().replace('_', ' ')}", timed_out=False)
    if isinstance(reason, OSError) and reason.errno:
        return Failure(os.strerror(reason.errno).lower(), timed_out=False)
    return Failure(str(reason) or type(reason).__name__, timed_out=False)


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    """The limits of one upstream. Times are in seconds."""

    udp_queries: int = 4096  # in flight over UDP, each with its own socket; more fail at once
    connections: int = 2  # over TCP or TLS; a second one may reach another backend of a Service
    in_flight: int = 8192  # queries without a reply on one connection, abandoned ones included
    connect: float = 1.0  # least time for a connection attempt, even if the query that caused it has less left
    expire: float = 10.0  # time without a query in flight until a connection is closed; CoreDNS's `expire`
    max_age: float = 60.0  # each connection takes queries for a random time between half and all of it; 0: for ever
    max_idle_conns: int = 0  # connections kept without a query in flight; 0: all of them
    unacknowledged: float = 1.0  # time for the upstream's TCP to acknowledge data (TCP_USER_TIMEOUT, RFC 5482)
    second_attempt: float = 1.0  # between two attempts at a connection beside one that works
    udp_patience: float = 0.5  # time until an unanswered query over UDP is sent again from another port; 0: never
    tcp_patience: float = 0.5  # time without any reply until a connection is silent and its queries are hedged
    sent_twice: int = 1024  # hedged queries (sent twice) of one transport at a time
    sweep: float = 0.05  # between two checks of the deadlines: a timeout may be late by this


@dataclass(slots=True)
class Counts:
    """Counters of one transport of one upstream. Each sending of a query is a hit (on an open connection) or a miss."""

    hits: int = 0  # sent over an open connection: coredns_proxy_conn_cache_hits_total
    misses: int = 0  # sent over a new socket or one still connecting: coredns_proxy_conn_cache_misses_total
    timed_out: int = 0
    resent: int = 0  # because the connection was lost or silent, or no reply came over UDP
    strays: int = 0  # messages ignored because they match no query in flight
