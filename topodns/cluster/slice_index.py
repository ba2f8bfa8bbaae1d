"""EndpointSlices by their Service (`cluster.owned_slices`) and by the addresses in them."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeGuard

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.model import Endpoint, EndpointSlice, ObjectKey
from topodns.cluster.owned_slices import OwnedSlices, SliceOwner, owner_of
from topodns.cluster.pod_cidr_proof import Placement
from topodns.dependency import Fact, address_facts, service_fact

MOST: Final = 100  # slices per namespace that are searched for one address
SOME: Final = 10  # slices per namespace that are checked after a change of one of their addresses
_LARGE: Final = 100  # endpoints; the EndpointSlice controller's default limit

_address: Final = attrgetter("address")


class SliceChange(NamedTuple):
    """The effect of a change of one slice: the Services that it belonged or belongs to, and the dependencies touched.

    `before` and `after` have the (address, Node name) of each Pod in the slice.
    """

    owners: frozenset[ObjectKey]
    facts: frozenset[Fact]
    before: frozenset[Placement]
    after: frozenset[Placement]


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
    """An index over `slices`, a mapping that the caller maintains: it calls `replace` after each change of it."""

    def __init__(self, slices: Mapping[tuple[str, str], EndpointSlice]) -> None:
        self._slices = slices
        self._owned = OwnedSlices()
        self._addresses: AddressIndex[_Place] = AddressIndex()
        # Large slices that were searched: endpoint by address, or the slice itself if endpoints share an address.
        self._places: dict[ObjectKey, dict[bytes, Endpoint] | EndpointSlice] = {}

    def of_owner(self, owner: SliceOwner) -> tuple[EndpointSlice, ...]:
        """The slices that count for a Service or ServiceImport, ordered by name (see `OwnedSlices.counted`)."""
        return self._owned.counted(owner)

    def ready(self, owner: SliceOwner) -> int:
        """The number of slices with a ready endpoint (see `OwnedSlices.ready`)."""
        return self._owned.ready(owner)

    def place(self, one: EndpointSlice) -> int:
        """See `OwnedSlices.place`."""
        return self._owned.place(one)

    def surplus(self, one: EndpointSlice) -> EndpointSlice | None:
        """See `OwnedSlices.surplus`."""
        return self._owned.surplus(one)

    def counts(self, one: EndpointSlice) -> bool:
        """Whether a held slice counts (see `OwnedSlices.counts`)."""
        return self._owned.counts(one)

    def sharers(self, one: EndpointSlice) -> set[str]:
        """The names of a held slice and of others of its Service with an address of it; empty if it shares none.

        Of each address the two next to it by name. An address that is twice in the slice is shared. Not for imported
        slices, which are not indexed by address.
        """
        addresses = {endpoint.address for endpoint in one.endpoints}
        names = {key.name for _, keys in self._copies(one.key, one, addresses) for key in keys}
        return names | {one.name} if names or len(addresses) < len(one.endpoints) else names

    def keys_with_address(self, address: bytes, most: int = MOST, besides: str = "") -> Iterator[ObjectKey]:
        """The keys of the slices with this address: of each namespace the first `most`, by Service and name.

        None of the namespace `besides`, unless that is "". Imported slices, and those of no Service, are not indexed.
        """
        return (place.key for place in self._addresses.first_of_namespaces(address, most, besides))

    def some_with(self, addresses: Iterable[bytes]) -> Iterator[ObjectKey]:
        """The keys of slices with one of these addresses, at most 10 per namespace and address; some more than once.

        For checks after a change of an address: one change must not cost a check of thousands.
        """
        for address in addresses:
            yield from self.keys_with_address(address, SOME)

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
            if endpoint.ready and left.setdefault(service.namespace, MOST):
                left[service.namespace] -= 1
                found.append((service, endpoint))
        return tuple(found)

    def replace(self, key: ObjectKey, old: EndpointSlice | None, new: EndpointSlice | None) -> SliceChange:
        """Update the index: a slice was added (old None), changed, or removed (new None)."""
        owners = {owner_of(one) for one in (old, new) if one is not None and one.service_name}
        before = self._counted(old, owners)
        self._move(key, old, new)
        after = self._counted(new, owners)
        facts = address_facts({entry[0] for _, entry in _entries(before, after) ^ _entries(after, before)})
        facts.update([service_fact(*owner.key) for owner in owners])
        if old is not None and new is not None:
            facts |= address_facts(_reordered(old, new))
        if old is not None and new is not None and old.generation != new.generation:
            facts |= address_facts(address for address, _ in self._copies(key, new, _addresses(new)))
        services = frozenset([owner.key for owner in owners])
        return SliceChange(services, frozenset(facts), _placements(old), _placements(new))

    def _holders(self, address: bytes, besides: str) -> Iterator[tuple[ObjectKey, Endpoint, int]]:
        for key in self.keys_with_address(address, besides=besides):
            one = self._slices[key]
            if self._owned.counts(one):
                service = owner_of(one).key
                for endpoint in self._endpoints_at(key, one, address):
                    yield service, endpoint, one.generation

    def _endpoints_at(self, key: ObjectKey, one: EndpointSlice, address: bytes) -> Iterable[Endpoint]:
        """The endpoints of a slice with this address. Most slices are small enough for a linear search."""
        if len(one.endpoints) > _LARGE:
            places = self._places.get(key)
            if places is None:
                places = dict(zip(map(_address, one.endpoints), one.endpoints, strict=True))
                self._places[key] = places = places if len(places) == len(one.endpoints) else one
            if isinstance(places, dict):
                return (places[address],) if address in places else ()
        return [endpoint for endpoint in one.endpoints if endpoint.address == address]

    def _counted(self, one: EndpointSlice | None, owners: set[SliceOwner]) -> list[EndpointSlice]:
        """The slice, if it is not mirrored, and of these owners the mirrored slices that count."""
        mirrored = [each for owner in owners for each in self._owned.mirrored(owner)]
        return mirrored if one is None or one.mirrored else [one, *mirrored]

    def _copies(
        self, key: ObjectKey, one: EndpointSlice, addresses: Iterable[bytes]
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
            self._owned.remove(old)
        if new is not None:
            self._owned.add(new)
        self._places.pop(key, None)
        before, after = _addresses(old), _addresses(new)
        if old is not None and new is not None and _place_of(key, old) == _place_of(key, new):
            if before != after:
                self._addresses.move(_place_of(key, new), before, after)
            return
        if old is not None:
            self._addresses.move(_place_of(key, old), before, ())
        if new is not None:
            self._addresses.move(_place_of(key, new), (), after)


def _place_of(key: ObjectKey, one: EndpointSlice) -> _Place:
    return _Place(one.namespace, one.service_name, one.mirrored, key)


def _is_local(one: EndpointSlice | None) -> TypeGuard[EndpointSlice]:
    """Whether a slice belongs to a Service of this cluster: the addresses of imported ones may be another network's."""
    return one is not None and not one.imported and bool(one.service_name)


def _addresses(one: EndpointSlice | None) -> frozenset[bytes]:
    return frozenset(map(_address, one.endpoints)) if _is_local(one) else frozenset()


def _reordered(old: EndpointSlice, new: EndpointSlice) -> Iterator[bytes]:
    """The addresses of several endpoints of a slice whose order differs: of equally good ones the first counts."""
    before = _repeated(old)
    after = _repeated(new) if before else before
    return (address for address in before.keys() & after if before[address] != after[address])


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
    if not _is_local(one):
        return frozenset()
    return frozenset([(each.address, each.node_name) for each in one.endpoints if each.node_name and each.pod_name])


def _entries(slices: Sequence[EndpointSlice], besides: Sequence[EndpointSlice]) -> set[_AddressEntry]:
    """Of each endpoint in these slices, without the slices that are also in `besides`."""
    known = set(map(id, besides))
    changed = [one for one in slices if id(one) not in known]
    local = ((owner_of(one).key, one.endpoints) for one in changed if _is_local(one))
    return {(key, fields) for key, endpoints in local for fields in map(_entry_fields, endpoints)}
