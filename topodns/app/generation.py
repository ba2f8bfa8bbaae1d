"""Settings to a running whole, with nothing started yet: clusters, and for each listener its blocks.

A `Generation` is all that one Corefile means. It is built completely before it takes over from the one before it, so
that a Corefile that cannot be built changes nothing.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topodns.block_parts import Site, make_parts, make_road
from topodns.circles import refuse_circles
from topodns.counted import view_label
from topodns.dns.message import Query, RRClass
from topodns.dns.names import name_text
from topodns.edge.timers import LoopTimers
from topodns.resolve.blocks import Block, BlockTable
from topodns.resolve.chain import Host, build_chain
from topodns.resolve.query_log import QueryLog
from topodns.resolve.road import is_road
from topodns.resolve.step import Client
from topodns.settings.memory import SERVER, MemoryLimits
from topodns.settings.server import DEFAULT_UDP_SIZE, BlockKey, ServerBlock, Settings
from topodns.workings import Identity, Workings, Workshop

if TYPE_CHECKING:
    from topodns.clusters import Cluster, ClusterMaker, Feed
    from topodns.resolve.view.filter import ViewFilter

ListenAt = tuple[str, int]
"""(host, port); host "" is every address of both families."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What this process knows of the place it runs in."""

    host: Host
    node_name: str  # of the Node it runs on, from the downward API; "" unknown
    addresses: frozenset[bytes]  # packed


@dataclass(eq=False)
class Generation:
    """Everything that one Corefile asks for."""

    settings: Settings
    clusters: "list[Cluster]" = field(default_factory=list)
    tables: dict[ListenAt, BlockTable] = field(default_factory=dict)
    workings: list[Workings] = field(default_factory=list)

    @property
    def feeds(self) -> "list[Feed]":
        return [cluster.feed for cluster in self.clusters]

    def match_at(self, at: ListenAt) -> Callable[[Query, Client], Block | None]:
        """Which block of this listener a question is for; asked only when all of them are built."""
        return lambda query, client: self.tables[at].match(query, client)

    def view_name(self, address: bytes) -> Hashable:
        """Where a client with this address is, in every cluster that asks.

        Of one that nobody can locate it is what its answers are counted under, since these are shared like a node's.
        """
        return tuple(
            cluster.locator.locate(address).node_name or cluster.rosters.prefix(address)
            for cluster in self.clusters
            if cluster.locator is not None
        )


class Assembly:
    """Builds generations. `write_line` takes the lines of query logs."""

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
        self.cluster_maker: ClusterMaker | None = None  # of the first Corefile with a cluster, and from then on

    def build(self, settings: Settings, feeds: "Iterable[Feed]" = ()) -> Generation:
        """A generation whose clusters go on with those of `feeds` that are as they need them.

        The other clusters are not known yet: `clusters.load_manifests`, or `cluster_sources`, makes them so. No feed is
        changed. Raises ConfigError, or one of `workings.FILE_ERRORS`.
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
        return cluster

    def _make_maker(self) -> "ClusterMaker":
        # Imported here: half of the program is about clusters, and a node's cache has none.
        from topodns.clusters import ClusterMaker

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
            log=QueryLog(block.log, self._write_line, host) if block.log else None,
            errors=workings.errors,
            view=_view_filter(block, host),
            view_name=view_label(block),
            road=make_road(workings, site, counted, key.origin) if is_road(block, key.origin) else None,
        )


def _view_filter(block: ServerBlock, host: str) -> "ViewFilter | None":
    if block.view is None:
        return None
    from topodns.resolve.view.filter import ViewFilter  # here, as in `block_parts`

    return ViewFilter(block.view, host)


def _classes(settings: Settings) -> frozenset[int]:
    """The classes that some block knows what to do with."""
    classes = {int(RRClass.IN)}
    for block in settings.blocks:
        if block.chaos is not None:
            classes.add(RRClass.CH)
        if block.rewrite:
            from topodns.settings.rewrite import ClassRule  # here, as in `block_parts`

            classes.update(rule.change.asked for rule in block.rewrite if isinstance(rule.change, ClassRule))
    return frozenset(classes)
