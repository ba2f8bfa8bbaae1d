"""The counts of the whole process that no tally has: every generation goes on with them, so that no counter falls.

Plain numbers by CoreDNS's labels; `published_resolver` says under which names.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from topodns.edge.upstream import Counts
from topodns.resolve.cache import CacheCounts, zones_label
from topodns.resolve.exchange import Transport
from topodns.resolve.forward import ForwardCounts, InFlight
from topodns.resolve.loop import LoopCounts
from topodns.resolve.part_counts import AutopathCounts, Dns64Counts, TemplateCounts
from topodns.resolve.tally import server_label
from topodns.settings.server import ServerBlock

Connections = defaultdict[Transport, Counts]
"""What the connections to one upstream have seen, by transport."""


class CacheLabels(NamedTuple):
    server: str
    zones: str
    view: str


class ServerLabels(NamedTuple):
    server: str
    view: str


@dataclass(eq=False)
class Counted:
    """Each entry is made when it is first asked for."""

    forward: ForwardCounts = field(default_factory=ForwardCounts)
    in_flight: InFlight = field(default_factory=InFlight)
    connections: defaultdict[str, Connections] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counts))
    )  # by upstream: its address as `to` shows it
    loop: LoopCounts = field(default_factory=LoopCounts)
    caches: defaultdict[CacheLabels, CacheCounts] = field(default_factory=lambda: defaultdict(CacheCounts))
    templates: defaultdict[ServerLabels, TemplateCounts] = field(default_factory=lambda: defaultdict(TemplateCounts))
    autopath: defaultdict[str, AutopathCounts] = field(default_factory=lambda: defaultdict(AutopathCounts))
    dns64: defaultdict[str, Dns64Counts] = field(default_factory=lambda: defaultdict(Dns64Counts))


def servers_of(block: ServerBlock) -> tuple[str, ...]:
    """The values of CoreDNS's label `server` for a block, in the order of the Corefile."""
    hosts = block.bind or ("",)
    return tuple(dict.fromkeys(server_label((host, key.port)) for host in hosts for key in block.keys))


def view_label(block: ServerBlock) -> str:
    return block.view.name if block.view is not None else ""


def cache_labels(block: ServerBlock, server: str) -> CacheLabels:
    """Of the cache of a block, which has one."""
    assert block.cache is not None
    return CacheLabels(server, zones_label(block.cache), view_label(block))
