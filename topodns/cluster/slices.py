"""EndpointSlices by their Service or ServiceImport, and by the addresses in them; and which of them count.

Slices made from v1 Endpoints (`mirrored`) count only if their Service has no other slice: the control plane mirrors
Endpoints into slices, and where both exist the real slice has more information.

A user of one namespace can make any number of slices, so an addition or removal costs the same among many.

Which Endpoints become slices: `cluster.decode.slices`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, repeat, starmap
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeGuard

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.model import Endpoint, EndpointSlice, ObjectKey, Placement
from topodns.dependency import Fact, address_fact, service_fact

MOST_COUNTED: Final = 1000  # slices of a Service that count, by name; with the default of 100 endpoints each, 100,000
HELD: Final = MOST_COUNTED + 100  # slices of a Service that are held; those beyond count once others are deleted
MOST_MIRRORED: Final = 100  # slices; the control plane makes one of each subset and family, with up to 1,000 addresses
MOST_MIRRORED_ENDPOINTS: Final = 20_000  # in these; all of them are looked at where a slice that is not mirrored comes
MOST_SEARCHED: Final = 100  # slices per namespace that are searched for one address
MOST_CHECKED: Final = 10  # slices per namespace that are checked after a change of one of their addresses
_LARGE: Final = 100  # endpoints; the EndpointSlice controller's default limit

_address: Final = attrgetter("address")
_name: Final = attrgetter("name")
_ready: Final = attrgetter("ready")


class SliceOwner(NamedTuple):
    """The Service or, if `imported`, the ServiceImport of a slice: the two may have the same name."""

    key: ObjectKey
    imported: bool = False


def owner_of(one: EndpointSlice) -> SliceOwner:
    """The Service or ServiceImport of a slice; its name is "" if the slice has none."""
    return SliceOwner(ObjectKey(one.namespace, one.service_name), one.imported)


def has_ready(one: EndpointSlice) -> bool:
    """Whether the slice has a ready endpoint."""
    return any(map(_ready, one.endpoints)) or any(map(_ready, one.aliases))


class OwnedSlices:
    """The slices by owner. Those of no Service are left out."""

    def __init__(self) -> None:
        self._real: dict[SliceOwner, list[EndpointSlice]] = {}  # ordered by name
        self._mirrored: dict[SliceOwner, list[EndpointSlice]] = {}  # ordered by name
        self._unready: Counter[tuple[SliceOwner, bool]] = Counter()  # slices, by owner and `mirrored`; no zeros

    def counted(self, owner: SliceOwner) -> tuple[EndpointSlice, ...]:
        """The slices that count for a Service or ServiceImport: the first 1,000 by name, in this order."""
        return tuple(self._real.get(owner, ())[:MOST_COUNTED]) or tuple(self.mirrored(owner))

    def mirrored(self, owner: SliceOwner) -> Sequence[EndpointSlice]:
        """The mirrored slices that count; none where there is another slice.

        They are the first 100 by name, or as many of these as have 20,000 endpoints.
        """
        if owner in self._real:
            return ()
        first = self._mirrored.get(owner, ())[:MOST_MIRRORED]
        sums = accumulate(len(one.endpoints) for one in first)
        return [one for one, endpoints in zip(first, sums, strict=True) if endpoints <= MOST_MIRRORED_ENDPOINTS]

    def counts(self, one: EndpointSlice) -> bool:
        """Whether a held slice counts: false of mirrored ones beside others, or beyond the limits."""
        return not one.mirrored or any(each is one for each in self.mirrored(owner_of(one)))

    def place(self, one: EndpointSlice) -> int:
        """The place of a slice among those of its Service, by name, whether it is one of them or not; 0 if mirrored."""
        return bisect_left(self._real.get(owner_of(one), ()), one.name, key=_name) if not one.mirrored else 0

    def surplus(self, one: EndpointSlice) -> EndpointSlice | None:
        """The first of the slices of the same Service that is not held; None if there is none."""
        slices: Sequence[EndpointSlice] = self._real.get(owner_of(one), ())
        return slices[HELD] if len(slices) > HELD else None

    def ready(self, owner: SliceOwner) -> int:
        """The number of slices with a ready endpoint; of mirrored ones, only where there is no other slice."""
        mirrored = owner not in self._real
        slices = (self._mirrored if mirrored else self._real).get(owner, ())
        return len(slices) - self._unready.get((owner, mirrored), 0)

    def add(self, one: EndpointSlice) -> None:
        """Add a slice; one of this name was not there, or has been removed."""
        owner = owner_of(one)
        if not one.service_name:
            return
        slices = self._of_sort(one).setdefault(owner, [])
        slices.insert(bisect_left(slices, one.name, key=_name), one)
        if not has_ready(one):
            self._count_unready(owner, one.mirrored, 1)

    def remove(self, one: EndpointSlice) -> None:
        """Remove a slice that was added."""
        owner = owner_of(one)
        if not one.service_name:
            return
        of_sort = self._of_sort(one)
        slices = of_sort[owner]
        del slices[bisect_left(slices, one.name, key=_name)]
        if not slices:
            del of_sort[owner]
        if not has_ready(one):
            self._count_unready(owner, one.mirrored, -1)

    def replace(self, owner: SliceOwner, old: EndpointSlice, new: EndpointSlice) -> None:
        """Put a slice in the place of one of the same name, Service and sort that was added."""
        slices = self._of_sort(new)[owner]
        slices[bisect_left(slices, new.name, key=_name)] = new
        unready = has_ready(old) - has_ready(new)
        if unready:
            self._count_unready(owner, new.mirrored, unready)

    def _count_unready(self, owner: SliceOwner, mirrored: bool, more: int) -> None:
        self._unready[owner, mirrored] += more
        if not self._unready[owner, mirrored]:
            del self._unready[owner, mirrored]

    def _of_sort(self, one: EndpointSlice) -> dict[SliceOwner, list[EndpointSlice]]:
        return self._mirrored if one.mirrored else self._real


class SliceChange(NamedTuple):
    """The effect of a change of one slice: the Services that it belonged or belongs to, and the dependencies touched.

    `before` and `after` have the (address, Node name) of each Pod in the slice, perhaps without those that stay; where
    these differ, `sharing` are some of the slices with an address that moved (see `SliceTable.some_with`).
    """

    owners: frozenset[ObjectKey]
    facts: frozenset[Fact]
    before: frozenset[Placement]
    after: frozenset[Placement]
    sharing: Sequence[ObjectKey]


_AddressEntry = tuple[ObjectKey, tuple[Any, ...]]
"""What PTR answers and client location depend on of an endpoint: its Service, then the fields of `_entry_fields`."""

_entry_fields: Final[Callable[[Endpoint], tuple[Any, ...]]] = attrgetter(
    "address", "node_name", "hostname", "pod_name", "other_target", "ready", "serving", "terminating"
)


class _Place(NamedTuple):
    """The key of a slice in the index of addresses: of an address, slices that count together are side by side."""

    namespace: str
    service_name: str
    mirrored: bool
    key: ObjectKey


class SliceTable:
    """An index over `slices`, a mapping that the caller maintains: it calls `replace` after each change of it.

    `owned` has the slices of each Service, and `counted` of it those from which its endpoints are made.
    """

    def __init__(self, slices: Mapping[tuple[str, str], EndpointSlice]) -> None:
        self._slices = slices
        self.owned = OwnedSlices()
        self._addresses: AddressIndex[_Place] = AddressIndex()
        # Large slices that were searched: endpoint by address, or None if endpoints share an address.
        self._large: dict[ObjectKey, dict[bytes, Endpoint] | None] = {}
        self._repeating: set[ObjectKey] = set()  # slices that have an address more than once

    def sharers(self, one: EndpointSlice) -> set[str]:
        """The names of a held slice and of others of its Service with an address of it; empty if it shares none.

        Of each address the two next to it by name. An address that is twice in the slice is shared. Not for imported
        slices, which are not indexed by address.
        """
        addresses = {endpoint.address for endpoint in one.endpoints}
        names = {key.name for _, keys in self._copies(one.key, one, addresses) for key in keys}
        return names | {one.name} if names or len(addresses) < len(one.endpoints) else names

    def keys_with_address(self, address: bytes, besides: str = "") -> Iterator[ObjectKey]:
        """The keys of the slices with this address: of each namespace the first 100, by Service and name.

        None of the namespace `besides`, unless that is "". Imported slices, and those of no Service, are not indexed.
        """
        return (place.key for place in self._addresses.first_of_namespaces((address,), MOST_SEARCHED, besides))

    def some_with(self, addresses: Iterable[bytes]) -> Iterator[ObjectKey]:
        """The keys of slices with one of these addresses, at most 10 per namespace and address; some more than once.

        For checks after a change of an address: one change must not cost a check of thousands.
        """
        return (place.key for place in self._addresses.first_of_namespaces(addresses, MOST_CHECKED))

    def with_address(self, address: bytes, besides: str = "") -> tuple[tuple[ObjectKey, Endpoint], ...]:
        """(Service, endpoint) with this address, one per Service, ready or not, without the namespace `besides`.

        Of copies in several slices a ready one counts first, then one not terminating, then the highest generation:
        unlike in `cluster.slice_members`, where all copies are ready, a Pod is a client before and after it is ready.
        Only the first 100 slices of each namespace are searched: a namespace that lists all addresses of the cluster in
        any number of slices must not delay queries for one of them.
        """
        best: dict[ObjectKey, tuple[tuple[bool, bool, int], Endpoint]] = {}
        for service, endpoint, generation in self._holders(address, besides):
            rank = (endpoint.ready, not endpoint.terminating, generation)
            if service not in best or rank > best[service][0]:
                best[service] = (rank, endpoint)
        return tuple((service, endpoint) for service, (_, endpoint) in best.items())

    def ready_at(self, address: bytes) -> tuple[tuple[ObjectKey, Endpoint], ...]:
        """(Service, endpoint) of each ready entry with this address, for PTR; at most 100 of each namespace.

        Pods in their node's network share an address. Copies of one endpoint may be among them.
        """
        found: list[tuple[ObjectKey, Endpoint]] = []
        left: dict[str, int] = {}
        for service, endpoint, _ in self._holders(address, ""):
            if endpoint.ready and left.setdefault(service.namespace, MOST_SEARCHED):
                left[service.namespace] -= 1
                found.append((service, endpoint))
        return tuple(found)

    def replace(
        self, key: ObjectKey, old: EndpointSlice | None, new: EndpointSlice | None, unseen: bool = False
    ) -> SliceChange:
        """Update the index: a slice was added (old None), changed, or removed (new None).

        `unseen`: the result is without the touched addresses and the slices that share some.

        An address is touched if the entries with it differ, their order in the slice, or the generation by which this
        slice and another one of the Service are compared.
        """
        if old is not None and new is not None and not unseen and self._stays(key, old, new):
            return self._replace_in_place(key, old, new)
        owners = {owner_of(one) for one in (old, new) if one is not None and one.service_name}
        services = frozenset([owner.key for owner in owners])
        was, now = _placements(old), _placements(new)
        if unseen:
            self._move(key, old, new)
            return SliceChange(services, frozenset(), was, now, ())
        before = self._counted(old, owners)
        self._move(key, old, new)
        after = self._counted(new, owners)
        if before:
            touched = {fields[0] for _, fields in _entries(before, after) ^ _entries(after, before)}
        else:
            touched = set[bytes]().union(*map(_addresses, after))
        if old is not None and new is not None:
            touched.update(_reordered(old, new))
            touched.update(self._compared_anew(key, old, new))
        return self._effect(services, touched, was, now)

    def _compared_anew(self, key: ObjectKey, old: EndpointSlice, new: EndpointSlice) -> Iterable[bytes]:
        """The addresses that other slices of the Service have, too, if a new generation may win over theirs."""
        if old.generation == new.generation:
            return ()
        return [address for address, _ in self._copies(key, new, _addresses(new))]

    def _effect(
        self,
        services: frozenset[ObjectKey],
        touched: Iterable[bytes],
        was: frozenset[Placement],
        now: frozenset[Placement],
    ) -> SliceChange:
        facts = frozenset((*map(address_fact, touched), *starmap(service_fact, services)))
        sharing = [*self.some_with({address for address, _ in was ^ now})] if was != now else ()
        return SliceChange(services, facts, was, now, sharing)

    def _stays(self, key: ObjectKey, old: EndpointSlice, new: EndpointSlice) -> bool:
        """Whether the slice keeps its place in all indexes, and has no address twice, before and after."""
        if new.mirrored or old.mirrored or new.imported or old.imported or not new.service_name:
            return False
        return old.service_name == new.service_name and key not in self._repeating and not _repeats(new)

    def _replace_in_place(self, key: ObjectKey, old: EndpointSlice, new: EndpointSlice) -> SliceChange:
        """As `replace`, for a slice that `_stays`: only the endpoints that differ are looked at."""
        owner = owner_of(new)
        self.owned.replace(owner, old, new)
        self._large.pop(key, None)
        gone, come = _differing(old, new)
        left, entered = set(map(_address, gone)), set(map(_address, come))
        if left != entered:
            self._addresses.move(_place_of(key, new), left, entered)
        entries = set(map(_entry_fields, gone)) ^ set(map(_entry_fields, come))
        touched = {fields[0] for fields in entries}
        touched.update(self._compared_anew(key, old, new))
        return self._effect(frozenset((owner.key,)), touched, _pods_among(gone), _pods_among(come))

    def _holders(self, address: bytes, besides: str) -> Iterator[tuple[ObjectKey, Endpoint, int]]:
        for key in self.keys_with_address(address, besides=besides):
            one = self._slices[key]
            if self.owned.counts(one):
                service = owner_of(one).key
                for endpoint in self._endpoints_at(key, one, address):
                    yield service, endpoint, one.generation

    def _endpoints_at(self, key: ObjectKey, one: EndpointSlice, address: bytes) -> Iterable[Endpoint]:
        """The endpoints of a slice with this address. Most slices are small enough for a linear search."""
        if len(one.endpoints) > _LARGE:
            if key not in self._large:
                found = dict(zip(map(_address, one.endpoints), one.endpoints, strict=True))
                self._large[key] = found if len(found) == len(one.endpoints) else None
            by_address = self._large[key]
            if by_address is not None:
                return (by_address[address],) if address in by_address else ()
        return [endpoint for endpoint in one.endpoints if endpoint.address == address]

    def _counted(self, one: EndpointSlice | None, owners: set[SliceOwner]) -> list[EndpointSlice]:
        """The slice, if it is not mirrored, and of these owners the mirrored slices that count.

        With the first slice that is not mirrored the others cease to count, and with the last one they count again.
        """
        mirrored = [each for owner in owners for each in self.owned.mirrored(owner)]
        return mirrored if one is None or one.mirrored else [one, *mirrored]

    def _copies(
        self, key: ObjectKey, one: EndpointSlice, addresses: Set[bytes]
    ) -> Iterator[tuple[bytes, list[ObjectKey]]]:
        """Those of the addresses of a held slice that others of its Service have, with the two next to it by name."""
        place = _place_of(key, one)
        for address, places in self._addresses.shared(addresses):
            at = bisect_left(places, place)
            beside = places[max(0, at - 1) : at + 2]
            others = [other.key for other in beside if other != place and other[:3] == place[:3]]
            if others:
                yield address, others

    def _move(self, key: ObjectKey, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        if old is not None:
            self.owned.remove(old)
        if new is not None:
            self.owned.add(new)
        self._large.pop(key, None)
        if new is not None and _repeats(new):
            self._repeating.add(key)
        else:
            self._repeating.discard(key)
        before, after = _addresses(old), _addresses(new)
        was = _place_of(key, old) if old is not None else None
        now = _place_of(key, new) if new is not None else None
        if was is not None and was == now:
            if before != after:
                self._addresses.move(now, before, after)
            return
        if was is not None:
            self._addresses.move(was, before, ())
        if now is not None:
            self._addresses.move(now, (), after)


def _place_of(key: ObjectKey, one: EndpointSlice) -> _Place:
    return _Place(one.namespace, one.service_name, one.mirrored, key)


def _is_local(one: EndpointSlice | None) -> TypeGuard[EndpointSlice]:
    """Whether a slice belongs to a Service of this cluster: the addresses of imported ones may be another network's."""
    return one is not None and not one.imported and bool(one.service_name)


