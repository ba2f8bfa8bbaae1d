"""Builds a generation from settings: its clusters, and the server blocks of each listener. Nothing is started yet.

A `Generation` is the complete server of one Corefile. It is built before it replaces the previous one, so that a
Corefile that cannot be built changes nothing.
"""

import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from topodns.app.self_forwarding import refuse_self_forwarding
from topodns.corefile.zones import BlockKey, ListenAt
from topodns.dns.message import DEFAULT_UDP_SIZE, Query
from topodns.dns.name import Name, name_text
from topodns.dns.rrtype import RRClass
from topodns.dnsserver.chain import build_chain, unanswered_rcode
from topodns.dnsserver.fast_forward.eligibility import make_fast_route
from topodns.dnsserver.packet_cache.table import block_variants
from topodns.dnsserver.router import Block, BlockTable, Chaser, Neighbours
from topodns.memory.budget import SERVER, MemoryLimits
from topodns.net.loop_timers import LoopTimers
from topodns.plugins.block import ServerBlock, Settings
from topodns.plugins.bufsize import PLUGIN as BUFSIZE
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.plugins.plugin import AnyPlugin, load
from topodns.plugins.setup import BlockListener, BlockSetup, Identity, Install, Process
from topodns.query.plugin import ChainPart, Client
from topodns.query.session import PushedZones

if TYPE_CHECKING:
    from topodns.dnsserver.fast_kubernetes.eligibility import FastZone
    from topodns.plugins.kubernetes.clusters import ChooseFeed, Cluster, ClusterMaker
    from topodns.plugins.kubernetes.feed import Feed


log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Machine:
    """The environment of this process: its host, Node and addresses."""

    host_name: str
    node_name: str  # of the Node it runs on, from the downward API; "" unknown
    addresses: frozenset[bytes]  # packed
    rng: Random


@dataclass(eq=False)
class Generation:
    """The complete server of one Corefile. `blocks`: its server blocks with what their plugins share."""

    settings: Settings
    clusters: "list[Cluster]" = field(default_factory=list)
    tables: dict[ListenAt, BlockTable] = field(default_factory=dict)
    blocks: list[BlockSetup] = field(default_factory=list)
    views: list[Callable[[bytes], Hashable]] = field(default_factory=list)  # `BlockSetup.vary_by` of all blocks

    @property
    def feeds(self) -> "list[Feed]":
        return [cluster.feed for cluster in self.clusters]

    def match_at(self, at: ListenAt) -> Callable[[Query, Client], Block | None]:
        """A function that finds the block of this listener for a query; it works once all blocks are built."""
        return lambda query, client: self.tables[at].match(query, client)

    def view_key(self, address: bytes) -> tuple[Hashable, ...]:
        """The part of a packet cache key by the client's packed address: clients with equal parts share answers."""
        return tuple([view(address) for view in self.views])


class _Installed(NamedTuple):
    """A plugin of a block, set up."""

    plugin: AnyPlugin
    install: Install | None


