"""SRV records with priorities, for the option `srv_priority`: all endpoints of a Service, the nearest first (RFC 2782).

Weights are as in CoreDNS, which sums them for each priority. A tenant may give a Service 1,000 ports and 16 keys: so
endpoints are looked up once for all ports that the same endpoints have, and no more than a reply has room for.
"""

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final

from topodns.cluster.endpoints import EMPTY_GROUP, Group, Pool
from topodns.dns.message import RRset
from topodns.dns.name import MAX_WIRE
from topodns.dns.rrtype import RRType
from topodns.dns.wire_format import POINTER_RECORD_HEAD_SIZE
from topodns.plugins.kubernetes.label_cache import KeptLabels
from topodns.plugins.kubernetes.records import (
    LABEL_SIZE,
    SHORTEST_LABEL,
    GroupOffer,
    Sections,
    endpoint_glue,
    weight_among,
)

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
