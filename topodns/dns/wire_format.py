"""Layout of DNS messages: the fixed parts of header, question, records and OPT (RFC 1035 section 4, RFC 6891).

Every structure is defined here once, for the decoders, the encoder and all that reads single octets of a message, as
functions and sizes: Python 3.11 calls a method of an imported object, such as a `Struct`, more slowly than a function.
"""

from struct import Struct
from typing import Final, NamedTuple

from topodns.dns.rrtype import RRType

_HEADER: Final = Struct("!HHHHHH")  # id, flags, and the numbers of questions, answer, authority and additional records
pack_header: Final = _HEADER.pack
unpack_header: Final = _HEADER.unpack_from
pack_header_without_id: Final = Struct("!HHHHH").pack
HEADER_SIZE: Final = 12
COUNTS_AT: Final = 6  # offset of ANCOUNT, NSCOUNT and ARCOUNT
unpack_record_counts: Final = Struct("!HHH").unpack_from

_QUESTION_TAIL: Final = Struct("!HH")  # type, class
pack_question_tail: Final = _QUESTION_TAIL.pack
unpack_question_tail: Final = _QUESTION_TAIL.unpack_from
QUESTION_TAIL_SIZE: Final = 4

unpack_record_head: Final = Struct("!HHIH").unpack_from  # after the owner: type, class, TTL, RDLENGTH
RECORD_HEAD_SIZE: Final = 10
_ROOT_RECORD_HEAD: Final = Struct("!BHHIH")  # with the root as owner, as in OPT: 0, and the same
pack_root_record_head: Final = _ROOT_RECORD_HEAD.pack
unpack_root_record_head: Final = _ROOT_RECORD_HEAD.unpack_from
ROOT_RECORD_HEAD_SIZE: Final = 11
pack_pointer_record_head: Final = Struct("!HHHIH").pack  # with a pointer as owner: the pointer, and the same
POINTER_RECORD_HEAD_SIZE: Final = 12  # no record is shorter but for its RDATA, except at the root
SRV_HEAD_SIZE: Final = 6  # octets of an SRV record's RDATA before its target: priority, weight, port (RFC 2782)
_OPTION_HEAD: Final = Struct("!HH")  # an EDNS option's code and length
pack_option_head: Final = _OPTION_HEAD.pack
unpack_option_head: Final = _OPTION_HEAD.unpack_from
OPTION_HEAD_SIZE: Final = 4
_TLV_HEAD: Final = Struct("!HH")  # type and length of a TLV of DNS Stateful Operations (RFC 8490 section 5.4.4)
pack_tlv_head: Final = _TLV_HEAD.pack
unpack_tlv_head: Final = _TLV_HEAD.unpack_from
TLV_HEAD_SIZE: Final = 4
pack_record_head: Final = Struct("!HHIH").pack  # after the owner: type, class, TTL, RDLENGTH
pack_soa_numbers: Final = Struct("!IIIII").pack  # serial, refresh, retry, expire, minimum (RFC 1035 section 3.3.13)


class NamesInRdata(NamedTuple):
    """Where RDATA of a type has names, after which nothing but `after` octets follow."""

    before: int  # octets before the names
    strings: int  # character strings after those octets
    names: int
    after: int


# Types whose names senders may compress (RFC 3597 section 4: those of RFC 1035).
COMPRESSIBLE: Final[dict[int, NamesInRdata]] = {
    RRType.NS: NamesInRdata(0, 0, 1, 0),
    RRType.MD: NamesInRdata(0, 0, 1, 0),
    RRType.MF: NamesInRdata(0, 0, 1, 0),
    RRType.CNAME: NamesInRdata(0, 0, 1, 0),
    RRType.SOA: NamesInRdata(0, 0, 2, 20),
    RRType.MB: NamesInRdata(0, 0, 1, 0),
    RRType.MG: NamesInRdata(0, 0, 1, 0),
    RRType.MR: NamesInRdata(0, 0, 1, 0),
    RRType.PTR: NamesInRdata(0, 0, 1, 0),
    RRType.MINFO: NamesInRdata(0, 0, 2, 0),
    RRType.MX: NamesInRdata(2, 0, 1, 0),
}

POINTER: Final = 0xC000  # the bits that make an offset a compression pointer (RFC 1035 section 4.1.4)
POINTER_OCTET: Final = 0xC0  # the same in the first octet, which is otherwise the length of a label
MAX_OFFSET: Final = 0x3FFF  # the greatest that a pointer can have
MAX_POINTERS: Final = 127  # in a row: a name cannot have more labels
QNAME_POINTER: Final = POINTER | HEADER_SIZE  # to the question's name

DNSSEC_OK: Final = 0x8000  # the DO bit in the TTL field of OPT (RFC 3225 section 3)
MIN_UDP_PAYLOAD: Final = 512  # RFC 6891 section 6.2.3: smaller values mean 512
MAX_MESSAGE: Final = 0xFFFF  # octets, also of RDATA: the length over TCP has 16 bits (RFC 1035 section 4.2.2)


def reply_limit(udp: bool, accepted: int, payload_size: int) -> int:
    """Maximum octets of the reply to a query over UDP or, else, over TCP.

    Over UDP: the payload size that the client accepts by its EDNS (0 without EDNS), at most the server's own
    `payload_size`, at least 512.
    """
    if not udp:
        return MAX_MESSAGE
    size = accepted if accepted < payload_size else payload_size  # without calls: this is on the path of every query
    return size if size > MIN_UDP_PAYLOAD else MIN_UDP_PAYLOAD


def end_of_name(message: bytes, at: int) -> int:
    """The offset after the name at `at`, compressed or not."""
    while (octet := message[at]) != 0:
        if octet >= POINTER_OCTET:
            return at + 2
        at += 1 + octet
    return at + 1
