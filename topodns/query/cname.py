"""CNAME chasing, with CoreDNS's limits: completes an answer that ends in a CNAME with records of another plugin."""

from collections.abc import Callable, Sequence
from typing import Final

from topodns.dns.message import Flag, Query, Response, RRset
from topodns.dns.name import Name, name_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.soa import negative_ttl
from topodns.query.plugin import Answered, Client, Dropped, Resolution, Scope, settled

MAX_CHAIN: Final = 16  # CNAMEs in a row in one source, a zone file or an upstream's answer, that are followed
MAX_TARGETS: Final = 16  # CNAMEs of one name that are followed
MAX_CHASE: Final = 8  # CNAMEs in a row that lead from one plugin to another
_OF_TARGET: Final = (Rcode.NXDOMAIN, Rcode.SERVFAIL)  # the rcodes of a target that are also the alias's

Chase = Callable[[Name, int, Client], Answered | None]
"""(target, qtype, client) -> the listener's answer for the target; SERVFAIL after MAX_CHASE, None without a block."""


def follow(
    target: Name,
    resolution: Resolution,
    query: Query,
    client: Client,
    chase: Chase | None,
    soa: RRset | None = None,
) -> Answered:
    """`resolution`, whose answer ends in a CNAME to `target`, completed in place with the records of `target`.

    `soa`: of the zone of the CNAME. With it the result also has the target's NXDOMAIN or SERVFAIL (RFC 6604 section 3;
    CoreDNS does so for `file` alone) and, if the target is denied, the SOA of the denial as authority: the one that
    came with it (RFC 2308 section 2.1), else `soa`. Other rcodes, such as REFUSED, are about a server, not about the
    name that was queried, and stay out.

    The target's records may age or differ by client, which is not tracked here, so the result is never kept
    (Scope.CLIENT). Without `chase`, or if it gives None, `resolution` is returned unchanged, and with that scope if a
    filter of the target's block drops the query.
    """
    try:
        chased = None if chase is None else chase(target, query.qtype, client)
    except Dropped:
        return _alone(resolution)
    if chased is None:
        return resolution
    if isinstance(chased, Resolution):
        return _joined(resolution, chased, target, soa)
    return _follow_later(target, resolution, chased, soa)


def follow_each(
    targets: Sequence[Name], resolution: Resolution, query: Query, client: Client, chase: Chase | None
) -> Answered:
    """As `follow`, for an answer with CNAMEs to each of these targets, which may be none.

    At most MAX_TARGETS are followed, and of an answer that a CNAME led to the first alone, so that the work for one
    query does not grow by a power with each CNAME.
    """
    targets = targets[: 1 if client.depth else MAX_TARGETS]
    if chase is None or not targets:
        return resolution
    if len(targets) == 1:
        return follow(targets[0], resolution, query, client, chase)
    return _follow_each(targets, resolution, query, client, chase)


async def _follow_each(
    targets: Sequence[Name], resolution: Resolution, query: Query, client: Client, chase: Chase
) -> Resolution:
    for target in targets:
        resolution = await settled(follow(target, resolution, query, client, chase))
    return resolution


async def _follow_later(target: Name, resolution: Resolution, chased: Answered, soa: RRset | None) -> Resolution:
    try:
        found = await settled(chased)
    except Dropped:
        return _alone(resolution)
    return _joined(resolution, found, target, soa)


def _alone(resolution: Resolution) -> Resolution:
    resolution.scope = Scope.CLIENT
    return resolution


def _joined(resolution: Resolution, chased: Resolution, target: Name, soa: RRset | None) -> Resolution:
    resolution.scope = Scope.CLIENT
    response = resolution.response
    if soa is not None and chased.response.rcode in _OF_TARGET:
        response.rcode = chased.response.rcode
    if soa is not None and _is_denial(chased.response):
        response.authority = _soas(chased.response, target) or (soa,)
    response.answer = (*response.answer, *owned(chased.response.answer, name_wire(target)))
    response.flags |= chased.response.flags & Flag.TC
    return resolution


def _is_denial(response: Response) -> bool:
    """Whether there is no such name, or no such record, by a response that is neither a referral nor truncated."""
    if response.rcode != Rcode.NOERROR:
        return response.rcode == Rcode.NXDOMAIN
    types = {rrset.rtype for rrset in response.authority}
    return RRType.SOA in types or not (response.answer or RRType.NS in types or response.flags & Flag.TC)


def _soas(response: Response, target: Name) -> tuple[RRset, ...]:
    """The SOA of a denial, with the negative TTL."""
    soas = (rrset for rrset in response.authority if rrset.rtype == RRType.SOA)
    found = tuple(rrset._replace(ttl=negative_ttl(rrset)) for rrset in soas)
    return owned(found, name_wire(target))


def owned(rrsets: tuple[RRset, ...], owner: bytes) -> tuple[RRset, ...]:
    """The RRsets for an answer to another question: b"" (the question's name) as owner becomes `owner` (wire form)."""
    return tuple(rrset._replace(owner=owner) if rrset.owner == b"" else rrset for rrset in rrsets)
