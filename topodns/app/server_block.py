"""The shared state of a server block, made once for all its zones and addresses: upstreams, caches, file sources.

Nothing is opened when it is made; its generation calls `start` and `close`, and runs `sources` as tasks. Modules for
files that few Corefiles have are imported at their use: a node-cache stays small.
"""

import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from random import Random
from typing import TYPE_CHECKING, Final

from topodns.app.counters import Counted, ServerLabels, cache_labels, servers_of, view_label
from topodns.dependency import Fact
from topodns.dns.message import DEFAULT_UDP_SIZE, Option, Query
from topodns.dns.name import Name, name_text
from topodns.dns.zonefile import BadText
from topodns.dnsserver.chain import Parts
from topodns.dnsserver.cname_chaser import Chaser, Neighbours
from topodns.dnsserver.fast_forward.eligibility import Road
from topodns.dnsserver.router import Block
from topodns.dnsserver.settings import ServerBlock
from topodns.files.poller import FileSource
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.store import room_of
from topodns.plugins.errors import ErrorLog
from topodns.plugins.forward.flight import DEADLINE
from topodns.plugins.forward.handler import Forwarding
from topodns.plugins.forward.messages import Options
from topodns.plugins.forward.settings import Forward
from topodns.plugins.forward.upstreams import LateUpstream
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.plugins.loadbalance.setup import LoadbalancePolicy
from topodns.plugins.loop import LoopGuard
from topodns.query.counters import server_label
from topodns.query.deferred import Timers
from topodns.query.memory_budget import SERVER, MemoryLimits
from topodns.query.plugin import Around, Client, Step

if TYPE_CHECKING:
    from topodns.app.clusters import Cluster
    from topodns.plugins.file.source import ZoneFileSource
    from topodns.plugins.hosts.handler import HostNames
    from topodns.plugins.hosts.source import HostsSource

log = logging.getLogger(__name__)


_SECRET: Final = 8  # octets of an unguessable label

FILE_ERRORS: Final = (OSError, BadText)
"""Errors of unusable files; ssl.SSLError is an OSError."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Node identity (EDNS 65518) of a node-cache's queries to the cluster DNS: its clients are Pods of that Node."""

    node_name: str  # "" unknown: no identity is sent
    upstreams: frozenset[str]  # the only addresses that it is sent to


@dataclass(eq=False)
class Workings:
    """The shared state of one server block."""

    settings: ServerBlock
    balancer: LoadBalancer | None = None
    cache: ResponseCache | None = None
    hosts: "HostNames | None" = None
    hosts_source: "HostsSource | None" = None
    zone_files: "tuple[ZoneFileSource, ...]" = ()
    forwards: tuple[Forwarding, ...] = ()
    watches: bool = False  # publish the reachability of upstreams, also without queries
    guard: LoopGuard | None = None
    errors: ErrorLog | None = None
    upstreams: list["LateUpstream"] = field(default_factory=list)
    sources: list[FileSource] = field(default_factory=list)

    def start(self, changed: Callable[[frozenset[Fact]], None]) -> None:
        """Begin work, as the generation is active now; `changed` is called with the facts that a file changed."""
        if self.hosts_source is not None:
            self.hosts_source.changed = changed
        for source in self.zone_files:
            source.changed = changed
        if self.guard is not None:
            self.guard.start()
        if self.watches:
            for forward in self.forwards:
                forward.watch()

    def close(self) -> None:
        """End work, as another generation is active: queries under way are finished, and no others begin."""
        if self.guard is not None:
            self.guard.close()
        for forward in self.forwards:
            forward.close()
        for upstream in self.upstreams:
            upstream.close()
        if self.errors is not None:
            self.errors.close()


