"""The steps of a server block at one address: what is made of its workings, its cluster and its listener.

A step that only some Corefiles have is imported where it is made: a node's cache is half the size without them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from topodns.counted import Counted, ServerLabels, cache_labels, view_label
from topodns.dns.message import Query
from topodns.dns.names import Name, name_text
from topodns.resolve.blocks import Block
from topodns.resolve.cache import ResponseCache
from topodns.resolve.chain import Parts
from topodns.resolve.chase import Chaser, Neighbours
from topodns.resolve.road import Road
from topodns.resolve.step import Around, Client, Step
from topodns.resolve.tally import server_label
from topodns.settings.server import DEFAULT_UDP_SIZE
from topodns.workings import Workings

if TYPE_CHECKING:
    from topodns.clusters import Cluster


@dataclass(frozen=True, slots=True)
class Site:
    """Where a block answers. `own_addresses` (packed) are those of the machine."""

    host: str  # "" is every address of both families
    port: int
    match: Callable[[Query, Client], Block | None]  # the block of this listener that a question is for
    own_addresses: frozenset[bytes]

    @property
    def chase(self) -> Chaser:
        return Chaser(self.match)

    @property
    def server(self) -> str:
        """CoreDNS's metric label."""
        return server_label((self.host, self.port))

    @property
    def bound(self) -> bytes:
        """The address, packed; b"" where it is every one."""
        return ip_address(self.host.partition("%")[0]).packed if self.host else b""

    @property
    def addresses(self) -> tuple[bytes, ...]:
        """The addresses that endpoints of our own Service would have."""
        bound = (self.bound,) if self.host else sorted(self.own_addresses)
        return tuple(address for address in bound if not ip_address(address).is_loopback)


def make_parts(workings: Workings, cluster: "Cluster | None", site: Site, counted: Counted) -> Parts:
    """The steps and arounds of a block, with what each counts on."""
    return Parts(
        dns64=_translator(workings, site, counted),
        balancer=workings.balancer,
        rewrite=_rewriter(workings, site),
        autopath=_search_path(workings, cluster, site, counted),
        cache=_cache(workings, site, counted),
        templates=_templates(workings, site, counted),
        hosts=workings.hosts,
        external=_external_zone(workings, cluster, site),
        cluster=_cluster_zone(cluster, site),
        files=_files(workings, site),
        loop=workings.guard,
        forwards=workings.forwards,
    )


def make_road(workings: Workings, site: Site, counted: Counted, origin: Name) -> Road:
    """The short way under this origin of a block, which `resolve.road.is_road`."""
    block = workings.settings
    return Road(
        forwarding=workings.forwards[0],
        cache=_cache(workings, site, counted),
        guard=workings.guard,
        balancer=workings.balancer,
        elsewhere=block.kubernetes.origins if block.kubernetes is not None else (),
        label=name_text(origin),
        payload_size=block.bufsize or DEFAULT_UDP_SIZE,
    )


def _cache(workings: Workings, site: Site, counted: Counted) -> ResponseCache | None:
    """The one cache of the block, counting for this listener."""
    if workings.cache is None:
        return None
    return workings.cache.counting(counted.caches[cache_labels(workings.settings, site.server)])


def _translator(workings: Workings, site: Site, counted: Counted) -> Around | None:
    settings = workings.settings.dns64
    if settings is None:
        return None
    from topodns.resolve.dns64 import Translator

    return Translator(settings, counted.dns64[site.server])


def _rewriter(workings: Workings, site: Site) -> Around | None:
    rules = workings.settings.rewrite
    if not rules:
        return None
    from topodns.resolve.rewrite import Rewriter

    return Rewriter(rules, site.chase, site.bound)


def _templates(workings: Workings, site: Site, counted: Counted) -> tuple[Step, ...]:
    block = workings.settings
    if not block.template:
        return ()
    from topodns.resolve.template.step import Templates

    counts = counted.templates[ServerLabels(site.server, view_label(block))]
    return (Templates(block.template, site.chase, counts),)


def _files(workings: Workings, site: Site) -> tuple[Step, ...]:
    block = workings.settings
    if not block.file:
        return ()
    from topodns.resolve.zone_file import ZoneFileStep

    return tuple(
        ZoneFileStep(settings, source.table, site.chase)
        for settings, source in zip(block.file, workings.zone_files, strict=True)
    )


def _cluster_zone(cluster: "Cluster | None", site: Site) -> Step | None:
    if cluster is None:
        return None
    from topodns.resolve.cluster_zone import ClusterZone

    return ClusterZone(
        cluster.kubernetes,
        cluster.topology,
        cluster.state,
        cluster.locator,
        site.addresses,
        site.chase,
        cluster.rosters,
    )


def _search_path(workings: Workings, cluster: "Cluster | None", site: Site, counted: Counted) -> Around | None:
    settings = workings.settings.autopath
    if settings is None:
        return None
    from topodns.resolve.autopath import SearchPath
    from topodns.resolve.search_list import DistantClusterSearch, FixedSearch

    counts = counted.autopath[site.server]
    if not settings.kubernetes:
        return SearchPath(settings, FixedSearch(settings.search), counts)
    if cluster is not None:
        from topodns.resolve.cluster_search import ClusterSearch

        return SearchPath(settings, ClusterSearch(cluster.kubernetes, cluster.state, settings.search), counts)
    # In front of a cluster's DNS the names outside are another block's.
    own = frozenset(key.origin for key in workings.settings.keys if key.port == site.port)
    neighbours = Neighbours(site.match, own, workings.balancer is not None)
    return SearchPath(settings, DistantClusterSearch(settings.cluster_domains, settings.search), counts, neighbours)


def _external_zone(workings: Workings, cluster: "Cluster | None", site: Site) -> Step | None:
    settings = workings.settings.k8s_external
    if settings is None or cluster is None:
        return None
    from topodns.resolve.k8s_external import ExternalZone

    return ExternalZone(settings, cluster.kubernetes, cluster.state, site.addresses, site.chase)