def _addresses(one: EndpointSlice | None) -> frozenset[bytes]:
    return frozenset(map(_address, one.endpoints)) if _is_local(one) else frozenset()


def _repeats(one: EndpointSlice) -> bool:
    """Whether several endpoints of the slice have one address, as those of the host network of a Node."""
    return len(set(map(_address, one.endpoints))) < len(one.endpoints)


def _differing(old: EndpointSlice, new: EndpointSlice) -> tuple[list[Endpoint], list[Endpoint]]:
    """The endpoints of either slice without the objects that both have (see `decode.slices.decode_changed_slice`)."""
    before, after = ({id(each): each for each in one.endpoints} for one in (old, new))
    return [before[one] for one in before.keys() - after.keys()], [after[one] for one in after.keys() - before.keys()]


def _reordered(old: EndpointSlice, new: EndpointSlice) -> list[bytes]:
    """The addresses of several endpoints of a slice whose order differs: of equally good ones the first counts."""
    before = _repeated(old)
    if not before:
        return []
    after = _repeated(new)
    return [address for address in before.keys() & after if before[address] != after[address]]


def _repeated(one: EndpointSlice) -> dict[bytes, list[tuple[Any, ...]]]:
    """The fields of the endpoints of each address that is several times in a slice, as of Pods of the host network."""
    addresses = _addresses(one)
    if len(addresses) in (0, len(one.endpoints)):
        return {}
    fields: dict[bytes, list[tuple[Any, ...]]] = {address: [] for address in addresses}
    for endpoint in one.endpoints:
        fields[endpoint.address].append(_entry_fields(endpoint))
    return {address: several for address, several in fields.items() if len(several) > 1}


def _placements(one: EndpointSlice | None) -> frozenset[Placement]:
    """(address, Node name) of each endpoint that is a Pod with a nodeName.

    None of an imported slice, nor of one without Service.
    """
    return _pods_among(one.endpoints) if _is_local(one) else frozenset()


def _pods_among(endpoints: Sequence[Endpoint]) -> frozenset[Placement]:
    return frozenset([(each.address, each.node_name) for each in endpoints if each.node_name and each.pod_name])


def _entries(slices: Sequence[EndpointSlice], besides: Sequence[EndpointSlice]) -> set[_AddressEntry]:
    """The entries of the endpoints in these slices, without the slices that are also in `besides`."""
    known = set(map(id, besides))
    found: set[_AddressEntry] = set()
    for one in slices:
        if id(one) not in known and _is_local(one):
            found.update(zip(repeat(owner_of(one).key), map(_entry_fields, one.endpoints), strict=False))
    return found
