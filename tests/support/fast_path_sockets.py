"""A socket's handler before `kubernetes`, with or without the fast path, so that tests can compare both."""

from collections.abc import Callable, Container, Hashable
from itertools import count
from random import Random
from typing import cast

from tests.support.deferred_results import at_once
from tests.support.in_memory_server import PORT, ready_made
from topodns.cluster.state import ClusterState
from topodns.dns.name import ROOT
from topodns.dnsserver.chain import Chain, ChainLink
from topodns.dnsserver.fast_kubernetes.eligibility import FastZone, fast_origins
from topodns.dnsserver.fast_kubernetes.responder import Responder
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.table import OF_SPELLINGS, PacketCache
from topodns.dnsserver.router import Block, BlockTable
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.plugins.loadbalance.settings import Loadbalance
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.counters import QueryCounters
from topodns.topology.client_locator import ClientLocator


class Socket:
    """The handler of one socket before a `kubernetes` with `loadbalance`, with or without the fast path."""

    def __init__(
        self,
        fast: bool,
        state: ClusterState,
        kubernetes: KubernetesSettings,
        topology: TopologySettings | None,
        udp: bool = True,
        balanced: bool = True,
        trust: Container[bytes] = (),
    ) -> None:
        """`trust`: the sources, packed, of which every claim counts."""
        locator = ClientLocator(state, topology.locate, trust) if topology is not None else None
        served = KubernetesZone(kubernetes, topology, state, locator)
        balancer = LoadBalancer(Loadbalance(), Random(1)) if balanced else None
        chain = Chain((ChainLink(ClusterZone(served), (balancer,) if balancer is not None else (), None),))
        zones = tuple(FastZone(served, origin, balancer, ".", 1232, OF_SPELLINGS) for origin in fast_origins(served))
        block = Block(ROOT, ".", chain, 1232, balanced, variants=OF_SPELLINGS, fast_zones=zones if fast else ())

        def view_key(address: bytes) -> Hashable:
            return locator.locate(address).node_name if locator is not None else ""

        table = PacketCache(view_key, Random(1), lambda: 0.0)
        seconds = count()
        counters = QueryCounters("dns://:53", "udp" if udp else "tcp", "1")
        self.handler = Handler(BlockTable([block]), table, counters, lambda: float(next(seconds)), 53)
        self.short = 0  # replies of the fast path
        self.responder = self.handler._respond
        if self.responder is not None:
            self.handler._respond = cast(Responder, self._counting(self.responder))

    def _counting(self, respond: Callable[[bytes, bytes, float], bytes | None]) -> object:
        def counted(data: bytes, address: bytes, started: float) -> bytes | None:
            reply = respond(data, address, started)
            self.short += reply is not None
            return reply

        return counted

    def ask(self, data: bytes, client: bytes) -> bytes | None:
        return ready_made(self.handler.table, data, client) or at_once(self.handler.answer(data, client, PORT))

    def forget_what_was_asked(self) -> None:
        """Let each query be the first one again, for the packet cache and so for the fast path."""
        seen = self.handler.table._caches._seen
        seen[:] = bytes(len(seen))

    @property
    def kept(self) -> tuple[object, ...]:
        """The keys of the packet cache with the variants that they answer, by view, and the dependencies of its
        entries.
        """
        table = self.handler.table
        views = {"": table.common, **table._by_key}
        keys = {name: {key: entry[3] for key, entry in view.items()} for name, view in views.items()}
        by_fact = {fact: {key for _, key in places} for fact, places in table._by_fact.items()}
        return keys, by_fact

    @property
    def counted(self) -> tuple[object, ...]:
        counters = self.handler.socket_counters
        durations = {place: (each.counts, each.sum) for place, each in counters.durations.items()}
        return dict(counters.kinds()), durations, counters.octets