class Workshop:
    """Creates workings, the shared state of server blocks. Raises one of FILE_ERRORS."""

    def __init__(
        self, timers: Timers, rng: Random, identity: Identity | None = None, memory: MemoryLimits = SERVER
    ) -> None:
        self.counted = Counted()
        self.room = room_of(memory)
        self._watches = identity is not None
        self._identity = identity or Identity("", frozenset())
        self._timers = timers
        self._rng = rng

    def make(self, block: ServerBlock) -> Workings:
        """The workings of a block, with its files read."""
        workings = Workings(block, watches=self._watches)
        workings.balancer = self._balancer(block, workings)
        workings.errors = ErrorLog(block.errors, self._timers) if block.errors is not None else None
        workings.hosts = self._hosts(block, workings)
        workings.zone_files = tuple(self._zone_files(block, workings))
        workings.forwards = tuple(self._forwards(block, workings))
        workings.cache = self._cache(block, workings.forwards)
        workings.guard = self._guard(block, workings)
        return workings

    def _cache(self, block: ServerBlock, forwards: tuple[Forwarding, ...]) -> ResponseCache | None:
        """The cache of all servers of the block; answers that do not fit are counted under the first server."""
        if block.cache is None:
            return None
        labels = cache_labels(block, servers_of(block)[0])

        def hopeless() -> bool:
            return bool(forwards) and all(forward.all_down for forward in forwards)

        return ResponseCache(block.cache, self._timers, self.counted.caches[labels], self.room, hopeless)

    def _balancer(self, block: ServerBlock, workings: Workings) -> LoadBalancer | None:
        settings = block.loadbalance
        if settings is None:
            return None
        if settings.policy is not LoadbalancePolicy.WEIGHTED:
            return LoadBalancer(settings, self._rng)
        from topodns.plugins.loadbalance.source import WeightSource

        source = WeightSource(settings.weight_file, settings.reload)
        source.load()
        workings.sources.append(source)
        return LoadBalancer(settings, self._rng, source.weights)

    def _hosts(self, block: ServerBlock, workings: Workings) -> "HostNames | None":
        if block.hosts is None:
            return None
        from topodns.plugins.hosts.handler import HostNames
        from topodns.plugins.hosts.source import HostsSource

        source = workings.hosts_source = HostsSource(block.hosts)
        source.load()
        workings.sources.append(source)
        return HostNames(block.hosts, source.table)

    def _zone_files(self, block: ServerBlock, workings: Workings) -> "Iterator[ZoneFileSource]":
        if not block.file:
            return
        from topodns.plugins.file.source import ZoneFileSource

        for settings in block.file:
            source = ZoneFileSource(settings)
            source.load()
            workings.sources.append(source)
            yield source

    def _forwards(self, block: ServerBlock, workings: Workings) -> Iterator[Forwarding]:
        for number, settings in enumerate(block.forward, 1):
            upstreams = [
                LateUpstream(settings, address, self.counted.connections[address.name], self.counted.udp_sockets)
                for address in settings.upstreams
            ]
            workings.upstreams += upstreams
            yield Forwarding(
                settings,
                upstreams,
                self._timers,
                self._rng,
                self.counted.in_flight,
                self.counted.forward,
                followed=number < len(block.forward),
                options=self._options_for(settings),
                deadline=min(DEADLINE, block.cancel or DEADLINE),
                names_upstreams=block.debug,
                may_ask_twice=self.counted.udp_sockets.has_spare,
            )

    def _options_for(self, settings: Forward) -> Options:
        """The EDNS option with our Node's name if all upstreams are the cluster DNS, else none."""
        identity = self._identity
        told = [address.host in identity.upstreams for address in settings.upstreams]
        if not identity.node_name or not any(told):
            return ()
        if not all(told):
            names = ", ".join(address.name for address in settings.upstreams)
            log.warning("plugin/forward: %s are not all the cluster DNS, so none of them is told the node", names)
            return ()
        return ((int(Option.NODE_IDENTITY), identity.node_name.encode()),)

    def _guard(self, block: ServerBlock, workings: Workings) -> LoopGuard | None:
        if not block.loop or not workings.forwards:
            return None
        origin = block.keys[0].origin  # as CoreDNS: the first one only
        return LoopGuard(origin, workings.forwards, self._timers, _secret_label, self.counted.loop)


def _secret_label() -> str:
    return secrets.token_hex(_SECRET)


