"""Messages to upstreams: built anew, so that only the question and some flags of a client's query are passed on.

All are without their id, which the transport adds.
"""

from typing import Final

from topodns.dns.message import Edns, Flag, Query
from topodns.dns.name import name_wire
from topodns.dns.rrtype import RRClass, RRType
from topodns.dns.wire_format import (
    DNSSEC_OK,
    HEADER_SIZE,
    OPTION_HEAD_SIZE,
    ROOT_RECORD_HEAD_SIZE,
    pack_header_without_id,
    pack_option_head,
    pack_question_tail,
    pack_root_record_head,
)
from topodns.plugins.forward.settings import HealthCheck
from topodns.query.forwarded_options import forwarded_options

Options = tuple[tuple[int, bytes], ...]
"""EDNS options: code and data."""

PAYLOAD_SIZE: Final = 1232  # our own UDP payload size, whatever the client's is (RFC 9715)

QUESTION_AT: Final = HEADER_SIZE - 2  # offset of the question section

_ARCOUNT_AT: Final = QUESTION_AT - 2
_COPIED: Final = Flag.RD | Flag.AD | Flag.CD  # all flags with a meaning in a query (RFC 4035 3.2, RFC 6840 5.7)
# For each set of copied flags, the header of a query without and with an OPT record.
_HEADERS: Final = {
    flags: (pack_header_without_id(flags, 1, 0, 0, 0), pack_header_without_id(flags, 1, 0, 0, 1))
    for flags in (rd | ad | cd for rd in (0, Flag.RD) for ad in (0, Flag.AD) for cd in (0, Flag.CD))
}


class Outgoing:
    """Builds the messages to the upstreams of one directive, all with the same EDNS `options`.

    EDNS is hop by hop (RFC 6891 section 6.2.6): the OPT record is our own, holds only these options and the
    `forwarded_options` of the query, and is present if the query has one or there are options. Equal messages are the
    same question.
    """

    def __init__(self, options: Options = ()) -> None:
        packed = b"".join(pack_option_head(code, len(data)) + data for code, data in options)
        plain, dnssec_ok = _opt_record(0, packed), _opt_record(DNSSEC_OK, packed)
        self.options = options
        self._always = bool(options)
        # Indexed by whether the client sent an OPT record, then by its DO bit, which needs an OPT record.
        self._opts = ((plain if options else b"", b""), (plain, dnssec_ok))

    def question_message(self, query: Query) -> bytes:
        """The query for an upstream: the name in lower case, RD, AD, CD and DO as in the client's query."""
        edns = query.edns
        # Length octets are below 64, so bytes.lower leaves them alone.
        question = query.spelling.lower() + pack_question_tail(query.qtype, query.qclass)
        known = edns is not None
        opt = self.opt(known, edns is not None and edns.dnssec_ok)
        if edns is not None and edns.options:
            opt = self._with_forwarded(opt, edns, PAYLOAD_SIZE - HEADER_SIZE - len(question))
        return self.header(query.flags, known) + question + opt

    def header(self, flags: int, edns: bool) -> bytes:
        """The header of a message with these flags; `edns`: the client sent an OPT record."""
        return _HEADERS[flags & _COPIED][edns or self._always]

    def opt(self, edns: bool, dnssec_ok: bool) -> bytes:
        """The OPT record of the message, b"" for none. `edns`: the client sent one; `dnssec_ok`: with DO."""
        return self._opts[edns][dnssec_ok]

    def _with_forwarded(self, opt: bytes, edns: Edns, limit: int) -> bytes:
        """The OPT record with the `forwarded_options` of the query, in at most `limit` octets.

        Options that would make it longer are left out, and those of a code that is among our own `options`: two node
        identities would contradict each other.
        """
        options, own = opt[ROOT_RECORD_HEAD_SIZE:], {code for code, _ in self.options}
        for code, data in forwarded_options(edns):
            size = ROOT_RECORD_HEAD_SIZE + len(options) + OPTION_HEAD_SIZE + len(data)
            if code not in own and size <= limit:
                options += pack_option_head(code, len(data)) + data
        return _opt_record(DNSSEC_OK if edns.dnssec_ok else 0, options)


def has_edns(message: bytes) -> bool:
    """Whether the message has an OPT record: no message to an upstream has any other record."""
    return message[QUESTION_AT - 1] != 0


def without_edns(message: bytes, question: bytes) -> bytes:
    """`message`, whose question section is `question`, without an OPT record."""
    return message[:_ARCOUNT_AT] + b"\0\0" + question


def probe_message(check: HealthCheck) -> bytes:
    """The query of a health check: `domain IN NS`."""
    header = pack_header_without_id(Flag.RD if check.recursion_desired else 0, 1, 0, 0, 0)
    return header + name_wire(check.domain) + pack_question_tail(RRType.NS, RRClass.IN)


def _opt_record(flags: int, options: bytes) -> bytes:
    return pack_root_record_head(0, RRType.OPT, PAYLOAD_SIZE, flags, len(options)) + options
