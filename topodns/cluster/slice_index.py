"""EndpointSlices by the Service they belong to and by the addresses in them.

Of slices made from v1 Endpoints only those count whose Service has no slice of its own: the control plane mirrors one
into the other, and where both are at hand the slice says more.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.facts import Fact, address_fact, service_fact
from topodns.cluster.model import Endpoint, EndpointSlice, ObjectKey


class SliceOwner(NamedTuple):
    """A Service or, `imported`, a ServiceImport: the two may have the same name."""

    key: ObjectKey
    imported: bool = False


class _Claim(NamedTuple):
    """What PTR answers and the finding of clients take from an endpoint."""

    address: bytes
    service: ObjectKey
    node_name: str
    hostname: str
    pod_name: str
    ready: bool
    serving: bool
    terminating: bool


class SliceTable:
    """An index over `slices`, which its owner keeps: `replace` is told of every change after it was made there."""

    def __init__(self, slices: Mapping[tuple[str, str], EndpointSlice]) -> None:
        self._slices = slices
        self._of_owner: dict[SliceOwner, tuple[EndpointSlice, ...]] = {}
        self._addresses = AddressIndex()

    def of_owner(self, owner: SliceOwner) -> tuple[EndpointSlice, ...]:
        """The slices that count for a Service, by name."""
        slices = self._of_owner.get(owner, ())
        return tuple(one for one in slices if not one.mirrored) or slices

    def with_address(self, address: bytes) -> tuple[tuple[ObjectKey, Endpoint], ...]:
        """Per Service the endpoint with this address; of its copies a ready one, one that stays, the newest."""
        best: dict[ObjectKey, tuple[tuple[bool, bool, int], Endpoint]] = {}
        for service, endpoint, generation in self._holders(address):
            rank = (endpoint.ready, not endpoint.terminating, generation)
            if service not in best or rank > best[service][0]:
                best[service] = (rank, endpoint)
        return tuple((service, endpoint) for service, (_, endpoint) in best.items())

    def replace(self, old: EndpointSlice | None, new: EndpointSlice | None) -> frozenset[Fact]:
        """A slice was added (old None), changed, or removed (new None). The facts that this touches."""
        owners = {owner_of(one) for one in (old, new) if one is not None and one.service_name}
        whole = self._any_mirrored(owners) or (new is not None and new.mirrored)
        before = self._claims(owners) if whole else _claims(old)
        self._move(old, new)
        after = self._claims(owners) if whole else _claims(new)
        services = (service_fact(*owner.key) for owner in owners)
        return frozenset((*services, *(address_fact(claim.address) for claim in before ^ after)))

    def _holders(self, address: bytes) -> Iterator[tuple[ObjectKey, Endpoint, int]]:
        for key in self._addresses.claimants(address):
            one = self._slices[key]
            owner = owner_of(one)
            if one.mirrored and not self.of_owner(owner)[0].mirrored:
                continue
            for endpoint in one.endpoints:
                if endpoint.address == address:
                    yield owner.key, endpoint, one.generation

    def _any_mirrored(self, owners: set[SliceOwner]) -> bool:
        return any(one.mirrored for owner in owners for one in self._of_owner.get(owner, ()))

    def _claims(self, owners: set[SliceOwner]) -> set[_Claim]:
        return {claim for owner in owners for one in self.of_owner(owner) for claim in _claims(one)}

    def _move(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        if old is not None:
            self._place(owner_of(old), old, None)
        if new is not None:
            self._place(owner_of(new), None, new)
        one = new or old
        if one is not None:
            self._addresses.move(one.key, addresses_of(old), addresses_of(new))

    def _place(self, owner: SliceOwner, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        slices = [one for one in self._of_owner.pop(owner, ()) if one is not old]
        if new is not None:
            slices.append(new)
            slices.sort(key=lambda one: one.name)
        if slices and owner.key.name:
            self._of_owner[owner] = tuple(slices)


def owner_of(one: EndpointSlice) -> SliceOwner:
    """The Service of a slice; its name is "" where the slice belongs to none."""
    return SliceOwner(ObjectKey(one.namespace, one.service_name), one.imported)


def addresses_of(one: EndpointSlice | None) -> frozenset[bytes]:
    """The addresses that a slice puts on this cluster's network: those of an imported Service may be elsewhere's."""
    if one is None or one.imported or not one.service_name:
        return frozenset()
    return frozenset(endpoint.address for endpoint in one.endpoints)


def placements_of(one: EndpointSlice | None) -> frozenset[tuple[bytes, str]]:
    """Which addresses a slice shows to be on which node of this cluster."""
    if one is None or not addresses_of(one):
        return frozenset()
    return frozenset((endpoint.address, endpoint.node_name) for endpoint in one.endpoints if endpoint.node_name)


def _claims(one: EndpointSlice | None) -> set[_Claim]:
    if one is None or not addresses_of(one):
        return set()
    service = owner_of(one).key
    return {_claim(service, endpoint) for endpoint in one.endpoints}


def _claim(service: ObjectKey, endpoint: Endpoint) -> _Claim:
    return _Claim(
        endpoint.address,
        service,
        endpoint.node_name,
        endpoint.hostname,
        endpoint.pod_name,
        endpoint.ready,
        endpoint.serving,
        endpoint.terminating,
    )
