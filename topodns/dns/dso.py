"""Messages of DNS Stateful Operations (RFC 8490): header, TLVs, and the TLVs that every session has.

Octets to values and back. `dns.push_messages` has the TLVs of DNS Push Notifications; sessions and timers are the
caller's.
"""

import struct
from typing import Final, NamedTuple

from topodns.dns.rrtype import Rcode
from topodns.dns.wire_format import (
    HEADER_SIZE,
    TLV_HEAD_SIZE,
    pack_header,
    pack_tlv_head,
    unpack_header,
    unpack_tlv_head,
)
from topodns.dns.wire_reader import WireError

OPCODE: Final = 6  # of every DSO message, requests and responses
INFINITE: Final = 0xFFFFFFFF  # milliseconds: no timeout (RFC 8490 section 6.2)
MIN_KEEPALIVE: Final = 10_000  # milliseconds: a server must not ask for a shorter interval (section 6.5.2)

_QR: Final = 0x8000
_OPCODE_AT: Final = 11  # bit of the flags
_RCODE: Final = 0x0F
_MAX_TLVS: Final = 64  # of one message; no legitimate one has more
_TIMEOUTS: Final = struct.Struct("!II")
_DELAY: Final = struct.Struct("!I")


class DsoType:
    """The TLV types in use (IANA registry; NODE_NAME is topodns' own, from the range for local use)."""

    KEEPALIVE: Final = 0x0001
    RETRY_DELAY: Final = 0x0002
    ENCRYPTION_PADDING: Final = 0x0003
    SUBSCRIBE: Final = 0x0040
    PUSH: Final = 0x0041
    UNSUBSCRIBE: Final = 0x0042
    RECONFIRM: Final = 0x0043
    NODE_NAME: Final = 0xF8EE  # the name of the client's Node, as EDNS option 65518 has it in a query


class Tlv(NamedTuple):
    """One TLV: its type (0 to 65535) and at most 65,535 octets."""

    kind: int
    data: bytes


class DsoMessage(NamedTuple):
    """A DSO message. A request has an id and gets a response with that id; a unidirectional one has id 0, and none.

    `primary` is the first TLV: the operation. A response may have none, and one whose first TLV is of another type than
    that of its request has only additional ones (RFC 8490 section 5.4.3).
    """

    ident: int
    response: bool
    rcode: int
    primary: Tlv | None
    additional: tuple[Tlv, ...] = ()


class SessionTimeouts(NamedTuple):
    """The values of a Keepalive TLV, in milliseconds; `INFINITE`: none."""

    inactivity: int
    keepalive: int


def read_dso(octets: bytes) -> DsoMessage:
    """Decode a message whose opcode is `OPCODE`. Raises WireError.

    The counts of the header must be zero, TLVs must end with the message, and a message that is no response must have
    one (RFC 8490 sections 5.4, 5.4.1). The Z bits are ignored.
    """
    if len(octets) < HEADER_SIZE:
        raise WireError(f"{len(octets)} octets are no header")
    ident, flags, *counts = unpack_header(octets)
    if flags >> _OPCODE_AT & 0x0F != OPCODE:
        raise WireError("no DSO message")
    if any(counts):
        raise WireError("DSO message with a section of records")
    tlvs = _read_tlvs(octets)
    response = bool(flags & _QR)
    if not tlvs and not response:
        raise WireError("DSO message without a TLV")
    return DsoMessage(ident, response, flags & _RCODE, tlvs[0] if tlvs else None, tuple(tlvs[1:]))


def _read_tlvs(octets: bytes) -> list[Tlv]:
    tlvs: list[Tlv] = []
    at, end = HEADER_SIZE, len(octets)
    while at < end:
        if end - at < TLV_HEAD_SIZE:
            raise WireError("TLV cut off")
        kind, length = unpack_tlv_head(octets, at)
        at += TLV_HEAD_SIZE + length
        if at > end:
            raise WireError("TLV runs past the message")
        if len(tlvs) == _MAX_TLVS:
            raise WireError(f"more than {_MAX_TLVS} TLVs")
        tlvs.append(Tlv(kind, octets[at - length : at]))
    return tlvs


def write_dso(message: DsoMessage) -> bytes:
    """Encode a message, without the length that goes before it over TCP."""
    flags = (_QR if message.response else 0) | OPCODE << _OPCODE_AT | message.rcode & _RCODE
    parts = [pack_header(message.ident, flags, 0, 0, 0, 0)]
    for kind, data in (*(() if message.primary is None else (message.primary,)), *message.additional):
        parts += (pack_tlv_head(kind, len(data)), data)
    return b"".join(parts)


def write_dso_response(ident: int, rcode: int = Rcode.NOERROR, *tlvs: Tlv) -> bytes:
    """The response to the request with this id."""
    return write_dso(DsoMessage(ident, True, rcode, tlvs[0] if tlvs else None, tlvs[1:]))


def keepalive_tlv(timeouts: SessionTimeouts) -> Tlv:
    """A Keepalive TLV: what a client wishes, or what a server prescribes (RFC 8490 section 7.1)."""
    return Tlv(DsoType.KEEPALIVE, _TIMEOUTS.pack(*timeouts))


def read_keepalive(data: bytes) -> SessionTimeouts:
    """The values in the data of a Keepalive TLV. Raises WireError."""
    if len(data) != _TIMEOUTS.size:
        raise WireError(f"Keepalive TLV of {len(data)} octets, {_TIMEOUTS.size} expected")
    return SessionTimeouts(*_TIMEOUTS.unpack(data))


def retry_delay_tlv(milliseconds: int) -> Tlv:
    """A Retry Delay TLV: how long a client is to wait before it tries again (RFC 8490 section 7.2)."""
    return Tlv(DsoType.RETRY_DELAY, _DELAY.pack(milliseconds))


def read_retry_delay(data: bytes) -> int:
    """The milliseconds in the data of a Retry Delay TLV. Raises WireError."""
    if len(data) != _DELAY.size:
        raise WireError(f"Retry Delay TLV of {len(data)} octets, {_DELAY.size} expected")
    milliseconds: int = _DELAY.unpack(data)[0]
    return milliseconds
