"""The handler of one socket before one upstream, with and without the fast path to `forward`."""

from dataclasses import replace
from random import Random

from tests.support.chains import chain_of
from tests.support.corefile_settings import only_block
from tests.support.deferred_results import at_once
from tests.support.in_memory_server import ready_made
from tests.support.scripted_upstream import Behaviour, ScriptedUpstream, says
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.name import ROOT, parse_name
from topodns.dnsserver.fast_forward.eligibility import FastRoute
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.lookup import variant_entry
from topodns.dnsserver.packet_cache.table import PacketCache, block_variants
from topodns.dnsserver.router import Block, BlockTable
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.forward.handler import Forwarding, Options
from topodns.plugins.forward.upstreams import ForwardCounts
from topodns.plugins.forward.waiting_limit import InFlight
from topodns.plugins.loadbalance.handler import LoadBalancer
from topodns.plugins.loop import LoopCounts, LoopGuard
from topodns.query.counters import QueryCounters
from topodns.query.plugin import ChainPart

CLIENT, PORT = bytes((10, 244, 1, 7)), 40_000
WWW = says("www.example. 300 IN A 192.0.2.7")


class Resolver:
    """The handler of one socket before one upstream, with the fast path (`fast`) or with the plugin chain only.

    Its block is for `origin`; an upstream with node identity gets `options` with each question.
    """

    def __init__(
        self,
        fast: bool,
        behave: Behaviour,
        directives: str = "cache 30\nloadbalance",
        udp: bool = True,
        origin: str = ".",
        options: Options = (),
    ) -> None:
        self.timers = VirtualTimers()
        block = only_block(f"forward . 192.0.2.1\n{directives}")
        self.upstream = ScriptedUpstream("192.0.2.1:53", self.timers, behave)
        self.in_flight = InFlight(max_total=6, max_per_client=2)
        settings, counts = block.settings["forward"][0], ForwardCounts()
        forward = Forwarding(settings, [self.upstream], self.timers, Random(1), self.in_flight, counts, options=options)
        self.guard = LoopGuard(ROOT, [forward], self.timers, lambda: "secret", LoopCounts())
        balance, keep = block.settings.get("loadbalance"), block.settings.get("cache")
        balancer = LoadBalancer(balance, Random(1)) if balance is not None else None
        self.cache = ResponseCache(keep, self.timers) if keep is not None else None
        parts = {
            "loop": (ChainPart(step=self.guard),),
            "forward": (ChainPart(step=forward),),
            **({"loadbalance": (ChainPart(wrapper=balancer),)} if balancer is not None else {}),
            **({"cache": (ChainPart(around=self.cache),)} if self.cache is not None else {}),
        }
        fast_route = FastRoute(forward, self.cache, self.guard, balancer, (("cluster", "local"),), origin, 1232)
        chain = chain_of(block, parts)
        table = PacketCache(lambda address: "", Random(1), self.timers.time)
        self.socket_counters = QueryCounters("dns://:53", "udp" if udp else "tcp", "1")
        name = parse_name(origin)
        answering = Block(name, origin, chain, 1232, balancer is not None, fast_route=fast_route if fast else None)
        answering = replace(answering, variants=block_variants(block))
        self.variants = 0  # answers that were ready for another packet of the same question
        self.blocks = BlockTable([answering])
        self.handler = Handler(self.blocks, table, self.socket_counters, self.timers.time, 53)

    def ask(self, data: bytes) -> bytes | None:
        reply = self.handler.answer(data, CLIENT, PORT)
        self.timers.advance(5)
        return at_once(reply)

    def ask_ready(self, data: bytes) -> bytes | None:
        """As `ask`, but by the loop of UDP as well, which answers from the packet cache."""
        self.variants += variant_entry(self.handler.table, data[2:], CLIENT) is not None
        ready = ready_made(self.handler.table, data, CLIENT)
        if ready is None:
            return self.ask(data)
        self.timers.advance(5)
        return ready

    @property
    def counted(self) -> dict[object, int]:
        return dict(self.socket_counters.kinds())
