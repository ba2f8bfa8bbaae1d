"""A `cache` with `push` and its upstream, over a session in virtual time: for stories about pushed changes."""

from random import Random
from typing import Final

from tests.support.cache_with_upstream import Story, addresses, positive, question, wire
from tests.support.dso_upstream import KEEPALIVE, Connecting, Wire
from topodns.dependency import Fact
from topodns.dns.dso import DsoType
from topodns.dns.push_messages import ALL_REMOVED, REMOVED, PushChange, read_subscribe, write_push
from topodns.dns.rrtype import RRClass, RRType
from topodns.net.upstream.dso_session import PAUSE
from topodns.plugins.cache.counts import SubscriptionCounts
from topodns.plugins.cache.entry import key_of
from topodns.plugins.cache.settings import Cache
from topodns.plugins.cache.subscriptions import PushSubscriptions

WWW: Final = "www.example. A"
OLD: Final = "192.0.2.1"
NEW: Final = "192.0.2.2"


class Pushed:
    """A cache with `push`, and its upstream: `Story` asks."""

    def __init__(self, settings: Cache | None = None, most: int = 100, node: bytes = b"", upstreams: int = 1) -> None:
        self.story = Story(settings, says=positive(300, OLD))
        self.upstreams = [Connecting(self.story.timers) for _ in range(upstreams)]
        self.counts = SubscriptionCounts()
        self.changed: list[Fact] = []
        self.push = PushSubscriptions(
            most,
            self.upstreams,
            self.story.cache.memory,
            lambda facts: self.changed.extend(sorted(facts)),
            self.story.timers,
            Random(1),
            self.counts,
            node,
        )
        self.story.cache.push = self.push

    @property
    def wires(self) -> list[Wire]:
        return self.upstreams[0].wires

    @property
    def wire(self) -> Wire:
        """The connection of the latest session."""
        return self.wires[-1]

    def ask(self, text: str = WWW) -> str:
        return self.story.ask(text)

    def says(self, *texts: str, ttl: int = 300) -> None:
        self.story.upstream.says = positive(ttl, *texts)

    def subscribe(self, *texts: str) -> None:
        """Subscribe to these names, get their first records pushed, and have their entries fetched anew."""
        for text in texts or (WWW,):
            self.ask(text)
            self.ask(text)
        if not self.push.is_connected:
            self.wire.establish()
        while self.wire.sent:
            self.wire.respond()
        for text in texts or (WWW,):
            self.tell(*self._records(text))
            self.ask(text)
        self.changed.clear()
        self.counts.messages = 0

    def _records(self, text: str) -> list[PushChange]:
        """Those of the name itself that the upstream has at present, as changes that add them."""
        response = self.story.upstream.says
        assert response is not None
        name = question(text).spelling.lower()
        own = [rrset for rrset in response.answer if not rrset.owner]
        return [PushChange(name, each.rtype, RRClass.IN, each.ttl, rdata) for each in own for rdata in each.rdatas]

    def tell(self, *changes: PushChange) -> None:
        """One PUSH, or as many as need be."""
        for message in write_push(changes):
            self.wire.say(message)
            self.story.timers.advance(PAUSE)

    def live_for(self, seconds: float) -> None:
        """So much time, in which the upstream answers each Keepalive."""
        for _ in range(round(seconds * 2)):
            self.story.timers.advance(0.5)
            waiting = self.wire.kinds()
            if KEEPALIVE in waiting:
                self.wire.sent.insert(0, self.wire.sent.pop(waiting.index(KEEPALIVE)))
                self.wire.establish()


def added(address: str, name: str = "www.example.") -> PushChange:
    return PushChange(wire(name), RRType.A, RRClass.IN, 300, addresses(0, address).rdatas[0])


def removed(address: str, name: str = "www.example.") -> PushChange:
    return added(address, name)._replace(ttl=REMOVED)


def gone(name: str = "www.example.", rtype: int = RRType.A, rclass: int = RRClass.IN) -> PushChange:
    return PushChange(wire(name), rtype, rclass, ALL_REMOVED)


def subject(text: str = WWW) -> bytes:
    return key_of(question(text))[:-2]


def subscribed_to(wire_: Wire) -> list[bytes]:
    """Name, type and class of the SUBSCRIBEs that wait for a response."""
    found = []
    for message in wire_.sent:
        if message.primary is not None and message.primary.kind == DsoType.SUBSCRIBE:
            name, rtype, rclass = read_subscribe(message.primary.data)
            found.append(name + bytes((0, rtype, 0, rclass)))
    return found
