"""Messages between the first process and a worker, over a pair of sockets: length, type, and a value as MessagePack.

The worker acknowledges messages by their number, in order. The first process is trusted; so is a worker, which is the
same program.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, auto
from typing import Any, Final, NamedTuple

from topodns.cluster.decode.structs import pack, unpacker
from topodns.cluster.model import Kind
from topodns.corefile.zones import ListenAt
from topodns.plugins.block import ExpandedCorefile


class MessageType(IntEnum):
    # to a worker
    GENERATION = auto()  # GenerationOrder: build this generation
    CHANGES = auto()  # list of StateChange, to be taken in one turn of the loop
    ACTIVATE = auto()  # number: the states of that generation are complete; open its sockets, and serve it
    PING = auto()  # nothing to do but to acknowledge it
    METRICS = auto()  # send all metric families
    STOP = auto()  # drain and end
    # to the first process
    ACKNOWLEDGED = auto()  # number: so many messages have been handled
    SERVING = auto()  # number: of the generation that is served now
    FAMILY = auto()  # FamilySamples
    FAMILIES_END = auto()  # nothing: all families have been sent
    FAILED = auto()  # text: why this worker ends


class GenerationOrder(NamedTuple):
    """A generation that a worker is to build.

    `feeds`: the number of each cluster's feed, in the order of the Corefile. `ports`: the actual port of each
    listener, which differs where the Corefile has port 0.
    """

    number: int
    corefile: ExpandedCorefile
    feeds: Sequence[int]
    ports: Mapping[ListenAt, int]


class ChangeType(IntEnum):
    OBJECTS = auto()  # by events
    LISTED_OBJECTS = auto()  # from a list (`LocatorIndex.listing`)
    COMPLETE = auto()  # the first list of the kind is complete
    DENIED = auto()  # answers do without the kind
    RESTORED = auto()  # the objects of the kinds in `restored` are of a snapshot of Unix time `wall_seconds`
    SERIAL = auto()  # the SOA serial, in place of the time; its kind does not matter


class StateChange(NamedTuple):
    """A change of one state. `feed`: its number; `wall_seconds`: Unix time of the change, negative before
    1970, which a machine without a battery for its clock may start in.
    """

    feed: int
    type: ChangeType
    kind: Kind
    wall_seconds: int
    packed: bytes = b""  # by `cluster.packed_objects`
    restored: tuple[Kind, ...] = ()


class FamilySamples(NamedTuple):
    """The samples of a metric family, or of a part of one: (label values, value) pairs.

    The value of a histogram has its bounds, the counts between them, and the sum.
    """

    name: str
    is_gauge: bool
    samples: list[tuple[tuple[str, ...], float | tuple[list[float], list[int], float]]]


MAX_MESSAGE: Final = 256 << 20  # octets; a Corefile or a turn's changes are far smaller

_head: Final = struct.Struct("!IB")
_read_any: Final = unpacker(Any)
_READERS: Final[Mapping[MessageType, Callable[[bytes], Any]]] = {
    MessageType.GENERATION: unpacker(GenerationOrder),
    MessageType.CHANGES: unpacker(list[StateChange]),
    MessageType.FAMILY: unpacker(FamilySamples),
}


class WorkerMessage(NamedTuple):
    kind: MessageType
    payload: bytes

    @property
    def value(self) -> Any:
        """The value of the type that the message's kind has; a number or text is as it was written."""
        return _READERS.get(self.kind, _read_any)(self.payload)


def message(kind: MessageType, value: object = None) -> bytes:
    """The octets of a message."""
    payload = pack(value)
    return _head.pack(len(payload), kind) + payload


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
