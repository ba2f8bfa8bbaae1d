"""Replies that match their query in every way, with a fault in their content."""

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tests.support.faulty_upstream import ANSWER, Act, Asked, Behaviour
from tests.support.upstream_faults import Lie, answers, question_of, reply_to
from topodns.dns.tcp_framing import frame

A: Final = 1
NS: Final = 2
CNAME: Final = 5
OPT: Final = 41

_QR_RD_RA: Final = 0x8180
_FORMERR, _BADVERS = 1, 16
_ASKED: Final = b"\xc0\x0c"  # a pointer to the question's name
_LARGEST_DATAGRAM: Final = 65_507  # octets of one over IPv4

Records = Sequence[bytes]


def wire_name(text: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".") if label) + b"\0"


def packed(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


def record(owner: bytes, rtype: int, rdata: bytes, ttl: int = 60, rclass: int = 1) -> bytes:
    return owner + struct.pack("!HHIH", rtype, rclass, ttl, len(rdata)) + rdata


def compose(
    message: bytes, answer: Records = (), authority: Records = (), additional: Records = (), rcode: int = 0
) -> bytes:
    """The reply to a query with these records."""
    counts = struct.pack("!5H", _QR_RD_RA | rcode, 1, len(answer), len(authority), len(additional))
    return message[:2] + counts + question_of(message) + b"".join([*answer, *authority, *additional])


def opt_record(version: int = 0, upper_rcode: int = 0, rdata: bytes = b"") -> bytes:
    return record(b"\0", OPT, rdata, upper_rcode << 24 | version << 16, 1232)


def the_answer(message: bytes) -> bytes:
    return compose(message, [_TRUTH])


def with_two_opts(message: bytes) -> bytes:
    """RFC 6891 section 6.1.1 allows one."""
    return compose(message, [_TRUTH], additional=[opt_record(), opt_record()])


def alias_with_two_opts(message: bytes) -> bytes:
    """An answer of two RRsets, with two OPT records."""
    other = wire_name("other.test")
    answer = [record(_ASKED, CNAME, other), record(other, A, packed(ANSWER))]
    return compose(message, answer, additional=[opt_record(), opt_record()])


def with_edns_1(message: bytes) -> bytes:
    return compose(message, [_TRUTH], additional=[opt_record(version=1)])


def with_an_option_cut_short(message: bytes) -> bytes:
    return compose(message, [_TRUTH], additional=[opt_record(rdata=b"\0\x0a\0\xffcookie")])


def formerr_to_edns(message: bytes) -> bytes:
    """A server from before EDNS: the header alone, or the answer where there is no OPT record."""
    if not message[11]:
        return the_answer(message)
    return message[:2] + struct.pack("!5H", _QR_RD_RA | _FORMERR, 1, 0, 0, 0) + question_of(message)


def badvers_to_edns(message: bytes) -> bytes:
    if not message[11]:
        return the_answer(message)
    return compose(message, additional=[opt_record(upper_rcode=_BADVERS >> 4)], rcode=_BADVERS & 0xF)


def servfail(message: bytes) -> bytes:
    return compose(message, rcode=2)


def alias_of_itself(message: bytes) -> bytes:
    return compose(message, [record(_ASKED, CNAME, _ASKED)])


def aliases_in_a_circle(message: bytes) -> bytes:
    other = wire_name("other.test")
    return compose(message, [record(_ASKED, CNAME, other), record(other, CNAME, _ASKED)])


def long_chain(links: int) -> Lie:
    """So many CNAMEs, and an address at the end."""
    names = [_ASKED, *(wire_name(f"link-{number}.test") for number in range(links))]
    chain = [record(owner, CNAME, target) for owner, target in pairwise(names)]
    return lambda message: compose(message, [*chain, record(names[-1], A, packed(ANSWER))])


def name_pointing_to_itself(message: bytes) -> bytes:
    here = 12 + len(question_of(message))
    return compose(message, [record((0xC000 | here).to_bytes(2, "big"), A, packed(ANSWER))])


def more_records_than_there_are(message: bytes) -> bytes:
    whole = the_answer(message)
    return whole[:6] + b"\xff\xff" + whole[8:]


def address_of_five_octets(message: bytes) -> bytes:
    return compose(message, [record(_ASKED, A, b"\xc0\0\2\1\1")])


def octets_after_the_end(message: bytes) -> bytes:
    return the_answer(message) + b"\xff" * 40


def half_a_message(message: bytes) -> bytes:
    """The question is whole, its answer is not."""
    return reply_to(message)[:-8]


def as_large_as_a_datagram(message: bytes) -> bytes:
    room = _LARGEST_DATAGRAM - 12 - len(question_of(message))
    text = record(_ASKED, 16, b"\xff" + b"x" * 255)
    return compose(message, [text] * (room // len(text)))


def half_and_silence(asked: Asked) -> list[Act]:
    """Half of a message, and a connection that stays open."""
    whole = frame(reply_to(asked.message))
    return [Act(lambda: asked.channel.send_raw(whole[: len(whole) // 2]))]


def not_dns(asked: Asked) -> list[Act]:
    """The reply of a web server."""
    return [Act(lambda: asked.channel.send_raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")), Act(asked.channel.close)]


def at_first(fault: Behaviour) -> Behaviour:
    """The fault when a question comes for the first time, then the answer."""
    met: set[bytes] = set()

    def behave(asked: Asked) -> Sequence[Act]:
        question = question_of(asked.message)
        if question in met:
            return answers(asked)
        met.add(question)
        return fault(asked)

    return behave


def by_transport(udp: Behaviour, tcp: Behaviour) -> Behaviour:
    return lambda asked: (udp if asked.transport == "udp" else tcp)(asked)


_TRUTH: Final = record(_ASKED, A, packed(ANSWER))
