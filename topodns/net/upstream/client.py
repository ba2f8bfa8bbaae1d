"""One upstream server, over UDP and TCP, or over TLS."""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from topodns.net.loop_timers import LoopTimers
from topodns.net.upstream.address import CLOSED, Counts, UpstreamEndpoint, UpstreamLimits, resolve_endpoint
from topodns.net.upstream.in_flight import Deadlines, RandomIds
from topodns.net.upstream.tcp_transport import TcpCarrier
from topodns.net.upstream.udp_transport import UdpCarrier, UdpSockets
from topodns.query.upstream import Failure, Transport, UpstreamQuery

if TYPE_CHECKING:
    from topodns.net.upstream.dso_session import SessionUser
    from topodns.net.upstream.https_transport import HttpsCarrier

Connections = defaultdict[Transport, Counts]
"""Counters of one upstream by transport."""


class DnsUpstream:
    """Implements `query.upstream.Upstream`: over UDP and TCP, or with TLS settings over TLS or HTTPS only.

    Callers may also use the `carriers` directly, until `close`.
    """

    carriers: "Mapping[Transport, UdpCarrier | TcpCarrier | HttpsCarrier]"

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        endpoint: UpstreamEndpoint,
        limits: UpstreamLimits,
        counts: defaultdict[Transport, Counts],
        sockets: UdpSockets,
        https: str = "",
    ) -> None:
        self.name = endpoint.name
        self._deadlines = Deadlines(LoopTimers(), limits.sweep)
        self._closed = False
        self._over_connections: TcpCarrier | None = None
        if https:
            # Imported here, as few upstreams are asked over HTTPS.
            from topodns.net.upstream.https_transport import HttpsCarrier

            over_https = HttpsCarrier(loop, endpoint, limits, self._deadlines, counts[Transport.HTTPS], https)
            self.carriers = {Transport.HTTPS: over_https}
            return
        ids = RandomIds()
        connected = Transport.TCP if endpoint.tls is None else Transport.TLS
        over_connections = TcpCarrier(loop, endpoint, limits, self._deadlines, ids, counts[connected])
        self._over_connections = over_connections
        self.carriers = {connected: over_connections}
        if endpoint.tls is None:
            over_udp = UdpCarrier(loop, endpoint, limits, self._deadlines, ids, counts[Transport.UDP], sockets)
            self.carriers = {Transport.UDP: over_udp, connected: over_connections}

    @property
    def counts(self) -> Mapping[Transport, Counts]:
        """The counters of each available transport."""
        return {transport: carrier.counts for transport, carrier in self.carriers.items()}

    def exchange(self, query: UpstreamQuery, transport: Transport, timeout: float, now: float) -> None:
        """Send a query, as `Upstream.exchange`. A timeout may be up to `UpstreamLimits.sweep` seconds late.

        A Failure at once after `close`, for a transport that the upstream does not have, or if too many are in flight.
        """
        carrier = self.carriers.get(transport)
        if self._closed:
            query.on_reply(CLOSED)
        elif carrier is None:
            query.on_reply(Failure(f"not to be asked over {transport.value}", timed_out=False))
        else:
            carrier.exchange(query, timeout, now)

    def begin_session(self, user: "SessionUser") -> bool:
        """Begin a DSO session over TCP or TLS, as `TcpCarrier.begin_session`."""
        sessions = self._over_connections
        return sessions is not None and not self._closed and sessions.begin_session(user)

    def close(self) -> None:
        """Send no more queries, as `Upstream.close`: sockets close when those in flight are answered or time out."""
        self._closed = True
        for carrier in self.carriers.values():
            carrier.close()


_DEFAULTS = UpstreamLimits()


def open_upstream(
    loop: asyncio.AbstractEventLoop,
    address: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    server_name: str = "",
    source_address: str = "",
    limits: UpstreamLimits = _DEFAULTS,
    counts: defaultdict[Transport, Counts] | None = None,
    sockets: UdpSockets | None = None,
    https: str = "",
) -> DnsUpstream:
    """The upstream at an address; no socket is opened yet.

    `address` and `source_address`: IP addresses as text, link-local ones with `%interface`; `source_address` "" leaves
    the choice to the kernel. With `tls`, only TLS is used, and the certificate must be for `server_name`, or, if
    `server_name` is "", for `address`; unless the context checks less.

    `counts`: counters to continue, which other upstreams may share. `sockets`: the budget shared by all upstreams; None
    for one of its own. `https`: the HTTP method, POST or GET, of an upstream that is asked over HTTPS; needs `tls`.

    Raises ValueError if `address` is no IP address, OSError if its interface does not exist here. The upstream belongs
    to `loop`; use it in that loop only.
    """
    endpoint = resolve_endpoint(address, port, tls, server_name, source_address)
    return DnsUpstream(
        loop, endpoint, limits, defaultdict(Counts) if counts is None else counts, sockets or UdpSockets(), https
    )
