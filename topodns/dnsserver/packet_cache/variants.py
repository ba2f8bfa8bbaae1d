"""Query variants: the letter cases (spellings) and EDNS options of a query that one packet cache entry answers.

Clients vary a query without changing its meaning: a cookie (RFC 7873), padding (RFC 7830), options that this server
ignores, random case (0x20). The plain form of a message is the same query in lower case and without options; it is the
key of an entry, and the reply to a variant is the entry's reply with the variant's spelling of the question.
"""

from functools import lru_cache
from typing import Final

from topodns.dns.message import Option
from topodns.dns.rrtype import RRType, members
from topodns.dns.soa import MAILBOX, PRIMARY
from topodns.dns.wire_format import (
    HEADER_SIZE,
    OPTION_HEAD_SIZE,
    POINTER,
    QUESTION_TAIL_SIZE,
    ROOT_RECORD_HEAD_SIZE,
)
from topodns.dnsserver.packet_cache.rotation import end_of_name, record_places
from topodns.plugins import ORDER, load
from topodns.plugins.block import ServerBlock
from topodns.plugins.plugin import Reads
from topodns.query.packet import Variants
from topodns.query.plugin import Resolution

NAME_AT: Final = HEADER_SIZE - 2  # offset of the question's name in a message without its id

# All options that code here reads are in `Option`; of these, a server without cookies ignores COOKIE (RFC 7873
# section 5.2).
_READ: Final = frozenset(members(Option).values()) - {Option.COOKIE}
_MAX_OPTIONS: Final = 8  # a message with more options is no variant and takes the handler

_COUNTS: Final = slice(2, NAME_AT)  # QDCOUNT, ANCOUNT, NSCOUNT and ARCOUNT
_BARE: Final = b"\0\1\0\0\0\0\0\0"
_WITH_OPT: Final = b"\0\1\0\0\0\0\0\1"
_OPT_BEGIN: Final = b"\0\0\x29"  # the root as owner, and the type
BEHIND_NAME: Final = (1 + QUESTION_TAIL_SIZE, 1 + QUESTION_TAIL_SIZE + ROOT_RECORD_HEAD_SIZE)
"""Octets of a message in its plain form from the last one of the name on, without and with an OPT record."""

BESIDE_NAME: Final = HEADER_SIZE + QUESTION_TAIL_SIZE
"""Octets of a message in its plain form beside the name, with its id."""

BESIDE_NAME_WITH_OPT: Final = BESIDE_NAME + ROOT_RECORD_HEAD_SIZE
_NO_OPTIONS: Final = b"\0\0"


OF_OPTIONS: Final = Variants(spellings=False)
OF_SPELLINGS: Final = Variants(spellings=True)


def block_variants(block: ServerBlock) -> Variants | None:
    """The query variants that the plugins of this block allow at most; None if a plugin may read any EDNS option.

    A `view` does, so no block of its listener has variants: see `BlockTable`.
    """
    reads = max((load(name).reading(settings) for name, settings in block.settings.items()), default=Reads.QUESTION)
    if reads is Reads.EVERYTHING:
        return None
    return OF_SPELLINGS if reads is Reads.QUESTION else OF_OPTIONS


@lru_cache
def _spelled_types(plugin: str) -> frozenset[int]:
    return load(plugin).spells if plugin in ORDER else frozenset()


def plain_form(message: bytes) -> bytes | None:
    """The plain form of a query; None if it has another layout, or an option that is read here (`_READ`).

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
        if message[end : end + len(_OPT_BEGIN)] != _OPT_BEGIN or not _has_unread_options(message, at):
            return None
        return message[:NAME_AT] + message[NAME_AT:name_end].lower() + message[name_end : at - 2] + _NO_OPTIONS
    if counts == _BARE and len(message) == name_end + QUESTION_TAIL_SIZE:
        return message[:NAME_AT] + message[NAME_AT:name_end].lower() + message[name_end:]
    return None


def _has_unread_options(message: bytes, at: int) -> bool:
    """Whether the OPT record's RDATA, which begins at `at`, is the rest of the message and has no option in `_READ`.

    Also checks that the options are complete, as `wire_reader.read_options` does.
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


def variants_of(reply: bytes, resolution: Resolution, most: Variants) -> Variants:
    """The variants of `most` that hold for this reply: spellings, if another spelling changes only its question.

    That is so if all records are addresses of the query's name, or the only record is the SOA of a cluster's origin,
    which repeats the origin in the query's spelling, as in CoreDNS. The owners are pointers into the question.
    """
    spelled = _spelled_types(resolution.plugin) if most.spellings else None
    if not spelled:
        return OF_OPTIONS
    response = resolution.response
    for rrset in (*response.answer, *response.authority, *response.additional):
        if rrset.rtype not in spelled:
            return OF_OPTIONS
        if rrset.rtype == RRType.SOA:
            return _of_soa(reply)
        if rrset.owner:
            return OF_OPTIONS
    return OF_SPELLINGS


def _of_soa(reply: bytes) -> Variants:
    name_end = end_of_name(reply, HEADER_SIZE)
    records = [*record_places(reply)]
    if len([record for record in records if record.rtype != RRType.OPT]) != 1 or records[0].rtype != RRType.SOA:
        return OF_OPTIONS
    owner_at = name_end + QUESTION_TAIL_SIZE
    target = int.from_bytes(reply[owner_at : owner_at + 2], "big") - POINTER
    if not HEADER_SIZE <= target < name_end:
        return OF_OPTIONS
    return _with_copies(reply, reply[target:name_end], records[0].rdata_at)


def _with_copies(reply: bytes, origin: bytes, rdata_at: int) -> Variants:
    """Variants with spellings, if MNAME and RNAME end in this origin, as `soa.soa_rrset` writes them."""
    if not reply.startswith(PRIMARY + origin + MAILBOX + origin, rdata_at):
        return OF_OPTIONS
    first = rdata_at + len(PRIMARY) - 2
    return _shared(first, first + len(origin) + len(MAILBOX), len(origin))


@lru_cache(maxsize=4096)
def _shared(first: int, second: int, length: int) -> Variants:
    """The same object for all entries with these offsets, to save memory: there are few different ones."""
    return Variants(spellings=True, copies=((first, length), (second, length)))


def respelled(tail: bytes, name: bytes, variants: Variants) -> bytes:
    """A reply without its id, with the question's name spelled as `name`, which is the same name."""
    made = tail[:NAME_AT] + name + tail[NAME_AT + len(name) :]
    for at, length in variants.copies:
        made = made[:at] + name[-length:] + made[at + length :]
    return made
