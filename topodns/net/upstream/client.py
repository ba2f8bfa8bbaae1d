"""One server that is asked, over whichever transports it is asked for."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from topodns.edge.upstream.deadlines import Deadlines
from topodns.edge.upstream.endpoint import Endpoint
from topodns.edge.upstream.failures import CLOSED
from topodns.edge.upstream.limits import Counts, UpstreamLimits
from topodns.edge.upstream.matching import RandomIds
from topodns.edge.upstream.tcp import TcpCarrier
from topodns.edge.upstream.udp import UdpCarrier
from topodns.resolve.exchange import Came, Failure, Transport

Carrier = UdpCarrier | TcpCarrier
"""Asks one server over one transport; its `exchange` is that of `Upstream` but for that."""


class DnsUpstream:
    """An `Upstream` of `resolve.exchange`: UDP and TCP, or with TLS nothing but that."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        endpoint: Endpoint,
        limits: UpstreamLimits,
        counts: defaultdict[Transport, Counts],
    ) -> None:
        self.name = endpoint.name
        self._deadlines = Deadlines(loop, limits.sweep)
        self._closed = False
        ids = RandomIds()
        connected = Transport.TCP if endpoint.tls is None else Transport.TLS
        over_connections = TcpCarrier(loop, endpoint, limits, self._deadlines, ids, counts[connected])
        # Those that may be asked directly, too, until `close`.
        self.carriers: Mapping[Transport, Carrier] = {connected: over_connections}
        if endpoint.tls is None:
            over_udp = UdpCarrier(loop, endpoint, limits, self._deadlines, ids, counts[Transport.UDP])
            self.carriers = {Transport.UDP: over_udp, connected: over_connections}

    @property
    def counts(self) -> Mapping[Transport, Counts]:
        """What has been counted, by each transport that there is."""
        return {transport: carrier.counts for transport, carrier in self.carriers.items()}

    @property
    def in_flight(self) -> int:
        """Queries that are waited for."""
        return len(self._deadlines)

    @property
    def open_sockets(self) -> int:
        return sum(carrier.open_sockets for carrier in self.carriers.values())

    def exchange(self, message: bytes, question: bytes, transport: Transport, timeout: float, came: Came) -> None:
        """As `Upstream.exchange`. It is given up up to `UpstreamLimits.sweep` seconds late."""
        carrier = self.carriers.get(transport)
        if self._closed:
            came(CLOSED)
        elif carrier is None:
            came(Failure(f"not to be asked over {transport.value}", timed_out=False))
        else:
            carrier.exchange(message, question, timeout, came)

    def close(self) -> None:
        """As `Upstream.close`: sockets go when what is in flight is settled, at the latest when its time is over."""
        self._closed = True
        for carrier in self.carriers.values():
            carrier.close()
