"""Settings to a running whole, with nothing started yet: clusters, and for each listener its blocks.

A `Generation` is all that one Corefile means. It is built completely before it takes over from the one before it, so
that a Corefile that cannot be built changes nothing.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Final

from topodns.cluster.locate import Locator
from topodns.cluster.model import Change, Fact, Replaced
from topodns.cluster.state import ClusterState
from topodns.dns.message import Query, Response, RRClass
from topodns.dns.names import Name, name_text, name_wire
from topodns.edge.api_source import ApiSource, needed_kinds, resources
from topodns.edge.kube_api import OURS, RequestTally, connect
from topodns.edge.manifests import ManifestSource
from topodns.edge.service_events import NAMESPACE, EventWriter
from topodns.edge.weight_source import WeightSource
from topodns.resolve.blocks import Block, BlockTable
from topodns.resolve.chain import Host, build_chain
from topodns.resolve.cluster_zone import ClusterZone
from topodns.resolve.loadbalance import LoadBalancer
from topodns.resolve.query_log import QueryLog
from topodns.resolve.step import Client
from topodns.settings.kubernetes import KubernetesSettings
from topodns.settings.server import DEFAULT_UDP_SIZE, BlockKey, ServerBlock, Settings
from topodns.settings.steps import LoadbalancePolicy
from topodns.settings.topology import TopologySettings

ListenAt = tuple[str, int]
"""(host, port); host "" is every address of both families."""

MAX_CHASE: Final = 8  # CNAMEs in a row that lead from one block to another


@dataclass(frozen=True, slots=True)
class Machine:
    """What this process knows of the place it runs in."""

    host: Host
    node_name: str  # of the Node it runs on, from the downward API; "" unknown
    addresses: frozenset[bytes]  # packed


@dataclass(eq=False)
class Cluster:
    """One `kubernetes` directive: its state, where that comes from, and who finds its clients."""

    kubernetes: KubernetesSettings
    topology: TopologySettings | None
    state: ClusterState
    locator: Locator | None
    source: ManifestSource | ApiSource

    @property
    def source_settings(self) -> tuple[object, ...]:
        """What the source is: equal for two clusters that are read from the same place."""
        return self.kubernetes.api, self.kubernetes.manifests

    event_writer: EventWriter | None = None  # where there are topology keys, and an API server to tell of their flaws


@dataclass(eq=False)
class Generation:
    """Everything that one Corefile asks for. `changed` is called with the facts that a change of a cluster touched."""

    settings: Settings
    clusters: list[Cluster] = field(default_factory=list)
    tables: dict[ListenAt, BlockTable] = field(default_factory=dict)
    weights: list[WeightSource] = field(default_factory=list)
    changed: Callable[[frozenset[Fact]], None] = lambda facts: None

    def view_name(self, address: bytes) -> Hashable:
        """Where a client with this address is, in every cluster that asks."""
        return tuple(
            cluster.locator.locate(address).node_name for cluster in self.clusters if cluster.locator is not None
        )


def load_manifests(generation: Generation) -> Generation:
    """Read all manifests at once: for whoever has nothing else to do meanwhile."""
    for cluster in generation.clusters:
        if isinstance(cluster.source, ManifestSource):
            cluster.source.load()
    return generation


class Assembly:
    """Builds generations. `write_line` takes the lines of query logs.

    `requests` and `service_events` (by outcome) count for all generations together.
    """

    def __init__(self, machine: Machine, write_line: Callable[[str], object]) -> None:
        self._machine = machine
        self._write_line = write_line
        self._replica = f"{machine.host.name}_{machine.host.rng.getrandbits(32):08x}"  # as client-go names a holder
        self.requests = RequestTally()
        self.service_events: Counter[str] = Counter()

    def build(self, settings: Settings) -> Generation:
        """A generation whose clusters are not known yet: `load_manifests`, or `cluster_sources`, makes them so.

        Raises what its files raise: OSError, BadWeights.
        """
        generation = Generation(settings)
        rows: dict[ListenAt, list[Block]] = {}
        for block in settings.blocks:
            cluster = self._cluster(block, generation)
            for key in block.keys:
                for host in block.bind or ("",):
                    chaser = _Chaser(generation, (host, key.port))
                    rows.setdefault((host, key.port), []).append(
                        self._block(block, key, host, cluster, chaser, generation)
                    )
        chaos = any(block.chaos is not None for block in settings.blocks)
        classes = frozenset({int(RRClass.IN), int(RRClass.CH)} if chaos else {int(RRClass.IN)})
        generation.tables = {at: BlockTable(blocks, classes) for at, blocks in rows.items()}
        return generation

    def _cluster(self, block: ServerBlock, generation: Generation) -> Cluster | None:
        kubernetes, topology = block.kubernetes, block.topology
        if kubernetes is None:
            return None
        state = ClusterState(
            needed_kinds(kubernetes, topology),
            topology.keys if topology is not None else (),
            topology is not None and topology.terminating_fallback,
            kubernetes.endpoint_pod_names,
        )
        locator = None
        if topology is not None:
            locator = Locator(state, topology.locate, topology.trust, self._machine.node_name, self._machine.addresses)

        source = self._source(kubernetes, topology, state, lambda facts: generation.changed(facts))
        cluster = Cluster(kubernetes, topology, state, locator, source, self._event_writer(kubernetes, topology))
        generation.clusters.append(cluster)
        return cluster

    def _source(
        self,
        kubernetes: KubernetesSettings,
        topology: TopologySettings | None,
        state: ClusterState,
        publish: Callable[[frozenset[Fact]], None],
    ) -> ManifestSource | ApiSource:
        if kubernetes.api is not None:
            wanted = resources(kubernetes, topology)
            connecting = partial(connect, kubernetes.api, tally=self.requests)
            return ApiSource(wanted, state, publish, connecting, self._machine.host.rng)

        def emit(change: Change) -> Iterator[None]:
            for facts in _taken_in(state, change):
                if facts:
                    publish(facts)
                yield

        return ManifestSource(kubernetes.manifests, emit, kubernetes.labels)

    def _event_writer(self, kubernetes: KubernetesSettings, topology: TopologySettings | None) -> EventWriter | None:
        if kubernetes.api is None or topology is None:
            return None
        connecting = partial(connect, kubernetes.api, tally=self.requests)
        return EventWriter(connecting, OURS.namespace or NAMESPACE, self._replica, self.service_events)

    def _block(
        self,
        block: ServerBlock,
        key: BlockKey,
        host: str,
        cluster: Cluster | None,
        chaser: "_Chaser",
        generation: Generation,
    ) -> Block:
        step = None
        if cluster is not None:
            step = ClusterZone(
                cluster.kubernetes,
                cluster.topology,
                cluster.state,
                cluster.locator,
                self._bound_addresses(host),
                chaser,
            )
        balancer = self._balancer(block, generation)
        return Block(
            origin=key.origin,
            label=name_text(key.origin),
            chain=build_chain(block, self._machine.host, step, balancer),
            payload_size=block.bufsize or DEFAULT_UDP_SIZE,
            rotate=balancer is not None,
            log=QueryLog(block.log, self._write_line, host) if block.log else None,
            errors=block.errors,
        )

    def _bound_addresses(self, host: str) -> tuple[bytes, ...]:
        """The addresses that endpoints of our own Service would have."""
        bound = (ip_address(host).packed,) if host else sorted(self._machine.addresses)
        return tuple(address for address in bound if not ip_address(address).is_loopback)

    def _balancer(self, block: ServerBlock, generation: Generation) -> LoadBalancer | None:
        settings = block.loadbalance
        if settings is None:
            return None
        if settings.policy is not LoadbalancePolicy.WEIGHTED:
            return LoadBalancer(settings, self._machine.host.rng)
        source = WeightSource(settings.weight_file, settings.reload)
        source.load()
        generation.weights.append(source)
        return LoadBalancer(settings, self._machine.host.rng, source.weights)


def _taken_in(state: ClusterState, change: Change) -> Iterator[frozenset[Fact]]:
    """Take a change in, a large one a little with each step; the facts that each step touched."""
    now = int(time.time())
    if not isinstance(change, Replaced):
        yield state.apply(change, now)
        return
    for step in state.replace(change, now):
        yield step.facts


class _Chaser:
    """Follows a CNAME out of its origin: asks whatever block of the same listener the target belongs to."""

    def __init__(self, generation: Generation, at: ListenAt) -> None:
        self._generation = generation
        self._at = at
        self._depth = 0

    def __call__(self, target: Name, qtype: int, client: Client) -> Response | None:
        block = self._generation.tables[self._at].match(target, qtype)
        if block is None or self._depth >= MAX_CHASE:
            return None
        spelling = name_wire(target)
        self._depth += 1
        try:
            query = Query(0, 0, target, spelling, qtype, RRClass.IN, None, 0)
            return block.chain.resolve(query, client).response
        finally:
            self._depth -= 1