class Assembly:
    """Builds generations. `write_line` writes a line of a query log; `choose_feed` as of `ClusterMaker`."""

    def __init__(
        self,
        machine: Machine,
        write_line: Callable[[str], object],
        identity: Identity | None = None,
        memory: MemoryLimits = SERVER,
        choose_feed: "ChooseFeed | None" = None,
        is_worker: bool = False,
    ) -> None:
        self._machine = machine
        self._choose_feed = choose_feed
        self.process = Process(
            timers=LoopTimers(),
            rng=machine.rng,
            host_name=machine.host_name,
            write_line=write_line,
            identity=identity,
            memory=memory,
            is_worker=is_worker,
        )
        self.plugins: dict[str, AnyPlugin] = {}  # those of all Corefiles so far
        self.cluster_maker: ClusterMaker | None = None  # None until a Corefile has a cluster

    def build(self, settings: Settings, feeds: "Iterable[Feed]" = ()) -> Generation:
        """A generation whose clusters reuse those of `feeds` that have the settings they need.

        The state of the other clusters is empty: `plugins.kubernetes.clusters.load_manifests` or
        `app.cluster_lifecycle` fills it. No feed is changed. Raises ConfigError, or one of `plugins.setup.FILE_ERRORS`.
        """
        for line in refuse_self_forwarding(settings, self._machine.addresses):
            log.warning("%s", line)
        generation, spare = Generation(settings), list(feeds)
        rows: dict[ListenAt, list[Block]] = {}
        for block in settings.blocks:
            prepared = BlockSetup(self.process, block, self._cluster(block, generation, spare))
            installed = self._set_up(prepared)
            generation.blocks.append(prepared)
            generation.views += prepared.views
            for key in block.keys:
                for host in block.bound_hosts:
                    made = self._block(prepared, installed, key, host, generation)
                    rows.setdefault(key.at(host), []).append(made)
        classes = _classes(settings)
        generation.tables = {at: BlockTable(blocks, classes) for at, blocks in rows.items()}
        return generation

    def _cluster(self, block: ServerBlock, generation: Generation, spare: "list[Feed]") -> "Cluster | None":
        kubernetes = block.settings.get("kubernetes")
        if kubernetes is None:
            return None
        # Imported here, as `ClusterMaker` is.
        from topodns.plugins.metadata import labels_read

        maker = self.cluster_maker = self.cluster_maker or self._make_maker()
        labels = labels_read(block.settings)
        cluster = maker.make(kubernetes, block.settings.get("topology"), block.settings.get("view"), spare, labels)
        generation.clusters.append(cluster)
        return cluster

    def _make_maker(self) -> "ClusterMaker":
        # Imported here: half of the program is for clusters, and a node-cache has none.
        from topodns.plugins.kubernetes.clusters import ClusterMaker

        machine = self._machine
        replica = f"{machine.host_name}_{machine.rng.getrandbits(32):08x}"  # as client-go names a holder
        return ClusterMaker(machine.node_name, machine.addresses, replica, machine.rng, self._choose_feed)

    def _set_up(self, prepared: BlockSetup) -> list[_Installed]:
        """Set up the plugins of a block; returns them in the block's order.

        The last one is set up first, as a plugin may look for the handlers of those below it.
        """
        installed = []
        for name, settings in reversed(list(prepared.block.settings.items())):
            plugin = self.plugins[name] = load(name)
            installed.append(_Installed(plugin, plugin.setup(settings, prepared) if plugin.setup is not None else None))
        return installed[::-1]

    def _block(
        self, prepared: BlockSetup, installed: list[_Installed], key: BlockKey, host: str, generation: Generation
    ) -> Block:
        block, match = prepared.block, generation.match_at(key.at(host))
        listener = BlockListener(
            host=host,
            port=key.port,
            own_addresses=self._machine.addresses,
            chase=Chaser(match),
            neighbours=lambda own, rotate: Neighbours(match, own, rotate),
            tls=key.tls,
        )
        parts = [part for each in installed if each.install is not None for part in each.install(listener)]
        return Block(
            origin=key.origin,
            label=name_text(key.origin),
            chain=build_chain(parts, unanswered_rcode([each.plugin for each in installed])),
            payload_size=BUFSIZE.settings_of(block) or DEFAULT_UDP_SIZE,
            rotate=prepared.first(LoadBalancer) is not None,
            variants=block_variants(block),
            log=_only([part.logs for part in parts]),
            errors=_only([part.reports for part in parts]),
            view=_only([part.selects for part in parts]),
            view_name=block.view_name,
            fast_route=make_fast_route(prepared, key.origin, listener.server),
            fast_zones=_fast_zones(prepared, key.origin, parts),
            push=prepared.first(PushedZones),
            client_pods=prepared.cluster.client_pods if prepared.cluster is not None else None,
        )


def _fast_zones(prepared: BlockSetup, origin: Name, parts: list[ChainPart]) -> "tuple[FastZone, ...]":
    if prepared.cluster is None:
        return ()
    # Imported here, as `ClusterMaker` is.
    from topodns.dnsserver.fast_kubernetes.eligibility import make_fast_zones

    return tuple(make_fast_zones(prepared, origin, parts))


def _only(found: list[T | None]) -> T | None:
    return next((each for each in found if each is not None), None)


def _classes(settings: Settings) -> frozenset[int]:
    """The class IN, and all other query classes that a plugin of any block handles."""
    classes = {RRClass.IN}
    for block in settings.blocks:
        for name, value in block.settings.items():
            plugin = load(name)
            if plugin.classes is not None:
                classes.update(plugin.classes(value))
    return frozenset(classes)
