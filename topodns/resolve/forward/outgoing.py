"""The messages sent to upstreams: made anew, so that nothing a client put beside its question leaves with it."""

import struct
from collections.abc import Callable
from typing import Final

from topodns.dns.message import Flag, Query, RRClass, RRType
from topodns.dns.names import name_wire
from topodns.resolve.step import Client
from topodns.settings.forward import HealthCheck

Options = tuple[tuple[int, bytes], ...]
OptionsFor = Callable[[Client], Options]
"""The EDNS options that a client's questions leave with."""

PAYLOAD_SIZE: Final = 1232  # what we take over UDP, whatever the client takes (RFC 9715)

_COPIED: Final = int(Flag.RD | Flag.AD | Flag.CD)  # all that a question's header may mean (RFC 4035 3.2, RFC 6840 5.7)
_OPT: Final = int(RRType.OPT)
_DNSSEC_OK: Final = 0x8000
_header = struct.Struct("!HHHHHH")
_question_tail = struct.Struct("!HH")
_opt_head = struct.Struct("!BHHIH")
_option_head = struct.Struct("!HH")
# For each set of the flags copied, the header of a question without and with an OPT record.
_HEADERS: Final = {
    flags: (_header.pack(0, flags, 1, 0, 0, 0), _header.pack(0, flags, 1, 0, 0, 1))
    for flags in (rd | ad | cd for rd in (0, Flag.RD) for ad in (0, Flag.AD) for cd in (0, Flag.CD))
}
_PLAIN_OPT: Final = _opt_head.pack(0, _OPT, PAYLOAD_SIZE, 0, 0)
_PLAIN_OPT_DO: Final = _opt_head.pack(0, _OPT, PAYLOAD_SIZE, _DNSSEC_OK, 0)


def no_options(_: Client) -> Options:
    """For upstreams that are to learn nothing about the client."""
    return ()


def question_message(query: Query, options: Options = ()) -> bytes:
    """The query as an upstream gets it: id 0, the name in lower case, RD, AD, CD and DO as the client has them.

    EDNS is hop by hop (RFC 6891 section 6.2.6): the OPT record is our own, with nothing but `options`, and is there
    where the client sent one or there are options. Equal messages are the same question.
    """
    edns = query.edns
    # Length octets are below 64, so bytes.lower leaves them alone.
    question = query.spelling.lower() + _question_tail.pack(query.qtype, query.qclass)
    dnssec_ok = edns is not None and edns.dnssec_ok
    if options:
        return _HEADERS[query.flags & _COPIED][1] + question + _opt_record(dnssec_ok, options)
    return plain_message(query.flags, question, edns is not None, dnssec_ok)


def plain_message(flags: int, question: bytes, edns: bool, dnssec_ok: bool) -> bytes:
    """The same of this question section in lower case, without options."""
    header = _HEADERS[flags & _COPIED][edns]
    return header + question + (_PLAIN_OPT_DO if dnssec_ok else _PLAIN_OPT) if edns else header + question


def without_edns(message: bytes, question: bytes) -> bytes:
    """`message`, whose question section this is, without its OPT record; the same message where it has none."""
    return message[:10] + b"\0\0" + question


def probe_message(check: HealthCheck) -> bytes:
    """The question that finds out whether an upstream answers at all."""
    header = _header.pack(0, Flag.RD if check.recursion_desired else 0, 1, 0, 0, 0)
    return header + name_wire(check.domain) + _question_tail.pack(RRType.NS, RRClass.IN)


def _opt_record(dnssec_ok: bool, options: Options) -> bytes:
    rdata = b"".join(_option_head.pack(code, len(data)) + data for code, data in options)
    return _opt_head.pack(0, _OPT, PAYLOAD_SIZE, _DNSSEC_OK if dnssec_ok else 0, len(rdata)) + rdata
