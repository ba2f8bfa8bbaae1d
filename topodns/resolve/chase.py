"""Out of one server block into another of the same listener: behind a CNAME, or with a name that a step asks for."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from topodns.dns.message import Flag, Query, Rcode, Response, RRClass, RRset
from topodns.dns.names import Name, name_wire
from topodns.resolve.course import Course
from topodns.resolve.step import Answered, Below, Client, Resolution, Scope, settled

if TYPE_CHECKING:
    from topodns.resolve.blocks import Block

MAX_CHASE: Final = 8  # CNAMEs in a row that lead from one step to another

Chase = Callable[[Name, int, Client], Answered | None]
"""(target, type, who asked) -> what the listener answers for it; None where nobody is to be asked."""


class Chaser:
    """A `Chase`. `match` finds the block for a name, None where there is none."""

    def __init__(self, match: "Callable[[Query, Client], Block | None]") -> None:
        self._match = match

    def __call__(self, target: Name, qtype: int, client: Client) -> Answered | None:
        query = Query(0, Flag.RD, target, name_wire(target), qtype, RRClass.IN, None, 0)
        block = self._match(query, client)
        if block is None or client.depth >= MAX_CHASE:
            return None
        return block.chain.resolve(query, client._replace(depth=client.depth + 1))


class Neighbours:
    """Asks for names that need not be one's own: those at or below `own`, the origins of the asking block there.

    `rotate`: what that block answers is kept with its addresses in turning order.
    """

    def __init__(
        self, match: "Callable[[Query, Client], Block | None]", own: Collection[Name], rotate: bool = False
    ) -> None:
        self._match = match
        self._own = own
        self._rotate = rotate

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """What the block that the name belongs to answers; `below` are the steps to ask where that is the own one."""
        block = self._match(query, client)
        if block is None:
            return Resolution(Response(Rcode.REFUSED, flags=0), "", Scope.CLIENT)
        if block.origin in self._own:
            return below(query, client)
        answered = block.chain.resolve(query, client._replace(depth=client.depth + 1))
        if block.client_dependent or (block.rotate and not self._rotate):
            return _for_this_client(answered)
        return answered


def _for_this_client(answered: Answered) -> Answered:
    """The same, kept for nobody."""
    if not isinstance(answered, Resolution):
        return _for_this_client_later(answered)
    answered.scope = Scope.CLIENT
    return answered


async def _for_this_client_later(course: Course[Resolution]) -> Resolution:
    return await settled(_for_this_client(await course))


def follow(
    target: Name, resolution: Resolution, query: Query, client: Client, chase: Chase | None, rcode: bool = False
) -> Answered:
    """`resolution`, whose answer ends in a CNAME to `target`, with what stands behind that.

    The rcode there is passed on (RFC 6604 section 3) where `rcode` says so: CoreDNS does it for `file` alone. What
    stands there may age, or differ by client, which nobody says here; so the whole is kept nowhere.
    """
    chased = None if chase is None else chase(target, query.qtype, client)
    if chased is None:
        return resolution
    if isinstance(chased, Resolution):
        return _joined(resolution, chased, target, rcode)
    return _follow_later(target, resolution, chased, rcode)


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
    """The same records where `owner` (wire form), their question's name, is not the question's any more."""
    return tuple(rrset._replace(owner=owner) if rrset.owner == b"" else rrset for rrset in rrsets)