@dataclass(frozen=True, slots=True)
class Site:
    """The listener of a block. `own_addresses` (packed) are those of the machine."""

    host: str  # "" is every address of both families
    port: int
    match: Callable[[Query, Client], Block | None]  # the block of this listener for a query
    own_addresses: frozenset[bytes]

    @property
    def chase(self) -> Chaser:
        return Chaser(self.match)

    @property
    def server(self) -> str:
        """CoreDNS's metric label `server`."""
        return server_label((self.host, self.port))

    @property
    def bound(self) -> bytes:
        """The listen address, packed; b"" for all addresses."""
        return ip_address(self.host.partition("%")[0]).packed if self.host else b""

    @property
    def addresses(self) -> tuple[bytes, ...]:
        """The addresses that endpoints of this server's own Service would have."""
        bound = (self.bound,) if self.host else sorted(self.own_addresses)
        return tuple(address for address in bound if not ip_address(address).is_loopback)


def make_parts(workings: Workings, cluster: "Cluster | None", site: Site, counted: Counted) -> Parts:
    """The plugins of a block with their counters: steps answer a query, arounds wrap the plugins below."""
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
    """The fast path for names under this origin of a block; `fast_forward.eligibility.is_road` must hold."""
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
    """The shared cache of the block, with the counters of this listener."""
    if workings.cache is None:
        return None
    return workings.cache.counting(counted.caches[cache_labels(workings.settings, site.server)])


def _translator(workings: Workings, site: Site, counted: Counted) -> Around | None:
    settings = workings.settings.dns64
    if settings is None:
        return None
    from topodns.plugins.dns64 import Translator

    return Translator(settings, counted.dns64[site.server])


def _rewriter(workings: Workings, site: Site) -> Around | None:
    rules = workings.settings.rewrite
    if not rules:
        return None
    from topodns.plugins.rewrite.handler import Rewriter

    return Rewriter(rules, site.chase, site.bound)


def _templates(workings: Workings, site: Site, counted: Counted) -> tuple[Step, ...]:
    block = workings.settings
    if not block.template:
        return ()
    from topodns.plugins.template.handler import Templates

    counts = counted.templates[ServerLabels(site.server, view_label(block))]
    return (Templates(block.template, site.chase, counts),)


def _files(workings: Workings, site: Site) -> tuple[Step, ...]:
    block = workings.settings
    if not block.file:
        return ()
    from topodns.plugins.file.handler import ZoneFileStep

    return tuple(
        ZoneFileStep(settings, source.table, site.chase)
        for settings, source in zip(block.file, workings.zone_files, strict=True)
    )


def _cluster_zone(cluster: "Cluster | None", site: Site) -> Step | None:
    if cluster is None:
        return None
    from topodns.plugins.kubernetes.handler import ClusterZone

    return ClusterZone(
        cluster.kubernetes,
        cluster.topology,
        cluster.state,
        cluster.locator,
        site.addresses,
        site.chase,
        cluster.rosters,
        cluster.pod_wait,
    )


def _search_path(workings: Workings, cluster: "Cluster | None", site: Site, counted: Counted) -> Around | None:
    settings = workings.settings.autopath
    if settings is None:
        return None
    from topodns.plugins.autopath.handler import SearchPath
    from topodns.plugins.autopath.search_list import DistantClusterSearch, FixedSearch

    counts = counted.autopath[site.server]
    if not settings.kubernetes:
        return SearchPath(settings, FixedSearch(settings.search), counts)
    if cluster is not None:
        from topodns.plugins.autopath.search_list import ClusterSearch

        return SearchPath(settings, ClusterSearch(cluster.kubernetes, cluster.state, settings.search), counts)
    # The block forwards to a cluster's DNS; names outside the cluster belong to other blocks.
    own = frozenset(key.origin for key in workings.settings.keys if key.port == site.port)
    neighbours = Neighbours(site.match, own, workings.balancer is not None)
    return SearchPath(settings, DistantClusterSearch(settings.cluster_domains, settings.search), counts, neighbours)


def _external_zone(workings: Workings, cluster: "Cluster | None", site: Site) -> Step | None:
    settings = workings.settings.k8s_external
    if settings is None or cluster is None:
        return None
    from topodns.plugins.k8s_external import ExternalZone

    return ExternalZone(settings, cluster.kubernetes, cluster.state, site.addresses, site.chase)
