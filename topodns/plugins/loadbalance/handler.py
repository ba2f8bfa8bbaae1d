"""The `loadbalance` directive: the order of addresses in a response, by chance, by weight, or by preferred network.

CNAMEs always come first, because some stub resolvers need them so; then all other types, addresses, and MX.
Records of one RRset stay together.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from math import inf
from random import Random
from typing import Final, TypeVar

from topodns.dns.message import Query, Rcode, Response, RRset, RRType
from topodns.resolve.address_match import NetworkList
from topodns.resolve.step import Client, Resolution, Scope
from topodns.resolve.weight_file import Weights
from topodns.settings.steps import Loadbalance, LoadbalancePolicy

RRsets = tuple[RRset, ...]
_T = TypeVar("_T")

_ADDRESSES: Final = frozenset((RRType.A, RRType.AAAA))
_NOERROR: Final = int(Rcode.NOERROR)
_SHUFFLED: Final = frozenset((RRType.A, RRType.AAAA, RRType.MX))
_WEIGHTED_QTYPES: Final = frozenset((RRType.A, RRType.AAAA, RRType.SRV))
# About as many A records as a UDP response of 1232 octets holds. A longer RRset is turned to a start of chance and only
# its head is shuffled, so that a Service of thousands of endpoints does not cost thousands of draws per query.
_MIXED_HEAD: Final = 64


class LoadBalancer:
    """A wrapper. `weights` is asked per response, so that a re-read file counts at once; only `weighted` uses it."""

    def __init__(self, settings: Loadbalance, rng: Random, weights: Callable[[], Weights] = dict) -> None:
        self._weighted = settings.policy is LoadbalancePolicy.WEIGHTED
        self._preferred = NetworkList(settings.prefer) if settings.prefer else None
        self._rng = rng
        self._weights = weights

    def __call__(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """Orders a NOERROR response; an order that means something (weights, prefer) makes it this query's only."""
        response = resolution.response
        if response.rcode != _NOERROR:
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
        # Most responses have one section, and this is on the miss path of every one.
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
    """The same records with addresses and MX in an order of chance: RRsets among each other, and records in each."""
    if len(rrsets) == 1:
        rrset = rrsets[0]
        return (_mixed(rrset, rng),) if rrset.rtype in _SHUFFLED and len(rrset.rdatas) > 1 else rrsets
    leading, addresses, exchanges = _by_kind(rrsets)
    mixed = (_mixed(rrset, rng) for rrset in chain(_in_any_order(addresses, rng), _in_any_order(exchanges, rng)))
    return (*leading, *mixed)


def put_weighted_first(rrsets: RRsets, qname: bytes, weights: Weights, rng: Random) -> RRsets:
    """One address, chosen with the likelihood of its weight, becomes the first; the others keep about their places.

    `qname` (wire form) is the owner of those RRsets that spell none.
    """
    leading, addresses, exchanges = _by_kind(rrsets)
    places = [(at, index) for at, rrset in enumerate(addresses) for index in range(len(rrset.rdatas))]
    if len(places) < 2:
        return rrsets
    likelihoods = [weight for rrset in addresses for weight in _weights_of(rrset, qname, weights)]
    at, index = rng.choices(places, likelihoods)[0]
    chosen = addresses.pop(at)
    return (*leading, _swapped_to_front(chosen, index), *addresses, *exchanges)


def put_preferred_first(rrsets: RRsets, preferred: NetworkList) -> RRsets:
    """Addresses in the order of the first network that each is in, the others last; equals keep their order."""
    leading, addresses, exchanges = _by_kind(rrsets)
    ordered = [rrset._replace(rdatas=tuple(sorted(rrset.rdatas, key=_rank_in(preferred)))) for rrset in addresses]
    rank = _rank_in(preferred)
    ordered.sort(key=lambda rrset: rank(rrset.rdatas[0]))
    return (*leading, *ordered, *exchanges)


def _by_kind(rrsets: RRsets) -> tuple[list[RRset], list[RRset], list[RRset]]:
    cnames, others, addresses, exchanges = [], [], [], []
    for rrset in rrsets:
        if rrset.rtype in _ADDRESSES:
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
    if size <= _MIXED_HEAD:
        return RRset(owner, rtype, ttl, tuple(_in_any_order(rdatas, rng)), rclass)
    start = int(rng.random() * size)
    turned = rdatas[start:] + rdatas[:start]
    mixed = (*_in_any_order(turned[:_MIXED_HEAD], rng), *turned[_MIXED_HEAD:])
    return RRset(owner, rtype, ttl, mixed, rclass)


def _in_any_order(items: Sequence[_T], rng: Random) -> list[_T]:
    # On the miss path of every answer; sorting by random keys takes 6/10 of the time of Random.shuffle for ten items.
    draw = rng.random
    return sorted(items, key=lambda _: draw())


def _weights_of(rrset: RRset, qname: bytes, weights: Weights) -> list[int]:
    # Lowering a whole wire-form name is safe: length octets, at most 63, lie below the letters.
    by_address = weights.get((rrset.owner or qname).lower(), {})
    return [by_address.get(address, 1) for address in rrset.rdatas]


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
    addresses = (rrset for rrset in (*response.answer, *response.additional) if rrset.rtype in _ADDRESSES)
    return Scope.CLIENT if sum(len(rrset.rdatas) for rrset in addresses) > 1 else Scope.EVERYONE
