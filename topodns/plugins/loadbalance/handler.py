"""The `loadbalance` plugin: orders the addresses in a response at random, by weight, or by preferred network.

In a response that it orders, CNAMEs come first, because some stub resolvers need that; then all other types, addresses,
and MX. Records of one RRset stay together.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from math import inf
from random import Random
from typing import Final, TypeVar

from topodns.dns.addresses import NetworkList
from topodns.dns.message import Query, Response, RRset
from topodns.dns.rrtype import ADDRESS_TYPES, Rcode, RRType
from topodns.plugins.loadbalance.settings import Loadbalance, LoadbalancePolicy
from topodns.plugins.loadbalance.weights import Weights
from topodns.query.plugin import Client, Resolution, Scope

RRsets = tuple[RRset, ...]
_T = TypeVar("_T")

_SHUFFLED: Final = frozenset((RRType.A, RRType.AAAA, RRType.MX))
_WEIGHTED_QTYPES: Final = frozenset((RRType.A, RRType.AAAA, RRType.SRV))
# About as many A records as a UDP response of 1232 octets holds. A longer RRset is rotated to a random start and only
# its head is shuffled, so that a Service of thousands of endpoints does not cost thousands of draws per query.
_MIXED_HEAD: Final = 64


class LoadBalancer:
    """Orders responses. `weights` is called per response, so that a re-read file applies at once; `weighted` only."""

    def __init__(self, settings: Loadbalance, rng: Random, weights: Callable[[], Weights] = dict) -> None:
        self._weighted = settings.policy is LoadbalancePolicy.WEIGHTED
        self._preferred = NetworkList(settings.prefer) if settings.prefer else None
        self._rng = rng
        self._weights = weights

    @property
    def round_robin(self) -> bool:
        """Whether it orders by chance alone: addresses of one RRset by `ordered`, other sections by `shuffled`."""
        return not self._weighted and self._preferred is None

    def ordered(self, rdatas: Sequence[bytes], number: int) -> Sequence[bytes]:
        """The first so many of at least two addresses, in random order."""
        return _in_order(rdatas, number, self._rng)

    def shuffled(self, rrsets: RRsets) -> RRsets:
        """The RRsets of a section in random order, as `shuffle`."""
        return shuffle(rrsets, self._rng)

    def __call__(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """Order the response of `resolution`, if it is NOERROR, and return `resolution`.

        By weight only responses to A, AAAA and SRV queries are ordered. An order by weight or preference of more than
        one address is for this query only (Scope.CLIENT).
        """
        response = resolution.response
        if response.rcode != Rcode.NOERROR:
            return resolution
        if self._weighted:
            self._order_by_weight(query, response)
        else:
            self._shuffle(response)
        if self._preferred is not None:
            response.answer = put_preferred_first(response.answer, self._preferred)
            response.additional = put_preferred_first(response.additional, self._preferred)
        if self._weighted or self._preferred is not None:
            resolution.scope = max(resolution.scope, _order_scope(response))
        return resolution

    def _shuffle(self, response: Response) -> None:
        # Most responses have one section, and this runs on every cache miss.
        if response.answer:
            response.answer = shuffle(response.answer, self._rng)
        if response.authority:
            response.authority = shuffle(response.authority, self._rng)
        if response.additional:
            response.additional = shuffle(response.additional, self._rng)

    def _order_by_weight(self, query: Query, response: Response) -> None:
        if query.qtype not in _WEIGHTED_QTYPES:
            return
        weights, qname = self._weights(), query.spelling
        response.answer = put_weighted_first(response.answer, qname, weights, self._rng)
        response.additional = put_weighted_first(response.additional, qname, weights, self._rng)


def shuffle(rrsets: RRsets, rng: Random) -> RRsets:
    """The same records with addresses and MX in random order: the RRsets of either kind, and the records in each.

    Of an RRset of more than 64 records only the start and the first 64 are random. Other types keep their order.
    """
    if len(rrsets) == 1:
        rrset = rrsets[0]
        return (_mixed(rrset, rng),) if rrset.rtype in _SHUFFLED and len(rrset.rdatas) > 1 else rrsets
    leading, addresses, exchanges = _by_kind(rrsets)
    mixed = (_mixed(rrset, rng) for rrset in chain(_in_any_order(addresses, rng), _in_any_order(exchanges, rng)))
    return (*leading, *mixed)


def put_weighted_first(rrsets: RRsets, qname: bytes, weights: Weights, rng: Random) -> RRsets:
    """The same records with one address, drawn by weight, as the first address.

    In its RRset it changes places with the first record, and that RRset moves before the others with addresses.
    `qname` (wire form) is the owner of RRsets with an empty one.
    """
    leading, addresses, exchanges = _by_kind(rrsets)
    total = sum(len(rrset.rdatas) for rrset in addresses)
    if total < 2:
        return rrsets
    index, at = _drawn(addresses, total, qname, weights, rng), 0
    while index >= len(addresses[at].rdatas):
        index -= len(addresses[at].rdatas)
        at += 1
    chosen = addresses.pop(at)
    return (*leading, _swapped_to_front(chosen, index), *addresses, *exchanges)


def put_preferred_first(rrsets: RRsets, preferred: NetworkList) -> RRsets:
    """The same records with addresses ordered by the first network that contains each, the others last.

    A stable sort of the records in each RRset, then of the RRsets by their first address.
    """
    leading, addresses, exchanges = _by_kind(rrsets)
    ordered = [rrset._replace(rdatas=tuple(sorted(rrset.rdatas, key=_rank_in(preferred)))) for rrset in addresses]
    rank = _rank_in(preferred)
    ordered.sort(key=lambda rrset: rank(rrset.rdatas[0]))
    return (*leading, *ordered, *exchanges)


def _by_kind(rrsets: RRsets) -> tuple[list[RRset], list[RRset], list[RRset]]:
    cnames, others, addresses, exchanges = [], [], [], []
    for rrset in rrsets:
        if rrset.rtype in ADDRESS_TYPES:
            addresses.append(rrset)
        elif rrset.rtype == RRType.CNAME:
            cnames.append(rrset)
        elif rrset.rtype == RRType.MX:
            exchanges.append(rrset)
        else:
            others.append(rrset)
    return cnames + others, addresses, exchanges


def _mixed(rrset: RRset, rng: Random) -> RRset:
    owner, rtype, ttl, rdatas, rclass = rrset
    size = len(rdatas)
    if size < 2:
        return rrset
    return RRset(owner, rtype, ttl, tuple(_in_order(rdatas, size, rng)), rclass)


def _in_order(rdatas: Sequence[bytes], number: int, rng: Random) -> Sequence[bytes]:
    """The first `number` of these RDATAs in random order; of more than _MIXED_HEAD only the start and the head are."""
    size = len(rdatas)
    if size <= _MIXED_HEAD:
        return _in_any_order(rdatas, rng)[:number]
    start = int(rng.random() * size)
    end = start + min(size, max(number, _MIXED_HEAD))
    turned = [*rdatas[start:end], *rdatas[: max(0, end - size)]]
    return [*_in_any_order(turned[:_MIXED_HEAD], rng), *turned[_MIXED_HEAD:]][:number]


def _in_any_order(items: Sequence[_T], rng: Random) -> list[_T]:
    # Runs on every cache miss; sorting by random keys takes 6/10 of the time of Random.shuffle for ten items.
    draw = rng.random
    return sorted(items, key=lambda _: draw())


def _drawn(rrsets: Sequence[RRset], total: int, qname: bytes, weights: Weights, rng: Random) -> int:
    """The index of one address among `total`, drawn by weight; the default weight is 1.

    Without weights for any of the owners the cost does not depend on the number of addresses.
    """
    # Lowering a whole wire-form name is safe: length octets, at most 63, are less than any letter.
    given = [weights.get((rrset.owner or qname).lower()) for rrset in rrsets]
    if not any(given):
        return int(rng.random() * total)
    likelihoods = [
        (by_address or {}).get(address, 1)
        for rrset, by_address in zip(rrsets, given, strict=True)
        for address in rrset.rdatas
    ]
    return rng.choices(range(total), likelihoods)[0]


def _swapped_to_front(rrset: RRset, index: int) -> RRset:
    rdatas = list(rrset.rdatas)
    rdatas[0], rdatas[index] = rdatas[index], rdatas[0]
    return rrset._replace(rdatas=tuple(rdatas))


def _rank_in(preferred: NetworkList) -> Callable[[bytes], float]:
    def rank(address: bytes) -> float:
        index = preferred.first_with(address)
        return inf if index is None else index

    return rank


def _order_scope(response: Response) -> Scope:
    addresses = (rrset for rrset in (*response.answer, *response.additional) if rrset.rtype in ADDRESS_TYPES)
    return Scope.CLIENT if sum(len(rrset.rdatas) for rrset in addresses) > 1 else Scope.EVERYONE
