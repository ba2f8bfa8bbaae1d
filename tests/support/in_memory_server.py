"""Server blocks and the handler of one socket, wired as in the program but without a socket: octets to octets."""

from collections.abc import Callable, Hashable
from itertools import count
from random import Random
from struct import pack
from typing import Final

from tests.support.deferred_results import at_once
from tests.support.dns_messages import RD, Opt, Reply, query
from tests.support.model_builders import packed
from topodns.cluster.model import Change
from topodns.cluster.state import ClusterState
from topodns.dependency import Fact
from topodns.dns.addresses import NetworkList
from topodns.dns.message import DEFAULT_UDP_SIZE, Query, Response, RRset
from topodns.dns.name import Name, name_text, parse_name
from topodns.dns.rrtype import RRClass, RRType
from topodns.dnsserver.chain import Chain, ChainLink
from topodns.dnsserver.handler import Handler
from topodns.dnsserver.packet_cache.lookup import ready_reply
from topodns.dnsserver.packet_cache.table import OF_SPELLINGS, PacketCache
from topodns.dnsserver.router import Block, BlockTable
from topodns.plugins.errors import ErrorLog
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.counters import QueryCounters, ReplyKind
from topodns.query.packet_entry import Variants
from topodns.query.plugin import Client, ExchangeLog, Resolution, Scope, Step
from topodns.topology.client_locator import ClientLocator
from topodns.topology.keys import key_reader

NOW: Final = 1_700_000_000  # Unix seconds of every change
CLIENT: Final = packed("10.240.0.1")
PORT: Final = 40212


def dig(question: str, opt: Opt | None = None, flags: int = RD, ident: int = 29008) -> bytes:
    """The message that asks `NAME TYPE`, always with the same id, so that test names stay the same."""
    return query(question, opt, flags, ident)


class Addresses:
    """A step that answers any name with so many addresses, and counts how often it is asked."""

    def __init__(self, number: int = 1, scope: Scope = Scope.EVERYONE) -> None:
        self.asked = 0
        self._rdatas = tuple(pack("!I", 0x0A000000 + each) for each in range(number))
        self._scope = scope

    def __call__(self, query: Query, client: Client) -> Resolution:
        self.asked += 1
        return Resolution(Response(answer=(RRset(b"", RRType.A, 5, self._rdatas),)), "kubernetes", self._scope)


def block(
    origin: str,
    *steps: Step,
    payload_size: int = DEFAULT_UDP_SIZE,
    rotate: bool = False,
    log: ExchangeLog | None = None,
    errors: ErrorLog | None = None,
    variants: Variants | None = None,
) -> Block:
    """A server block with just these steps, in this order."""
    name = parse_name(origin)
    chain = Chain(tuple(ChainLink(step, (), None) for step in steps))
    return Block(name, name_text(name), chain, payload_size, rotate, log, errors, variants=variants)


def handler(
    *blocks: Block,
    transport: str = "udp",
    classes: frozenset[int] = frozenset({RRClass.IN}),
    view_key: Callable[[bytes], Hashable] = lambda address: "",
    seed: int = 1,
    own_name: Name | None = None,
) -> Handler:
    """The handler of a socket on port 53, with a clock that goes on by one second each time it is read."""
    seconds = count()
    table = PacketCache(view_key, Random(seed), lambda: 0.0)
    socket_counters = QueryCounters("dns://:53", transport, "1")
    return Handler(BlockTable(blocks, classes), table, socket_counters, lambda: float(next(seconds)), 53, own_name)


def send(answering: Handler, data: bytes) -> Reply:
    """The reply to a message, which has to be one to it."""
    wire = at_once(answering.answer(data, CLIENT, PORT))
    assert wire is not None
    assert wire[:2] == data[:2]
    return Reply(wire)


def counted(answering: Handler) -> dict[ReplyKind, int]:
    """The handler's counts."""
    return dict(answering.socket_counters.kinds())


def ready_made(table: PacketCache, data: bytes, address: bytes) -> bytes | None:
    """The reply that the UDP loop takes from the table by itself; None where it has to ask the steps."""
    ready = ready_reply(table, data[2:], address)
    return None if ready is None else data[:2] + ready[0]


class ClusterServer:
    """One `kubernetes` block, with or without `topology`, over UDP and TCP, and the cluster behind it.

    `ask` is the way of a query through the program; `ask_anew` never looks at the ready-made answers.
    """

    def __init__(self, settings: KubernetesSettings, topology: TopologySettings | None) -> None:
        self.state = ClusterState(
            frozenset({"Namespace", "Node", "Service", "EndpointSlice", "Pod"}),
            key_reader(topology.keys) if topology is not None else None,
            topology is not None and topology.terminating_fallback,
            settings.endpoint_pod_names,
            all_pods=True,
        )
        locator = (
            ClientLocator(self.state, topology.locate, NetworkList(topology.trust)) if topology is not None else None
        )
        step = ClusterZone(KubernetesZone(settings, topology, self.state, locator))

        def view_key(address: bytes) -> Hashable:
            return locator.locate(address).node_name if locator is not None else ""

        self._handlers = {
            transport: handler(block(".", step, variants=OF_SPELLINGS), transport=transport, view_key=view_key)
            for transport in ("udp", "tcp")
        }

    def apply(self, change: Change) -> frozenset[Fact]:
        """Apply a change, and forget the answers that rest on a touched fact."""
        facts = self.state.apply(change, NOW)
        for answering in self._handlers.values():
            answering.table.forget(facts)
        return facts

    def ask(self, data: bytes, address: bytes, transport: str = "udp") -> bytes | None:
        answering = self._handlers[transport]
        ready = ready_made(answering.table, data, address) if transport == "udp" else None
        return ready or at_once(answering.answer(data, address, PORT))

    def ask_anew(self, data: bytes, address: bytes, transport: str = "udp") -> bytes | None:
        answering = self._handlers[transport]
        answering.table.clear()
        return at_once(answering.answer(data, address, PORT))

    @property
    def ready_made_answers(self) -> int:
        return sum(len(answering.table) for answering in self._handlers.values())
