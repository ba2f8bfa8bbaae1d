"""Answers of the `kubernetes` plugin: SRV records and the addresses of their targets (RFC 2782), as in CoreDNS.

A headless Service may have 5,000 endpoints, of which a reply over UDP holds about 20 SRV records: no more records are
made than may fit, and their labels are cached (`plugins.kubernetes.label_cache`).

`ranked_srv_records` are those with priorities, for the option `srv_priority`: all endpoints of a Service, the nearest
first. Weights are as in CoreDNS, which sums them for each priority. A tenant may give a Service 1,000 ports and 16
keys: so endpoints are looked up once for all ports that the same endpoints have, and no more than a reply has room for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

from topodns.cluster.endpoints import EMPTY_GROUP, Group, Pool, endpoint_label
from topodns.dns.message import RRset
from topodns.dns.name import MAX_LABEL, MAX_WIRE, label_wire
from topodns.dns.rrtype import Rcode, RRType
from topodns.dns.wire_format import POINTER_RECORD_HEAD_SIZE
from topodns.plugins.kubernetes.label_cache import KeptLabels
from topodns.plugins.kubernetes.question import NO_DATA, Answer

_HEAD: Final = Struct("!HHH")
_PRIORITY: Final = 0
SHORTEST_LABEL: Final = 2  # octets, at the best compression of any reply
LABEL_SIZE: Final = 1 + MAX_LABEL  # octets of the longest label with its length
_FEW: Final = 20  # up to so many offers are made one by one, because the way for thousands is slower for a few

Sections = tuple[tuple[RRset, ...], tuple[RRset, ...]]
"""The answer and the additional section."""


class Offer(NamedTuple):
    """One SRV record to make: its target, a port, and the target's address for the additional section."""

    target: bytes  # wire-form name
    address: bytes  # packed
    port: int


class GroupOffer(NamedTuple):
    """SRV records to make: one port at each endpoint of a group, all of one address family.

    The target of each is the endpoint's label followed by `suffix`. Without a port, or where the target has more than
    255 octets, no record is made, but the endpoint counts in the weight of the others, as in CoreDNS.
    """

    group: Group
    port: int | None
    suffix: bytes  # wire-form name


def srv_records(offers: Sequence[Offer], ttl: int) -> Sections:
    """The answer, one record per distinct (target, port), and the targets' addresses; in the order of the offers.

    The weight is 100 divided by the number of offers, repeats included, rounded down, and at least 1.
    """
    if not offers:
        return (), ()
    weight = weight_among(len(offers))
    rdatas = dict.fromkeys(_HEAD.pack(_PRIORITY, weight, offer.port) + offer.target for offer in offers)
    additional = glue(((offer.target, offer.address) for offer in offers), ttl)
    return (RRset(b"", RRType.SRV, ttl, tuple(rdatas)),), additional


