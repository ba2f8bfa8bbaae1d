"""Messages between the first process and a worker, over a pair of sockets: a type, and a payload of known length.

The worker acknowledges messages by their number, in order. The first process is trusted; so is a worker, which is the
same program.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import IntEnum, auto
from typing import Any, Final, NamedTuple

from topodns.cluster.decode.packed import KINDS
from topodns.cluster.model import Kind
from topodns.corefile.lexer import Token
from topodns.dns.name import Name
from topodns.plugins.block import ExpandedCorefile
from topodns.plugins.cache.settings import Cache, Prefetch, ServeStale, Share


class MessageType(IntEnum):
    # to a worker
    GENERATION = auto()  # JSON: build this generation
    CHANGES = auto()  # changes of states, to be taken in one turn of the loop
    ACTIVATE = auto()  # number: the states of that generation are complete; open its sockets, and serve it
    PING = auto()  # nothing to do but to acknowledge it
    METRICS = auto()  # send all metric families
    STOP = auto()  # drain and end
    # to the first process
    ACKNOWLEDGED = auto()  # number: so many messages have been handled
    SERVING = auto()  # number: of the generation that is served now
    FAMILY = auto()  # JSON: a metric family
    FAMILIES_END = auto()  # nothing: all families have been sent
    FAILED = auto()  # text: why this worker ends


MAX_MESSAGE: Final = 256 << 20  # octets; a Corefile or a turn's changes are far smaller

_head: Final = struct.Struct("!IB")
_number: Final = struct.Struct("!Q")


class WorkerMessage(NamedTuple):
    kind: MessageType
    payload: bytes

    @property
    def number(self) -> int:
        found: int = _number.unpack(self.payload)[0]
        return found


def message(kind: MessageType, payload: bytes = b"") -> bytes:
    """The octets of a message."""
    return _head.pack(len(payload), kind) + payload


def numbered_message(kind: MessageType, number: int) -> bytes:
    return message(kind, _number.pack(number))


class WorkerMessageReader:
    """Splits octets that arrive in pieces into messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[WorkerMessage]:
        """The messages that these octets complete. Raises ValueError for a wrong head."""
        self._rest += data
        found, at = [], 0
        while len(self._rest) - at >= _head.size:
            size, kind = _head.unpack_from(self._rest, at)
            if size > MAX_MESSAGE:
                raise ValueError(f"a message of {size} octets")
            start, end = at + _head.size, at + _head.size + size
            if len(self._rest) < end:
                break
            found.append(WorkerMessage(MessageType(kind), bytes(memoryview(self._rest)[start:end])))
            at = end
        del self._rest[:at]
        return found


class ChangeType(IntEnum):
    OBJECTS = auto()  # by events
    LISTED_OBJECTS = auto()  # from a list (`LocatorIndex.listing`)
    COMPLETE = auto()  # the first list of the kind is complete
    DENIED = auto()  # answers do without the kind
    SERIAL = auto()  # the SOA serial, in place of the time; its kind does not matter


class StateChange(NamedTuple):
    """A change of one state. `feed`: its number; `wall_seconds`: Unix time of the change, negative before
    1970, which a machine without a battery for its clock may start in.
    """

    feed: int
    type: ChangeType
    kind: Kind
    wall_seconds: int
    packed: bytes = b""  # by `cluster.decode.packed`


_change: Final = struct.Struct("!IBBqI")
_KINDS: Final = tuple(KINDS)


def change_octets(change: StateChange) -> bytes:
    """A part of the payload of CHANGES."""
    head = _change.pack(change.feed, change.type, _KINDS.index(change.kind), change.wall_seconds, len(change.packed))
    return head + change.packed


def changes_of(payload: bytes) -> Iterator[StateChange]:
    """The changes of the payload of CHANGES, in order."""
    at = 0
    while at < len(payload):
        feed, kind_of_change, kind, wall_seconds, size = _change.unpack_from(payload, at)
        start = at + _change.size
        at = start + size
        yield StateChange(
            feed=feed,
            type=ChangeType(kind_of_change),
            kind=_KINDS[kind],
            wall_seconds=wall_seconds,
            packed=payload[start:at],
        )


class GenerationOrder(NamedTuple):
    """A generation that a worker is to build.

    `feeds`: the number of each cluster's feed, in the order of the Corefile. `ports`: the actual port at each (host,
    port), which differs where the Corefile has port 0.
    """

    number: int
    corefile: ExpandedCorefile
    feeds: Sequence[int]
    ports: Mapping[tuple[str, int], int]


def order_message(order: GenerationOrder) -> bytes:
    ports = [[host, port, actual] for (host, port), actual in order.ports.items()]
    found = {**order._asdict(), "corefile": asdict(order.corefile), "feeds": list(order.feeds), "ports": ports}
    return message(MessageType.GENERATION, json.dumps(found).encode())


def order_of(payload: bytes) -> GenerationOrder:
    found: dict[str, Any] = json.loads(payload)
    given = found["corefile"]
    tokens = tuple(Token(**token) for token in given["tokens"])
    corefile = ExpandedCorefile(**{**given, "tokens": tokens, "cache": _cache_of(given["cache"])})
    return GenerationOrder(
        found["number"],
        corefile,
        found["feeds"],
        {(host, port): actual for host, port, actual in found["ports"]},
    )


def _cache_of(given: dict[str, Any] | None) -> Cache | None:
    if given is None:
        return None
    success, denial, prefetch, serve_stale = (given[name] for name in ("success", "denial", "prefetch", "serve_stale"))
    parts = {
        "origins": _names(given["origins"]),
        "success": Share(**{**success, "disabled": _names(success["disabled"])}),
        "denial": Share(**{**denial, "disabled": _names(denial["disabled"])}),
        "prefetch": None if prefetch is None else Prefetch(**prefetch),
        "serve_stale": None if serve_stale is None else ServeStale(**serve_stale),
    }
    return Cache(**{**given, **parts})


def _names(given: list[list[str]]) -> tuple[Name, ...]:
    return tuple(map(tuple, given))
