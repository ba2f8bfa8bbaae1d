"""A behaviour of an upstream that speaks DNS Push Notifications (RFC 8765), with the faults that a story wants."""

import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from tests.support.dns_messages import query
from tests.support.faulty_upstream import Act, Asked, BadUpstream, Channel
from tests.support.server_process import exchange_udp
from tests.support.upstream_faults import question_of, reply_to
from topodns.dns.dso import DsoMessage, DsoType, SessionTimeouts, keepalive_tlv, read_dso, write_dso_response
from topodns.dns.push_messages import ALL_REMOVED, PushChange, read_subscribe, read_unsubscribe, write_push
from topodns.dns.rrtype import Rcode, RRClass, RRType

_WORD: Final = query("do.example A")
_NEVER: Final = 0xFFFFFFFF
_TTL: Final = 60  # of `upstream_faults.reply_to`

OnDso = Callable[[Asked, DsoMessage], None]
"""What the upstream does with one DSO message, instead of the right thing."""


class PushingUpstream:
    """Each name has one address: `address`, or that of `addresses`. `on_dso`: a fault, None for none."""

    def __init__(self, address: str = "192.0.2.1", keepalive: int = 15_000) -> None:
        self.address = address
        self.addresses: dict[bytes, str] = {}  # by question
        self.pushed: dict[bytes, str] = {}  # the records that subscribers get, where they differ from those of queries
        self.on_dso: OnDso | None = None
        self.rcode: int = Rcode.NOERROR  # for SUBSCRIBE
        self.subscribed: dict[tuple[int, int], bytes] = {}  # connection and id -> question
        self.seen: list[DsoMessage] = []
        self.keepalive = keepalive
        self._channels: dict[int, Channel] = {}
        self._orders: deque[Callable[[], object]] = deque()

    def __call__(self, asked: Asked) -> Sequence[Act]:
        return [Act(lambda: self._take(asked))]

    def do(self, upstream: BadUpstream, order: Callable[[], object]) -> None:
        """Run `order` in the upstream's thread, and wait until it is done."""
        self._orders.append(order)
        exchange_udp(_WORD, (upstream.host, upstream.port))

    def change(self, upstream: BadUpstream, name: str, address: str) -> None:
        """The name has another address, which its subscribers get."""
        self.do(upstream, lambda: self.set(name, address))

    def change_all(self, upstream: BadUpstream, address: str) -> None:
        """All names have another address, which their subscribers get."""

        def change() -> None:
            self.address = address
            for (connection, _), question in self.subscribed.items():
                self.push(self._channels[connection], question)

        self.do(upstream, change)

    def set(self, name: str, address: str) -> None:
        question = question_of(query(name))
        self.addresses[question] = self.pushed[question] = address
        for (connection, _), subscribed in self.subscribed.items():
            if subscribed == question:
                self.push(self._channels[connection], question)

    def push(self, channel: Channel, question: bytes) -> None:
        name = question[:-4]
        rtype = int.from_bytes(question[-4:-2], "big")
        rdata = socket.inet_aton(self.pushed.get(question, self._address(question)))
        changes = [
            PushChange(name, rtype, RRClass.IN, ALL_REMOVED),
            PushChange(name, rtype, RRClass.IN, _TTL, rdata),
        ]
        for message in write_push(changes):
            channel.send(message)

    def channel_of_last(self) -> Channel:
        """The way to the client whose session is the latest."""
        return self._channels[max(self._channels)]

    @property
    def subscriptions(self) -> int:
        return len(self.subscribed)

    def _address(self, question: bytes) -> str:
        return self.addresses.get(question, self.address)

    def _take(self, asked: Asked) -> None:
        message = asked.message
        if message[2] & 0x78 == 6 << 3:
            self._take_dso(asked)
            return
        question = question_of(message)
        if question == question_of(_WORD):
            while self._orders:
                self._orders.popleft()()
        asked.channel.send(reply_to(message, self._address(question)))

    def _take_dso(self, asked: Asked) -> None:
        message = read_dso(asked.message)
        self.seen.append(message)
        self._channels[asked.connection] = asked.channel
        if self.on_dso is not None:
            self.on_dso(asked, message)
        else:
            self.obey(asked, message)

    def obey(self, asked: Asked, message: DsoMessage) -> None:
        assert message.primary is not None
        kind, data = message.primary
        channel = asked.channel
        if kind == DsoType.KEEPALIVE:
            timeouts = keepalive_tlv(SessionTimeouts(_NEVER, self.keepalive))
            channel.send(write_dso_response(message.ident, Rcode.NOERROR, timeouts))
        elif kind == DsoType.SUBSCRIBE:
            name, rtype, rclass = read_subscribe(data)
            channel.send(write_dso_response(message.ident, self.rcode))
            if self.rcode == Rcode.NOERROR:
                question = name + bytes((0, rtype, 0, rclass))
                self.subscribed[asked.connection, message.ident] = question
                if rtype == RRType.A:
                    self.push(channel, question)
        elif kind == DsoType.UNSUBSCRIBE:
            del self.subscribed[asked.connection, read_unsubscribe(data)]


def not_implemented(asked: Asked, message: DsoMessage) -> None:
    """As a server that does not know the opcode (RFC 8490 section 5.1.1)."""
    asked.channel.send(write_dso_response(message.ident, Rcode.NOTIMP))


def formerr_as_a_query(asked: Asked, message: DsoMessage) -> None:
    """A bare header with another opcode."""
    asked.channel.send(message.ident.to_bytes(2, "big") + b"\x80\x01" + bytes(8))


def closes_the_connection(asked: Asked, _: DsoMessage) -> None:
    asked.channel.close()


def says_nothing(_: Asked, __: DsoMessage) -> None:
    """No response."""
