"""The ready endpoints of each slice of a Service. A change of one slice leaves those of the others as they are.

An endpoint (address and hostname) may be in several slices for a while, as when the control plane moves it: it is a
member of the first of them, in the version of its best copy. So only the slices that share an address are compared.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

from topodns.cluster.endpoints import Segment, identity_of
from topodns.cluster.model import Endpoint, EndpointSlice

Sharers = Callable[[EndpointSlice], Collection[str]]
"""The names of this slice and of others of its Service that have an address of it; none if no address is shared.

A slice that shared no address before this one changed must be among them; others may be missing.
"""

_address: Final = attrgetter("address")
_ready: Final = attrgetter("ready")
_slice_endpoints: Final = attrgetter("endpoints")


class SliceMembers(NamedTuple):
    """The ready endpoints of one slice, by family; None: there are none of that family."""

    slice: EndpointSlice
    distinct: tuple[Endpoint, ...]  # ready or not; without those that an earlier slice has
    ipv4: Segment | None
    ipv6: Segment | None
    shared: bool  # whether an address is twice in the slice, or in another one too: then that one matters as well

    def of(self, family: int) -> Segment | None:
        return self.ipv4 if family == 4 else self.ipv6


def members_of_slices(
    slices: Sequence[EndpointSlice],
    kept: Mapping[str, SliceMembers] | None = None,
    sharers: Sharers | None = None,
) -> tuple[SliceMembers, ...]:
    """The members of each slice, in this order.

    `kept`: members of before, by name of the slice. With `sharers` they are used for slices that have not changed
    since, nor have a changed endpoint of another one.
    """
    compared: Sequence[EndpointSlice]
    if kept and sharers:
        compared = _compared(slices, kept, sharers)
    else:
        kept, compared = {}, slices
    sharing = _sharing(compared)
    merged = iter(distinct_endpoints([one for one in slices if one.name in sharing]))
    return tuple(
        [
            _members_of(one, next(merged), True, kept)
            if one.name in sharing
            else _members_of(one, one.endpoints, False, kept)
            for one in slices
        ]
    )


def _compared(
    slices: Sequence[EndpointSlice], kept: Mapping[str, SliceMembers], sharers: Sharers
) -> list[EndpointSlice]:
    """The slices that may share an address: those that did before, and those that share one with a changed slice."""
    changed = [one for one in slices if _known(one, kept) is None]
    names = set(chain.from_iterable(map(sharers, changed)))
    return [one for one in slices if one.name in names or (one.name in kept and kept[one.name].shared)]


def distinct_endpoints(slices: Sequence[EndpointSlice]) -> list[tuple[Endpoint, ...]]:
    """The endpoints of each slice, ready or not, that none before it has; of copies the best takes the first place.

    That is a ready one, then that of the highest generation, then the first.
    """
    several = _several(slices)
    best: dict[tuple[bytes, str], tuple[bool, int, Endpoint]] = {}
    for one in slices:
        for endpoint in [each for each in one.endpoints if each.address in several]:
            identity = identity_of(endpoint)
            rival = best.get(identity)
            if rival is None or (endpoint.ready, one.generation) > rival[:2]:
                best[identity] = (endpoint.ready, one.generation, endpoint)
    return [tuple(_chosen(one.endpoints, several, best)) for one in slices]


def split(endpoints: tuple[Endpoint, ...]) -> tuple[Segment | None, Segment | None]:
    """The endpoints of each family, IPv4 first; None for a family without any."""
    lengths = set(map(len, map(_address, endpoints)))
    if len(lengths) < 2:
        segment = Segment(endpoints)
        return segment if 4 in lengths else None, segment if 16 in lengths else None
    four, six = (tuple([each for each in endpoints if len(each.address) == length]) for length in (4, 16))
    return Segment(four), Segment(six)


def _chosen(
    endpoints: Iterable[Endpoint], several: set[bytes], best: dict[tuple[bytes, str], tuple[bool, int, Endpoint]]
) -> Iterator[Endpoint]:
    """The endpoints with an address that occurs once, and of `best`, which loses them, those that come first here."""
    for endpoint in endpoints:
        if endpoint.address not in several:
            yield endpoint
        elif (chosen := best.pop(identity_of(endpoint), None)) is not None:
            yield chosen[2]


def _sharing(slices: Sequence[EndpointSlice]) -> set[str]:
    """The names of the slices with an address that occurs more than once."""
    several = _several(slices)
    if not several:
        return set()
    return {one.name for one in slices if not several.isdisjoint(map(_address, one.endpoints))}


def _several(slices: Iterable[EndpointSlice]) -> set[bytes]:
    """The addresses that occur more than once."""
    addresses = list(map(_address, chain.from_iterable(map(_slice_endpoints, slices))))
    if len(set(addresses)) == len(addresses):
        return set()
    return {address for address, number in Counter(addresses).items() if number > 1}


def _known(one: EndpointSlice, kept: Mapping[str, SliceMembers]) -> SliceMembers | None:
    known = kept.get(one.name)
    return known if known is not None and known.slice is one else None


def _members_of(
    one: EndpointSlice, distinct: tuple[Endpoint, ...], shared: bool, kept: Mapping[str, SliceMembers]
) -> SliceMembers:
    known = _known(one, kept)
    if known is not None and known.distinct == distinct:
        return known if known.shared is shared else known._replace(shared=shared)
    ready = distinct if all(map(_ready, distinct)) else tuple([each for each in distinct if each.ready])
    return SliceMembers(one, distinct, *split(ready), shared)
