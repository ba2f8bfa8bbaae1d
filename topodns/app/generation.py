"""Builds a generation from settings: its clusters, and the server blocks of each listener. Nothing is started yet.

A `Generation` is the complete server of one Corefile. It is built before it replaces the previous one, so that a
Corefile that cannot be built changes nothing.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from topodns.app.counters import view_label
from topodns.app.self_forwarding import refuse_circles
from topodns.app.server_block import Identity, Site, Workings, Workshop, make_parts, make_road
from topodns.corefile.zones import BlockKey
from topodns.dns.message import DEFAULT_UDP_SIZE, Query
from topodns.dns.name import name_text
from topodns.dns.rrtype import RRClass
from topodns.dnsserver.chain import Host, build_chain
from topodns.dnsserver.fast_forward.eligibility import is_road
from topodns.dnsserver.packet_cache.variants import block_variants
from topodns.dnsserver.router import Block, BlockTable
from topodns.dnsserver.settings import ServerBlock, Settings
from topodns.net.loop_timers import LoopTimers
from topodns.plugins.log import QueryLog
from topodns.query.memory_budget import SERVER, MemoryLimits
from topodns.query.plugin import Client

if TYPE_CHECKING:
    from topodns.app.clusters import Cluster, ClusterMaker, Feed
    from topodns.plugins.view.handler import ViewFilter


ListenAt = tuple[str, int]
"""(host, port); host "" is every address of both families."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The environment of this process: its host, Node and addresses."""

    host: Host
    node_name: str  # of the Node it runs on, from the downward API; "" unknown
    addresses: frozenset[bytes]  # packed


@dataclass(frozen=True, slots=True)
class OnNode:
    """Packet cache key of the clients on one Node of a cluster: they share ready-made answers."""

    name: str


@dataclass(frozen=True, slots=True)
class Unlocated:
    """Packet cache key of clients on no known Node that share a label in metrics: they share answers as well.

    `prefix` is their network (/24 or /56, packed), None for all networks beyond the label limit.
    """

    prefix: bytes | None


@dataclass(eq=False)
class Generation:
    """The complete server of one Corefile. `workings`: the shared state of each server block."""

    settings: Settings
    clusters: "list[Cluster]" = field(default_factory=list)
    tables: dict[ListenAt, BlockTable] = field(default_factory=dict)
    workings: list[Workings] = field(default_factory=list)
    namespaces_of: list[Callable[[bytes], str]] = field(default_factory=list)  # of a client, one per `autopath`

    @property
    def feeds(self) -> "list[Feed]":
        return [cluster.feed for cluster in self.clusters]

    def match_at(self, at: ListenAt) -> Callable[[Query, Client], Block | None]:
        """The function that finds the block of this listener for a query; not to be called before all are built."""
        return lambda query, client: self.tables[at].match(query, client)

    def view_key(self, address: bytes) -> tuple[Hashable, ...]:
        """The packet cache key of a client with this packed address: clients with equal keys share answers.

        It has the Node, or the group of unlocated clients, for each cluster with `topology`, and the namespace for
        each `autopath @kubernetes`.
        """
        places = [
            OnNode(node_name)
            if (node_name := cluster.locator.locate(address).node_name)
            else Unlocated(cluster.rosters.named_prefix(address))
            for cluster in self.clusters
            if cluster.locator is not None
        ]
        return (*places, *(namespace_of(address) for namespace_of in self.namespaces_of))


class Assembly:
    """Builds generations. `write_line` writes a line of a query log."""

    def __init__(
        self,
        machine: Machine,
        write_line: Callable[[str], object],
        identity: Identity | None = None,
        memory: MemoryLimits = SERVER,
    ) -> None:
        self._machine = machine
        self.workshop = Workshop(LoopTimers(), machine.host.rng, identity, memory)
        self._write_line = write_line
        self.cluster_maker: ClusterMaker | None = None  # None until a Corefile has a cluster

    def build(self, settings: Settings, feeds: "Iterable[Feed]" = ()) -> Generation:
        """A generation whose clusters reuse those of `feeds` that have the settings they need.

        The state of the other clusters is empty: `app.clusters.load_manifests` or `app.cluster_lifecycle` fills it. No
        feed is changed. Raises ConfigError, or one of `app.server_block.FILE_ERRORS`.
        """
        refuse_circles(settings, self._machine.addresses)
        generation, spare = Generation(settings), list(feeds)
        rows: dict[ListenAt, list[Block]] = {}
        for block in settings.blocks:
            cluster = self._cluster(block, generation, spare)
            workings = self.workshop.make(block)
            generation.workings.append(workings)
            for key in block.keys:
                for host in block.bind or ("",):
                    made = self._block(workings, key, host, cluster, generation)
                    rows.setdefault((host, key.port), []).append(made)
        classes = _classes(settings)
        generation.tables = {at: BlockTable(blocks, classes) for at, blocks in rows.items()}
        return generation

    def _cluster(self, block: ServerBlock, generation: Generation, spare: "list[Feed]") -> "Cluster | None":
        if block.kubernetes is None:
            return None
        maker = self.cluster_maker = self.cluster_maker or self._make_maker()
        cluster = maker.make(block.kubernetes, block.topology, block.view, spare)
        generation.clusters.append(cluster)
        if block.autopath is not None and block.autopath.kubernetes:
            from topodns.plugins.autopath.search_list import own_namespace  # imported here as in `app.server_block`

            generation.namespaces_of.append(partial(own_namespace, cluster.state))
        return cluster

    def _make_maker(self) -> "ClusterMaker":
        # Imported here: half of the program is for clusters, and a node-cache has none.
        from topodns.app.clusters import ClusterMaker

        machine = self._machine
        replica = f"{machine.host.name}_{machine.host.rng.getrandbits(32):08x}"  # as client-go names a holder
        return ClusterMaker(machine.node_name, machine.addresses, replica, machine.host.rng)

    def _block(
        self, workings: Workings, key: BlockKey, host: str, cluster: "Cluster | None", generation: Generation
    ) -> Block:
        block, at = workings.settings, (host, key.port)
        site = Site(host, key.port, generation.match_at(at), self._machine.addresses)
        counted = self.workshop.counted
        parts = make_parts(workings, cluster, site, counted)
        return Block(
            origin=key.origin,
            label=name_text(key.origin),
            chain=build_chain(block, self._machine.host, parts),
            payload_size=block.bufsize or DEFAULT_UDP_SIZE,
            rotate=workings.balancer is not None,
            variants=block_variants(block),
            log=QueryLog(block.log, self._write_line, host) if block.log else None,
            errors=workings.errors,
            view=_view_filter(block, host),
            view_name=view_label(block),
            road=make_road(workings, site, counted, key.origin) if is_road(block, key.origin) else None,
        )


def _view_filter(block: ServerBlock, host: str) -> "ViewFilter | None":
    if block.view is None:
        return None
    from topodns.plugins.view.handler import ViewFilter  # imported here as in `app.server_block`

    return ViewFilter(block.view, host)


def _classes(settings: Settings) -> frozenset[int]:
    """The query classes that at least one block handles."""
    classes = {int(RRClass.IN)}
    for block in settings.blocks:
        if block.chaos is not None:
            classes.add(RRClass.CH)
        if block.rewrite:
            from topodns.plugins.rewrite.settings import ClassRule  # imported here as in `app.server_block`

            classes.update(rule.change.asked for rule in block.rewrite if isinstance(rule.change, ClassRule))
    return frozenset(classes)
