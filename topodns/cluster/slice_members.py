"""The ready endpoints of each slice of a Service. A change of one slice leaves those of the others as they are.

An endpoint may be in several slices, as when the control plane moves it, or where it is ready at one port and not at
another: it is a member of the first slice in which it is ready, as the copy of the highest generation. So only the
slices that share an address are compared.

Readiness per port: `cluster.backends.Backends.pool_for_port`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

from topodns.cluster.endpoints import Identity, Segment, identity_of
from topodns.cluster.model import Endpoint, EndpointSlice

Sharers = Callable[[EndpointSlice], Collection[str]]
"""The names of this slice and of others of its Service that have an address of it; none if no address is shared.

A slice that shared no address before this one changed must be among them; others may be missing.
"""

_address: Final = attrgetter("address")
_ready: Final = attrgetter("ready")
_slice_endpoints: Final = attrgetter("endpoints")


class SliceMembers(NamedTuple):
    """The ready endpoints of one slice, by family; None: there are none of that family.

    With `shares_address` they also depend on the other slices that have the address.
    """

    slice: EndpointSlice
    ready: tuple[Endpoint, ...]  # without those that are ready in an earlier slice
    ipv4: Segment | None
    ipv6: Segment | None
    shares_address: bool  # whether an address of the slice occurs twice, in it or in another slice of the Service

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
            _sharing_members(one, next(merged), kept) if one.name in sharing else _own_members(one, kept)
            for one in slices
        ]
    )


def _compared(
    slices: Sequence[EndpointSlice], kept: Mapping[str, SliceMembers], sharers: Sharers
) -> list[EndpointSlice]:
    """The slices that may share an address: those that did before, and those that share one with a changed slice."""
    changed = [one for one in slices if _known(one, kept) is None]
    names = set(chain.from_iterable(map(sharers, changed)))
    return [one for one in slices if one.name in names or (one.name in kept and kept[one.name].shares_address)]


def distinct_endpoints(
    slices: Sequence[EndpointSlice], counts: Callable[[Endpoint], bool] = _ready
) -> list[tuple[Endpoint, ...]]:
    """The endpoints of each slice that count and are in none before it; of copies that count, the one of the highest
    generation takes the first place.
    """
    several = _several(slices)
    best: dict[Identity, tuple[int, Endpoint]] = {}
    for one in slices:
        for endpoint in [each for each in one.endpoints if each.address in several and counts(each)]:
            identity = identity_of(endpoint)
            rival = best.get(identity)
            if rival is None or one.generation > rival[0]:
                best[identity] = one.generation, endpoint
    return [tuple(_chosen(filter(counts, one.endpoints), several, best)) for one in slices]


def split(endpoints: tuple[Endpoint, ...]) -> tuple[Segment | None, Segment | None]:
    """The endpoints of each family, IPv4 first; None for a family without any."""
    lengths = set(map(len, map(_address, endpoints)))
    if len(lengths) < 2:
        segment = Segment(endpoints)
        return segment if 4 in lengths else None, segment if 16 in lengths else None
    four, six = (tuple([each for each in endpoints if len(each.address) == length]) for length in (4, 16))
    return Segment(four), Segment(six)


def _chosen(
    endpoints: Iterable[Endpoint], several: set[bytes], best: dict[Identity, tuple[int, Endpoint]]
) -> Iterator[Endpoint]:
    """The endpoints with an address that occurs once, and of `best`, which loses them, those that come first here."""
    for endpoint in endpoints:
        if endpoint.address not in several:
            yield endpoint
        elif (chosen := best.pop(identity_of(endpoint), None)) is not None:
            yield chosen[1]


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


def _own_members(one: EndpointSlice, kept: Mapping[str, SliceMembers]) -> SliceMembers:
    """The members of a slice that shares no address."""
    known = _known(one, kept)
    if known is not None and not known.shares_address:
        return known
    ready = one.endpoints if all(map(_ready, one.endpoints)) else tuple(filter(_ready, one.endpoints))
    return SliceMembers(one, ready, *split(ready), False)


def _sharing_members(one: EndpointSlice, ready: tuple[Endpoint, ...], kept: Mapping[str, SliceMembers]) -> SliceMembers:
    known = _known(one, kept)
    if known is not None and known.ready == ready:
        return known if known.shares_address else known._replace(shares_address=True)
    return SliceMembers(one, ready, *split(ready), True)
