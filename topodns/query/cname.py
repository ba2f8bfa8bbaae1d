"""CNAME chasing, with CoreDNS's limits: completes an answer that ends in a CNAME with records of another plugin."""

from collections.abc import Callable, Sequence
from typing import Final

from topodns.dns.message import Flag, Query, RRset
from topodns.dns.name import Name, name_wire
from topodns.query.plugin import Answered, Client, Resolution, Scope, settled

MAX_CHASE: Final = 8  # CNAMEs in a row that lead from one plugin to another

Chase = Callable[[Name, int, Client], Answered | None]
"""(target, qtype, client) -> the listener's answer for the target; None without a server block, or after MAX_CHASE."""


def follow(
    target: Name, resolution: Resolution, query: Query, client: Client, chase: Chase | None, rcode: bool = False
) -> Answered:
    """`resolution`, whose answer ends in a CNAME to `target`, completed in place with the records of `target`.

    `rcode`: also take the target's rcode (RFC 6604 section 3); CoreDNS does so for `file` alone. The target's records
    may age or differ by client, which is not tracked here, so the result is never kept (Scope.CLIENT). Without `chase`,
    or if it gives None, `resolution` is returned unchanged.
    """
    chased = None if chase is None else chase(target, query.qtype, client)
    if chased is None:
        return resolution
    if isinstance(chased, Resolution):
        return _joined(resolution, chased, target, rcode)
    return _follow_later(target, resolution, chased, rcode)


def follow_each(
    targets: Sequence[Name], resolution: Resolution, query: Query, client: Client, chase: Chase | None
) -> Answered:
    """As `follow`, for an answer with CNAMEs to each of these targets, which may be none."""
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


async def _follow_later(target: Name, resolution: Resolution, chased: Answered, rcode: bool) -> Resolution:
    return _joined(resolution, await settled(chased), target, rcode)


def _joined(resolution: Resolution, chased: Resolution, target: Name, rcode: bool) -> Resolution:
    resolution.scope = Scope.CLIENT
    response = resolution.response
    if rcode:
        response.rcode = chased.response.rcode
    response.answer = (*response.answer, *owned(chased.response.answer, name_wire(target)))
    response.flags |= chased.response.flags & Flag.TC
    return resolution


def owned(rrsets: tuple[RRset, ...], owner: bytes) -> tuple[RRset, ...]:
    """The RRsets for an answer to another question: b"" (the question's name) as owner becomes `owner` (wire form)."""
    return tuple(rrset._replace(owner=owner) if rrset.owner == b"" else rrset for rrset in rrsets)
