"""Counters of the process beside the tallies (query counters): all generations share them, so that no counter falls.

Plain numbers by CoreDNS's labels; `forward_metrics` and `plugin_metrics` have the metric names.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from topodns.dnsserver.settings import ServerBlock
from topodns.net.upstream.address import Counts, UdpSockets
from topodns.net.upstream.client import Connections
from topodns.plugins.cache.setup import CacheCounts, zones_label
from topodns.plugins.forward.counts import ForwardCounts
from topodns.plugins.forward.limits import InFlight
from topodns.plugins.loop import LoopCounts
from topodns.query.counters import server_label
from topodns.query.plugin_counts import AutopathCounts, Dns64Counts, TemplateCounts


class CacheLabels(NamedTuple):
    server: str
    zones: str
    view: str


class ServerLabels(NamedTuple):
    server: str
    view: str


@dataclass(eq=False)
class Counted:
    """The counters by subject. Each entry is created at its first use."""

    forward: ForwardCounts = field(default_factory=ForwardCounts)
    in_flight: InFlight = field(default_factory=InFlight)
    udp_sockets: UdpSockets = field(default_factory=UdpSockets)  # of all upstreams
    connections: defaultdict[str, Connections] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counts))
    )  # by upstream: its address as `to` shows it
    loop: LoopCounts = field(default_factory=LoopCounts)
    caches: defaultdict[CacheLabels, CacheCounts] = field(default_factory=lambda: defaultdict(CacheCounts))
    templates: defaultdict[ServerLabels, TemplateCounts] = field(default_factory=lambda: defaultdict(TemplateCounts))
    autopath: defaultdict[str, AutopathCounts] = field(default_factory=lambda: defaultdict(AutopathCounts))
    dns64: defaultdict[str, Dns64Counts] = field(default_factory=lambda: defaultdict(Dns64Counts))

    def bound_udp_sockets(self, most: int) -> None:
        """Limit the sockets of queries to upstreams, and the queries in flight, so that each of these gets a socket."""
        self.udp_sockets.most = most
        self.in_flight.bound(self.udp_sockets.questions)


def servers_of(block: ServerBlock) -> tuple[str, ...]:
    """The values of CoreDNS's label `server` for a block, in the order of the Corefile."""
    hosts = block.bind or ("",)
    return tuple(dict.fromkeys(server_label((host, key.port)) for host in hosts for key in block.keys))


def view_label(block: ServerBlock) -> str:
    return block.view.name if block.view is not None else ""


def cache_labels(block: ServerBlock, server: str) -> CacheLabels:
    """The labels of the cache of a block, which must have one."""
    assert block.cache is not None
    return CacheLabels(server, zones_label(block.cache), view_label(block))
