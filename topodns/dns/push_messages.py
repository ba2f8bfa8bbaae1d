"""Messages of DNS Push Notifications (RFC 8765): SUBSCRIBE, PUSH, UNSUBSCRIBE and RECONFIRM.

Octets to values and back, for clients and servers. `dns.dso` has the message around them.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from topodns.dns.dso import DsoMessage, DsoType, Tlv, write_dso
from topodns.dns.message import MAX_TTL
from topodns.dns.name import MAX_LABEL, MAX_WIRE
from topodns.dns.response_reader import read_records
from topodns.dns.rrtype import Rcode, RRClass
from topodns.dns.wire_format import (
    HEADER_SIZE,
    POINTER,
    QUESTION_TAIL_SIZE,
    RECORD_HEAD_SIZE,
    TLV_HEAD_SIZE,
    pack_question_tail,
    pack_record_head,
    unpack_question_tail,
    unpack_tlv_head,
)
from topodns.dns.wire_reader import WireError

MAX_PUSH: Final = 16_382  # octets of a PUSH message without the length before it over TCP (RFC 8765 section 6.3.1)
MAX_PUSHED_RDATA: Final = MAX_PUSH - HEADER_SIZE - TLV_HEAD_SIZE - MAX_WIRE - RECORD_HEAD_SIZE
REMOVED: Final = 0xFFFFFFFF  # TTL of a change that removes one record
ALL_REMOVED: Final = 0xFFFFFFFE  # TTL of a change that removes an RRset, or all of a name: see `PushChange`

_RECORDS_AT: Final = HEADER_SIZE + TLV_HEAD_SIZE
_IDENT: Final = struct.Struct("!H")


class Subscribe(NamedTuple):
    """The question of a SUBSCRIBE. `qname` is in wire form, in lower case."""

    qname: bytes
    qtype: int
    qclass: int = RRClass.IN


class PushChange(NamedTuple):
    """One change of a PUSH message. `owner` and the names in `rdata` are in wire form, uncompressed.

    A `ttl` of 0 to `MAX_TTL` adds the record; `REMOVED` removes it; `ALL_REMOVED`, with empty RDATA, removes the RRset
    of `rtype`, of all types if that is ANY, of all classes and types if `rclass` is ANY (RFC 8765 section 6.3.1).
    """

    owner: bytes
    rtype: int
    rclass: int
    ttl: int
    rdata: bytes = b""


class Reconfirm(NamedTuple):
    """The one record that a RECONFIRM doubts. `owner` is in wire form, in lower case; `rdata` as received."""

    owner: bytes
    rtype: int
    rclass: int
    rdata: bytes


def write_subscribe(ident: int, subscribe: Subscribe, *additional: Tlv) -> bytes:
    """A SUBSCRIBE request. `ident` (1 to 65535) is in use until the subscription is cancelled."""
    data = subscribe.qname + pack_question_tail(subscribe.qtype, subscribe.qclass)
    return write_dso(DsoMessage(ident, False, Rcode.NOERROR, Tlv(DsoType.SUBSCRIBE, data), additional))


def read_subscribe(data: bytes) -> Subscribe:
    """The value in the data of a SUBSCRIBE TLV. Raises WireError."""
    at = _end_of_name(data)
    if len(data) != at + QUESTION_TAIL_SIZE:
        raise WireError(f"SUBSCRIBE of {len(data)} octets, {at + QUESTION_TAIL_SIZE} expected")
    return Subscribe(data[:at].lower(), *unpack_question_tail(data, at))


def write_unsubscribe(ident: int) -> bytes:
    """An UNSUBSCRIBE message. `ident`: that of the SUBSCRIBE."""
    return write_dso(DsoMessage(0, False, Rcode.NOERROR, Tlv(DsoType.UNSUBSCRIBE, _IDENT.pack(ident))))


def read_unsubscribe(data: bytes) -> int:
    """The id of the SUBSCRIBE that an UNSUBSCRIBE TLV with these data cancels. Raises WireError."""
    if len(data) != _IDENT.size:
        raise WireError(f"UNSUBSCRIBE of {len(data)} octets, {_IDENT.size} expected")
    ident: int = _IDENT.unpack(data)[0]
    return ident


def read_reconfirm(data: bytes) -> Reconfirm:
    """The value in the data of a RECONFIRM TLV. Raises WireError."""
    at = _end_of_name(data)
    if len(data) < at + QUESTION_TAIL_SIZE:
        raise WireError("RECONFIRM cut off")
    rtype, rclass = unpack_question_tail(data, at)
    return Reconfirm(data[:at].lower(), rtype, rclass, data[at + QUESTION_TAIL_SIZE :])


def _end_of_name(data: bytes) -> int:
    """The offset after the uncompressed name that `data` begins with. Raises WireError."""
    at = 0
    while at < len(data) and (length := data[at]):
        if length > MAX_LABEL:
            raise WireError("compressed or extended label in a DSO request")
        at += 1 + length
    if at >= len(data):
        raise WireError("name cut off")
    if at >= MAX_WIRE:
        raise WireError(f"name of more than {MAX_WIRE} octets")
    return at + 1


def read_push(octets: bytes) -> list[PushChange]:
    """The changes of a message whose first TLV is PUSH, in order, owners in lower case. Raises WireError.

    A change with a TTL without a meaning is left out (RFC 8765 section 6.3.1); the list may be empty then. Errors, all
    fatal to the session: a message that is malformed, has more than `MAX_PUSH` octets or has no change, and a removal
    of an RRset with RDATA.
    """
    if len(octets) > MAX_PUSH:
        raise WireError(f"PUSH of {len(octets)} octets, at most {MAX_PUSH} expected")
    if len(octets) < _RECORDS_AT:
        raise WireError("PUSH cut off")
    kind, length = unpack_tlv_head(octets, HEADER_SIZE)
    end = _RECORDS_AT + length
    if kind != DsoType.PUSH or end > len(octets) or not length:
        raise WireError("no PUSH, or one without a change")
    changes = []
    for owner, rtype, rclass, ttl, rdata in read_records(octets, _RECORDS_AT, end):
        if ttl == ALL_REMOVED and rdata:
            raise WireError("removal of an RRset with RDATA")
        if ttl <= MAX_TTL or ttl >= ALL_REMOVED:
            changes.append(PushChange(owner.lower(), rtype, rclass, ttl, rdata))
    return changes


def write_push(changes: Iterable[PushChange]) -> list[bytes]:
    """PUSH messages with these changes, in order, each of at most `MAX_PUSH` octets; none without a change.

    Owners are compressed, RDATA is copied. Raises OverflowError for a change with more than `MAX_PUSHED_RDATA` octets.
    """
    messages: list[bytes] = []
    writing = _PushWriter()
    for change in changes:
        if len(change.rdata) > MAX_PUSHED_RDATA:
            raise OverflowError(f"a record with {len(change.rdata)} octets of RDATA fits in no PUSH")
        if not writing.add(change):
            messages.append(writing.message())
            writing = _PushWriter()
            writing.add(change)
    if writing.parts:
        messages.append(writing.message())
    return messages


class _PushWriter:
    """Writes one PUSH message."""

    __slots__ = ("_names", "_size", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._size = _RECORDS_AT
        self._names: dict[
            bytes, int
        ] = {}  # name in wire form -> its offset; all are below 16,384, where pointers reach

    def add(self, change: PushChange) -> bool:
        """Add a change, unless it does not fit."""
        owner, learned = self._compressed(change.owner)
        head = pack_record_head(change.rtype, change.rclass, change.ttl, len(change.rdata))
        octets = owner + head + change.rdata
        if self._size + len(octets) > MAX_PUSH:
            return False
        self._names.update(learned)
        self.parts.append(octets)
        self._size += len(octets)
        return True

    def message(self) -> bytes:
        return write_dso(DsoMessage(0, False, Rcode.NOERROR, Tlv(DsoType.PUSH, b"".join(self.parts))))

    def _compressed(self, owner: bytes) -> tuple[bytes, dict[bytes, int]]:
        """The owner, compressed against earlier ones, and the names that it adds to `_names`."""
        at = 0
        learned: dict[bytes, int] = {}
        while owner[at]:
            rest = owner[at:]
            target = self._names.get(rest)
            if target is not None:
                return owner[:at] + (POINTER | target).to_bytes(2, "big"), learned
            learned[rest] = self._size + at
            at += 1 + owner[at]
        return owner, learned
