"""The messages sent to upstreams: made anew, so that nothing a client put beside its question leaves with it."""

import struct
from typing import Final

from topodns.dns.message import Flag, Query, RRClass, RRType
from topodns.dns.names import name_wire
from topodns.settings.forward import HealthCheck

Options = tuple[tuple[int, bytes], ...]
"""EDNS options: code and data."""

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


class Outgoing:
    """Makes the messages for upstreams that are all told the same: `options`.

    EDNS is hop by hop (RFC 6891 section 6.2.6): the OPT record is our own, with nothing but these, and is there where
    the client sent one or there are options. Equal messages are the same question.
    """

    def __init__(self, options: Options = ()) -> None:
        plain, dnssec_ok = _opt_record(0, options), _opt_record(_DNSSEC_OK, options)
        self._always = bool(options)
        # By whether the client sent an OPT record, and by its DO bit, which nobody can set without one.
        self._opts = ((plain if options else b"", b""), (plain, dnssec_ok))

    def question_message(self, query: Query) -> bytes:
        """The query as an upstream gets it: id 0, the name in lower case, RD, AD, CD and DO as the client has them."""
        edns = query.edns
        # Length octets are below 64, so bytes.lower leaves them alone.
        question = query.spelling.lower() + _question_tail.pack(query.qtype, query.qclass)
        known = edns is not None
        return self.header(query.flags, known) + question + self.opt(known, edns is not None and edns.dnssec_ok)

    def header(self, flags: int, edns: bool) -> bytes:
        """What stands before the question section of a message with these flags."""
        return _HEADERS[flags & _COPIED][edns or self._always]

    def opt(self, edns: bool, dnssec_ok: bool) -> bytes:
        """The OPT record behind it, b"" for none."""
        return self._opts[edns][dnssec_ok]


def without_edns(message: bytes, question: bytes) -> bytes:
    """`message`, whose question section this is, without its OPT record; the same message where it has none."""
    return message[:10] + b"\0\0" + question


def probe_message(check: HealthCheck) -> bytes:
    """The question that finds out whether an upstream answers at all."""
    header = _header.pack(0, Flag.RD if check.recursion_desired else 0, 1, 0, 0, 0)
    return header + name_wire(check.domain) + _question_tail.pack(RRType.NS, RRClass.IN)


def _opt_record(flags: int, options: Options) -> bytes:
    rdata = b"".join(_option_head.pack(code, len(data)) + data for code, data in options)
    return _opt_head.pack(0, _OPT, PAYLOAD_SIZE, flags, len(rdata)) + rdata
