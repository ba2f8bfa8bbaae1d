"""Query variants: the letter cases (spellings) and EDNS options of a query that one packet cache entry answers.

Clients vary a query without changing its meaning: a cookie (RFC 7873), padding (RFC 7830), options that this server
ignores, random case (0x20). Here is which variants a server block and a reply allow. All variants of a query have the
same plain form, which is the key of the entry (see `key`), and the reply to a variant is the entry's reply with the
variant's spelling of the question.
"""

from functools import lru_cache
from typing import Final

from topodns.dns.rrtype import RRType
from topodns.dns.soa import MAILBOX, PRIMARY, SHARED_WITH_NAMES
from topodns.dns.wire_format import HEADER_SIZE, POINTER, POINTER_OCTET, QUESTION_TAIL_SIZE, end_of_name
from topodns.dnsserver.packet_cache.key import NAME_AT
from topodns.dnsserver.packet_cache.rotation import record_places
from topodns.plugins.block import ServerBlock
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import Reads, load
from topodns.query.packet_entry import Variants
from topodns.query.plugin import Resolution

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


def variants_of(reply: bytes, resolution: Resolution, allowed: Variants) -> Variants:
    """The variants of `allowed` that this reply answers: other EDNS options always, other spellings of the name if to
    respell the question respells the whole reply.

    For that, each name of the reply that repeats the query's spelling must be a pointer into the question. Two kinds of
    replies are known to be so: those whose records are all addresses of the query's name, from a plugin that spells no
    other name (`spells`); and those whose only record is the SOA of a cluster's origin, as its names end in the query's
    spelling of the origin (as in CoreDNS).
    """
    spelled = _spelled_types(resolution.plugin) if allowed.spellings else None
    if not spelled:
        return OF_OPTIONS
    response = resolution.response
    for rrset in (*response.answer, *response.authority, *response.additional):
        if rrset.rtype not in spelled:
            return OF_OPTIONS
        if rrset.rtype == RRType.SOA:
            return variants_of_soa(reply)
        if rrset.owner:
            return OF_OPTIONS
    return OF_SPELLINGS


def variants_of_soa(reply: bytes) -> Variants:
    """The variants that hold for a reply whose only record is an SOA: see `variants_of`."""
    name_end = end_of_name(reply, HEADER_SIZE)
    records = [*record_places(reply)]
    if len([record for record in records if record.rtype != RRType.OPT]) != 1 or records[0].rtype != RRType.SOA:
        return OF_OPTIONS
    owner_at = name_end + QUESTION_TAIL_SIZE
    owner = reply[owner_at : owner_at + 2]
    if owner[0] < POINTER_OCTET:
        return OF_OPTIONS
    # MNAME and RNAME, as `soa.soa_rrset` makes them, end in pointers to the origin, too, unless more of them is the
    # question's.
    front = reply[HEADER_SIZE : int.from_bytes(owner, "big") - POINTER].lower()
    spelled = reply.startswith(PRIMARY + owner + MAILBOX + owner, records[0].rdata_at)
    return OF_SPELLINGS if spelled and not front.endswith(SHARED_WITH_NAMES) else OF_OPTIONS


def respelled(tail: bytes, name: bytes) -> bytes:
    """A reply without its id, with the question's name spelled as `name`, which is the same name."""
    return tail[:NAME_AT] + name + tail[NAME_AT + len(name) :]
