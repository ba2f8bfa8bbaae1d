"""The key of a packet cache entry: the plain form of a query, without its id.

The plain form of a message is the same query with its name in lower case and without EDNS options. It keeps flags,
type, class and the OPT record's payload size and DO, so that an entry cannot be wrong about those. Queries with an
option that topodns reads (`_READ`), with records of their own or with another layout have no plain form.
"""

from typing import Final

from topodns.dns.message import Option, Query
from topodns.dns.rrtype import members
from topodns.dns.wire_format import HEADER_SIZE, OPTION_HEAD_SIZE, QUESTION_TAIL_SIZE, ROOT_RECORD_HEAD_SIZE
from topodns.dnsserver.plain_question import OPT_BEGIN

NAME_AT: Final = HEADER_SIZE - 2  # offset of the question's name in a message without its id

# All options that code here reads are in `Option`; of these, a server without cookies ignores COOKIE (RFC 7873
# section 5.2).
_READ: Final = frozenset(members(Option).values()) - {Option.COOKIE}
_MAX_OPTIONS: Final = 8  # a message with more options is no variant and takes the handler

_COUNTS: Final = slice(2, NAME_AT)  # QDCOUNT, ANCOUNT, NSCOUNT and ARCOUNT
_BARE: Final = b"\0\1\0\0\0\0\0\0"  # counts of one question and no record
_WITH_OPT: Final = b"\0\1\0\0\0\0\0\1"  # and of one question and an OPT record

BEHIND_NAME: Final = (1 + QUESTION_TAIL_SIZE, 1 + QUESTION_TAIL_SIZE + ROOT_RECORD_HEAD_SIZE)
"""Octets of a message in its plain form from the last one of the name on, without and with an OPT record."""

_BESIDE_NAME: Final = HEADER_SIZE + QUESTION_TAIL_SIZE  # octets of a plain form beside the name, with the id
_BESIDE_NAME_WITH_OPT: Final = _BESIDE_NAME + ROOT_RECORD_HEAD_SIZE
_NO_OPTIONS: Final = b"\0\0"  # RDLENGTH of an OPT record without options


def key_of(message: bytes, query: Query, has_variants: bool) -> bytes | None:
    """The plain form of a parsed message; None if it has none, or is a variant and variants are not allowed.

    The message is without its id. A label with a zero octet would end the name too early in `plain_form`: other names
    would have the same form.
    """
    _, _, _, spelling, _, _, edns, size = query
    if size - len(spelling) == (_BESIDE_NAME if edns is None else _BESIDE_NAME_WITH_OPT) and spelling.islower():
        return message  # only the question, and an OPT record without options, if any
    if spelling.find(0) != len(spelling) - 1:
        return None
    key = plain_form(message)
    return key if has_variants or key == message else None


def plain_form(message: bytes) -> bytes | None:
    """The plain form of a query; None if it has another layout, an option that is read here (`_READ`), or over 8
    options.

    Both are without their ids. The layout: one question, no record but an OPT at the end, options that fill its RDATA
    exactly. The name is taken to end at its first zero octet, which is wrong if a label contains one: the caller must
    exclude that. A plain form that equals the one of a parsed message, whose name has no such label, proves that this
    message is valid, too, and has the same question.
    """
    name_end = message.find(0, NAME_AT) + 1
    # Lower only the name: a type or a class may contain the octets of letters.
    counts = message[_COUNTS]
    if counts == _WITH_OPT:
        end = name_end + QUESTION_TAIL_SIZE
        at = end + ROOT_RECORD_HEAD_SIZE
        if message[end : end + len(OPT_BEGIN)] != OPT_BEGIN or not _has_unread_options(message, at):
            return None
        return message[:NAME_AT] + message[NAME_AT:name_end].lower() + message[name_end : at - 2] + _NO_OPTIONS
    if counts == _BARE and len(message) == name_end + QUESTION_TAIL_SIZE:
        return message[:NAME_AT] + message[NAME_AT:name_end].lower() + message[name_end:]
    return None


def _has_unread_options(message: bytes, at: int) -> bool:
    """Whether the OPT record's RDATA, which begins at `at`, is the rest of the message and has no option in `_READ`.

    True without options, False for more than 8. Also checks that the options are complete, as
    `wire_reader.read_options` does.
    """
    end = len(message)
    if at > end or end - at != message[at - 2] << 8 | message[at - 1]:
        return False
    for _ in range(_MAX_OPTIONS):
        if at == end:
            return True
        if end - at < OPTION_HEAD_SIZE:
            return False
        if message[at] << 8 | message[at + 1] in _READ:
            return False
        at += OPTION_HEAD_SIZE + (message[at + 2] << 8 | message[at + 3])
        if at > end:
            return False
    return at == end


def name_in(message: bytes, plain: bytes) -> bytes:
    """The question's name, in wire form, of a message without its id whose plain form is `plain`."""
    behind = QUESTION_TAIL_SIZE + (ROOT_RECORD_HEAD_SIZE if plain[NAME_AT - 1] else 0)
    return message[NAME_AT : len(plain) - behind]
