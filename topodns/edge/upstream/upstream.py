"""One server that is asked, over whichever transports it is asked for."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from topodns.edge.upstream.deadlines import Deadlines
from topodns.edge.upstream.endpoint import Endpoint
from topodns.edge.upstream.failures import CLOSED, failed
from topodns.edge.upstream.limits import Counts, UpstreamLimits
from topodns.edge.upstream.matching import RandomIds
from topodns.edge.upstream.tcp import TcpCarrier
from topodns.edge.upstream.udp import UdpCarrier
from topodns.resolve.course import Outcome
from topodns.resolve.exchange import Failure, Transport


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
        self._carriers: Mapping[Transport, UdpCarrier | TcpCarrier] = {connected: over_connections}
        if endpoint.tls is None:
            over_udp = UdpCarrier(loop, endpoint, limits, self._deadlines, ids, counts[Transport.UDP])
            self._carriers = {Transport.UDP: over_udp, connected: over_connections}

    @property
    def counts(self) -> Mapping[Transport, Counts]:
        """What has been counted, by each transport that there is."""
        return {transport: carrier.counts for transport, carrier in self._carriers.items()}

    @property
    def in_flight(self) -> int:
        """Queries that are waited for."""
        return len(self._deadlines)

    @property
    def open_sockets(self) -> int:
        return sum(carrier.open_sockets for carrier in self._carriers.values())

    def exchange(self, message: bytes, transport: Transport, timeout: float) -> Outcome[bytes | Failure]:
        """As `Upstream.exchange`. It is given up up to `UpstreamLimits.sweep` seconds late."""
        carrier = self._carriers.get(transport)
        if self._closed:
            return failed(CLOSED)
        if carrier is None:
            return failed(Failure(f"not to be asked over {transport.value}", timed_out=False))
        return carrier.exchange(message, timeout)

    def close(self) -> None:
        """As `Upstream.close`: sockets go when what is in flight is settled, at the latest when its time is over."""
        self._closed = True
        for carrier in self._carriers.values():
            carrier.close()