def endpoint_srv_records(offers: Iterable[GroupOffer], kept: KeptLabels, ttl: int, limit: int) -> Sections:
    """As `srv_records`, for groups of endpoints. An answer of more than 20 endpoints, counted once for each port, that
    does not fit into `limit` octets is cut, and the rest of the offers is not taken.

    The cut answer still exceeds `limit`, so that the writer truncates it and sets TC as for the whole; it has no
    addresses of targets, for which no octets are left.
    """
    left = (offer for offer in offers if offer.group.endpoints)
    ahead, number = _first(left)
    if number <= _FEW:
        return _each_endpoint(ahead, number, kept.pod_names, ttl)
    weight = weight_among(number)
    rdatas: dict[bytes, None] = {}
    used: list[GroupOffer] = []
    size = 0
    for offer in chain(ahead, left):
        if size > limit:
            break
        group, port, suffix = offer
        if port is None:
            continue
        used.append(offer)
        head = _HEAD.pack(_PRIORITY, weight, port)
        least = POINTER_RECORD_HEAD_SIZE + len(head) + SHORTEST_LABEL + len(suffix)
        longest = MAX_WIRE - len(suffix)
        at = 0
        while size <= limit and (some := kept.between(group, at, at + (limit - size) // least + 1)):
            at += len(some)
            if longest < LABEL_SIZE:
                some = [label for label in some if len(label) <= longest]
            made = [rdata for label in some if (rdata := head + label + suffix) not in rdatas]
            rdatas.update(dict.fromkeys(made))
            size += sum(map(len, made)) + POINTER_RECORD_HEAD_SIZE * len(made)
    return _srv(rdatas, ttl), endpoint_glue(used, kept, ttl) if size <= limit else ()


def service_srv_records(
    name: bytes,
    addresses: Sequence[bytes],
    hosts: Sequence[bytes],
    ports: Sequence[int | None],
    ttl: int,
    limit: int,
) -> Sections:
    """The SRV records of a Service: for each port one to `name`, if there are addresses, and one to each of `hosts`.

    The additional section has the addresses of `name`. Names are in wire form. The weight is 100 divided by the number
    of addresses and hosts times that of ports, at least 1. A port of None has no record, but counts in the weight. An
    answer that exceeds `limit` octets is cut, and without addresses then, as in `endpoint_srv_records`: a Service may
    have thousands of ports.
    """
    number, numbers = len(ports) * (len(addresses) + len(hosts)), [port for port in ports if port is not None]
    if not number or not numbers:
        return (), ()
    weight, size = weight_among(number), 0
    rdatas: dict[bytes, None] = {}
    for target in (name, *hosts) if addresses else hosts:
        for port in numbers:
            if size > limit:
                break
            rdata = _HEAD.pack(_PRIORITY, weight, port) + target
            if rdata not in rdatas:
                rdatas[rdata] = None
                size += POINTER_RECORD_HEAD_SIZE + len(rdata)
    answer = (RRset(b"", RRType.SRV, ttl, tuple(rdatas)),)
    return answer, glue(((name, address) for address in addresses), ttl) if size <= limit else ()


def glue(pairs: Iterable[tuple[bytes, bytes]], ttl: int) -> tuple[RRset, ...]:
    """The address records of these (wire-form name, packed address) pairs, without repeats, in order."""
    owners: dict[tuple[bytes, int], dict[bytes, None]] = {}
    for target, address in pairs:
        owners.setdefault((target, address_type(address)), {})[address] = None
    return tuple(RRset(target, rtype, ttl, tuple(addresses)) for (target, rtype), addresses in owners.items())


def address_type(address: bytes) -> int:
    """The type of the record whose RDATA this packed address is: A or AAAA."""
    return RRType.A if len(address) == 4 else RRType.AAAA


def _each_endpoint(offers: Iterable[GroupOffer], number: int, pod_names: bool, ttl: int) -> Sections:
    """As `srv_records`, for groups with `number` endpoints in all, made one by one, which is faster for a few."""
    rdatas: dict[bytes, None] = {}
    targets: list[tuple[bytes, bytes]] = []
    for group, port, suffix in offers:
        if port is None:
            continue
        head = _HEAD.pack(_PRIORITY, weight_among(number), port)
        for endpoint in group.endpoints:
            target = label_wire(endpoint_label(endpoint, pod_names)) + suffix
            if len(target) <= MAX_WIRE:
                rdatas[head + target] = None
                targets.append((target, endpoint.address))
    return _srv(rdatas, ttl), glue(targets, ttl)


def _srv(rdatas: Iterable[bytes], ttl: int) -> tuple[RRset, ...]:
    """The answer with these RDATAs; empty without any."""
    made = tuple(rdatas)
    return (RRset(b"", RRType.SRV, ttl, made),) if made else ()


def _first(offers: Iterator[GroupOffer]) -> tuple[list[GroupOffer], int]:
    """The offers that decide the weight, taken from the iterator, and the number of their endpoints.

    Those are all offers, or as many as bring the weight down to its minimum: the ports of a Service may make thousands
    more, which a full reply does not use.
    """
    taken: list[GroupOffer] = []
    number = 0
    for offer in offers:
        taken.append(offer)
        number += len(offer.group.endpoints)
        if weight_among(number) == 1:
            break
    return taken, number


def weight_among(offers: int) -> int:
    """The weight of each of so many offers, at least one."""
    return max(1, 100 // offers)


def endpoint_glue(offers: Iterable[GroupOffer], kept: KeptLabels, ttl: int) -> tuple[RRset, ...]:
    """The address records of the targets of these offers, whose groups are not empty, without repeats, in order."""
    owners: dict[tuple[bytes, int], tuple[bytes, ...]] = {}
    # Most Services have the same endpoints at each port, as the same group object.
    distinct = {(id(offer.group), offer.suffix): offer for offer in offers}
    for group, _, suffix in distinct.values():
        rtype = address_type(group.endpoints[0].address)
        for label, addresses in kept.addresses(group).items():
            owner = (label + suffix, rtype)
            if len(owner[0]) > MAX_WIRE:
                continue
            known = owners.get(owner)
            owners[owner] = addresses if known is None else tuple(dict.fromkeys((*known, *addresses)))
    return tuple(RRset(target, rtype, ttl, addresses) for (target, rtype), addresses in owners.items())


def srv_answer(sections: Sections, ttl: int) -> Answer:
    """The answer with these SRV records."""
    answer, additional = sections
    return Answer(Rcode.NOERROR, answer[0].rdatas, ttl, additional) if answer else NO_DATA


Ranked = Callable[[Pool, int], Group]
"""The endpoints of a pool with this priority; it may include some that have a lower one."""

_PRIORITY_AND_WEIGHT: Final = Struct("!HH")
_PORT: Final = Struct("!H")
_HEAD_SIZE: Final = POINTER_RECORD_HEAD_SIZE + _PRIORITY_AND_WEIGHT.size  # octets; the port and the target follow
_COUNTED: Final = 4_000  # endpoints of all priorities and pools, up to which weights are counted


def ranked_srv_records(
    offers: Iterable[tuple[Pool, int | None]],
    priorities: int,
    ranked: Ranked,
    suffix: bytes,
    kept: KeptLabels,
    ttl: int,
    limit: int,
) -> Sections:
    """The SRV records of these (pool, port) pairs, and the addresses of their targets.

    Without a port, or where a target has more than 255 octets, there is no record, but the endpoint counts in weights.

    Priorities are 0 to `priorities` - 1; the last includes every endpoint. A target, an endpoint's label followed by
    `suffix`, has one record for each port, with the lowest priority of its endpoints. The weight is 100 divided by the
    number of endpoints that the priority has and no lower one, counted once for each port, and at least 1. It is 1
    where more than 4,000 endpoints would have to be counted.

    An answer that exceeds `limit` octets is cut there, so that the writer truncates it and sets TC: the lowest
    priorities are in it, and no addresses.
    """
    pools: dict[int, _RankedPool] = {}  # by identity
    places: list[tuple[_RankedPool, bytes]] = []  # with a port
    for pool, port in offers:
        if pool.everyone.endpoints:
            one = pools.get(id(pool)) or pools.setdefault(id(pool), _RankedPool(pool))
            one.ports += 1
            if port is not None:
                places.append((one, _PORT.pack(port)))
    rdatas: list[bytes] = []
    taken: dict[bytes, None] = {}  # port and target, in order
    weights, size = _Weights(), 0
    for priority in range(priorities):
        room = (limit - size) // (_HEAD_SIZE + _PORT.size + SHORTEST_LABEL + len(suffix)) + 1
        if len(suffix) + LABEL_SIZE > MAX_WIRE:
            room = sum(len(one.pool.everyone.endpoints) for one in pools.values())  # the first may all be too long
        for one in pools.values():
            one.advance(ranked, priority, kept, room)
        head = _PRIORITY_AND_WEIGHT.pack(priority, weights.of(pools.values()))
        for one, port_octets in places:
            for label in one.labels:
                place = port_octets + label + suffix
                if place in taken or len(place) - _PORT.size > MAX_WIRE:
                    continue  # an endpoint of the other family, or a name that no message can have
                taken[place] = None
                rdatas.append(head + place)
                size += _HEAD_SIZE + len(place)
                if size > limit:
                    return (RRset(b"", RRType.SRV, ttl, tuple(rdatas)),), ()
    groups = [GroupOffer(one.pool.everyone, 0, suffix) for one, _ in places]
    order = {place[_PORT.size :]: at for at, place in enumerate(reversed(taken))}
    glue = sorted(endpoint_glue(groups, kept, ttl), key=lambda rrset: -order[rrset.owner])
    return (RRset(b"", RRType.SRV, ttl, tuple(rdatas)),) if rdatas else (), tuple(glue)


class _RankedPool:
    """A pool at one priority: the endpoints that it adds, and their labels."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.ports = 0  # of the offers with this pool
        self.group: Group = EMPTY_GROUP  # may include endpoints of lower priorities; empty if it adds none
        self.labels: list[bytes] = []  # in wire form, those that no lower priority has
        self._last: Group = EMPTY_GROUP
        self._seen: set[bytes] = set()

    def advance(self, ranked: Ranked, priority: int, kept: KeptLabels, room: int) -> None:
        """Go on to the next priority. `room`: the number of labels after which the rest is not needed."""
        self.group, self.labels = EMPTY_GROUP, []
        if len(self._last.endpoints) == len(self.pool.everyone.endpoints):
            return
        group = ranked(self.pool, priority)
        if group is self._last or not group.endpoints:
            return
        self.group = self._last = group
        self.labels = [each for each in kept.between(group, 0, len(self._seen) + room) if each not in self._seen]
        self._seen.update(self.labels)


class _Weights:
    """The weight of one priority after another, by the number of endpoints that it adds."""

    def __init__(self) -> None:
        self._nearer: set[int] = set()  # endpoints of the priorities so far, by identity
        self._left = _COUNTED

    def of(self, pools: Iterable[_RankedPool]) -> int:
        """The weight of the records that these pools add now."""
        adding = [(one.group.endpoints, one.ports) for one in pools if one.group.endpoints]
        self._left -= sum(len(endpoints) for endpoints, _ in adding)
        if self._left < 0:
            return 1
        number = sum(ports * sum(id(each) not in self._nearer for each in endpoints) for endpoints, ports in adding)
        for endpoints, _ in adding:
            self._nearer.update(map(id, endpoints))
        return weight_among(number) if number else 1
