"""The publisher of a listener without sockets: one `kubernetes` block with `topology` and `push`, and its clients."""

from random import Random
from struct import pack
from typing import Final

from tests.support.in_memory_server import NOW
from tests.support.model_builders import packed
from tests.support.push_client import KEEPALIVE, Message, PushedSets, dso, read, subscription
from tests.support.virtual_timers import VirtualTimers
from topodns.cluster.model import Change
from topodns.cluster.state import ClusterState
from topodns.dns.name import Name, name_text, parse_name
from topodns.dnsserver.chain import Chain, ChainLink
from topodns.dnsserver.push.clients import PushClients
from topodns.dnsserver.push.publisher import Publisher
from topodns.dnsserver.push.session import PushSession
from topodns.dnsserver.router import Block, BlockTable
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.push import PushCounts
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import Step
from topodns.query.session import PushedZones, PushLimits
from topodns.topology.client_locator import ClientLocator
from topodns.topology.keys import key_reader

ORIGIN: Final = parse_name("cluster.local")
KUBERNETES: Final = KubernetesSettings((ORIGIN,))
LIMITS: Final = PushLimits()


def push_block(*steps: Step, limits: PushLimits = LIMITS, origins: tuple[Name, ...] = (ORIGIN,)) -> Block:
    """A server block for the root with these steps, whose names below these origins can be subscribed to."""
    chain = Chain(tuple(ChainLink(step, (), None) for step in steps))
    return Block((), name_text(()), chain, 1232, push=PushedZones(origins, limits))


class ClientConnection(PushedSets):
    """A client's connection, and what the client has been sent."""

    def __init__(self, publisher: Publisher, timers: VirtualTimers, address: str, port: int = 40000) -> None:
        super().__init__()
        self.address = packed(address)
        self.port = port
        self.responses: list[Message] = []
        self.messages: list[Message] = []  # those that are no responses
        self.reads = True
        self._timers = timers
        self.is_open = True
        self.finishing = False
        self.held_open = 0.0
        self.session = PushSession(publisher, self)

    def send(self, framed: bytes) -> bool:
        if not self.reads:
            self._timers.call_later(0.0, self.close)  # as a transport does
            return False
        while framed:
            size = int.from_bytes(framed[:2], "big")
            self._take(framed[2 : 2 + size])
            framed = framed[2 + size :]
        return True

    def _take(self, octets: bytes) -> None:
        message = read(octets)
        (self.responses if message.response else self.messages).append(message)
        self.take(message)

    def hold_open(self, seconds: float) -> None:
        self.held_open = seconds

    def finish(self) -> None:
        self.finishing = True
        for octets in self.session.farewell():
            self._take(octets)
        self.close()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.session.closed()

    def tell(self, message: bytes) -> bool:
        """Send a message. False: the session aborts the connection."""
        replies = self.session.receive(message)
        if replies is None:
            self.close()
            return False
        for octets in replies:
            self._take(octets)
        return True

    def begin(self) -> int:
        """The rcode of a Keepalive."""
        return self._requested(dso(ident := self.new_ident(), (KEEPALIVE, pack("!II", 15_000, 15_000))), ident)

    def subscribe(self, name: str, rtype: int = 1, node: str = "") -> int:
        """The rcode of a SUBSCRIBE; -1 while there is no response."""
        ident = self.new_ident()
        return self._requested(dso(ident, *subscription(name, rtype, node)), ident)

    def _requested(self, message: bytes, ident: int) -> int:
        assert self.tell(message)
        return next((each.rcode for each in self.responses if each.ident == ident), -1)


def known_addresses(clients: PushClients) -> int:
    """The number of addresses with a session, a subscription or octets."""
    return len({*clients._sessions, *clients._subscriptions, *clients.counts.memory._held})


class PushServer:
    """A cluster and a publisher, whose time passes with `settle`."""

    def __init__(
        self,
        *steps: Step,
        after: Step | None = None,
        topology: TopologySettings | None = None,
        kubernetes: KubernetesSettings = KUBERNETES,
        limits: PushLimits = LIMITS,
    ) -> None:
        """`steps`: in the place of `kubernetes`. `after`: after it."""
        topology = topology or TopologySettings()
        self.state = ClusterState(frozenset(), key_reader(topology.keys))
        self.locator = ClientLocator(self.state, topology.locate)
        steps = steps or (ClusterZone(KubernetesZone(kubernetes, topology, self.state, self.locator)),)
        if after is not None:
            steps = (*steps, after)
        self.blocks = BlockTable([push_block(*steps, limits=limits, origins=kubernetes.origins)])
        self.timers = VirtualTimers()
        self.counts = PushCounts()
        self.clients = PushClients(self.counts)
        self.publisher = Publisher(self.blocks, limits, 53, self.timers, Random(1), self.clients)

    def connect(self, address: str = "10.0.0.9") -> ClientConnection:
        return ClientConnection(self.publisher, self.timers, address)

    def apply(self, *changes: Change) -> None:
        """Apply changes, and push what follows."""
        for change in changes:
            self.publisher.touched(self.state.apply(change, NOW))
        self.settle()

    @property
    def known_addresses(self) -> int:
        """The number of client addresses with a session, a subscription or octets."""
        return known_addresses(self.clients)

    def settle(self) -> None:
        """Let time pass until there is nothing left to do."""
        self.timers.advance(10)
        assert not self.timers.pending
