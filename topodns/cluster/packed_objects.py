"""Objects of a cluster's state as MessagePack: for copies in other processes, and for snapshots in files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from sys import intern
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args, get_type_hints

from topodns.cluster.decode.fields import interned, shared_labels
from topodns.cluster.decode.structs import pack, unpacker
from topodns.cluster.model import (
    ClusterObject,
    ClusterProperty,
    Endpoint,
    EndpointSlice,
    Kind,
    Namespace,
    Node,
    NodeLocator,
    ObjectKey,
    Pod,
    PodLocator,
    Service,
    StatefulSet,
)

if TYPE_CHECKING:
    from topodns.cluster.state import ClusterState

T = TypeVar("T")

_SHARED: Final = 1024  # values that one copy of each is kept of
_FEW_PORTS: Final = 16  # more are not looked for
_WEIGHT: Final = 64  # objects and endpoints in one batch, which is packed in about 0.1 ms

KINDS: Final[Mapping[Kind, type]] = {
    "Namespace": Namespace,
    "Node": Node,
    "Service": Service,
    "ServiceImport": Service,
    "EndpointSlice": EndpointSlice,
    "Pod": Pod,
    "NodeLocator": NodeLocator,
    "PodLocator": PodLocator,
    "StatefulSet": StatefulSet,
    "ClusterProperty": ClusterProperty,
}


def batches(state: "ClusterState", kind: Kind) -> Iterator[list[ClusterObject]]:
    """The objects of one kind, some at a time, each as it is in its step; the state may change between two steps.

    An object that comes meanwhile is in none.
    """
    objects: list[ClusterObject] = []
    weight = 0
    for key in state.keys(kind):
        value = state.held(kind, key)
        if value is None:
            continue
        objects.append(value)
        weight += 1 + (len(value.endpoints) if isinstance(value, EndpointSlice) else 0)
        if weight >= _WEIGHT:
            yield objects
            objects, weight = [], 0
    if objects:
        yield objects


Packed = tuple[list[ClusterObject], list[ObjectKey]]
"""(objects, keys of deleted objects) of one kind."""


def pack_objects(upserted: Sequence[ClusterObject], deleted: Sequence[ObjectKey] = ()) -> bytes:
    """These objects and deletions of one kind as octets."""
    return pack((upserted, deleted))


def unpack_objects(kind: Kind, data: bytes) -> Packed:
    """The objects and deletions that `pack_objects` has written; texts that many objects have are shared."""
    upserted, deleted = cast(Packed, _unpacker(kind)(data))
    for value in upserted:
        _share_texts(value)
    return upserted, deleted


@cache
def layout() -> str:
    """A digest of all fields that objects have as octets: equal in two programs that read each other's objects."""
    described: dict[str, dict[str, str]] = {}
    _describe(KINDS.values(), described)
    return sha256(repr(sorted(described.items())).encode()).hexdigest()[:16]


def _describe(types: Iterable[Any], described: dict[str, dict[str, str]]) -> None:
    """Add the fields of these types, and of the types in their fields, by the types' names."""
    for each in types:
        if getattr(each, "__module__", "").startswith("topodns.") and each.__qualname__ not in described:
            hints = get_type_hints(each)
            described[each.__qualname__] = {name: str(hint) for name, hint in hints.items()}
            _describe(hints.values(), described)
        else:
            _describe(get_args(each), described)


@cache
def _unpacker(kind: Kind) -> Callable[[bytes], Any]:
    objects: Any = KINDS[kind]
    return unpacker(tuple[list[objects], list[ObjectKey]])


def _share_texts(value: ClusterObject) -> None:
    """Replace the texts of this new object that others have, too, by one copy for all, as the decoders of the API do.

    Nothing has a reference to the object yet, so it may still change.
    """
    match value:
        case Service():
            _set(value, "namespace", intern(value.namespace))
            _set(value, "topology", _one_copy(value.topology))
            _set(value, "ip_families", _one_copy(value.ip_families))
            _share_ports(value)
        case EndpointSlice():
            _set(value, "namespace", intern(value.namespace))
            _set(value, "address_type", intern(value.address_type))
            _share_ports(value)
            for endpoint in value.endpoints:
                _share_texts_of_endpoint(endpoint)
        case Pod():
            _set(value, "namespace", intern(value.namespace))
            _set(value, "node_name", intern(value.node_name))
        case Node() | Namespace() | NodeLocator():
            _set(value, "labels", interned(value.labels))
        case PodLocator():
            _set(value, "node_name", intern(value.node_name))
            _set(value, "node_labels", shared_labels(value.node_labels))


def _share_ports(value: Service | EndpointSlice) -> None:
    if len(value.ports) <= _FEW_PORTS:
        _set(value, "ports", _one_copy(value.ports))


@lru_cache(maxsize=_SHARED)
def _one_copy(value: T) -> T:
    """The first of these equal values."""
    return value


def _share_texts_of_endpoint(endpoint: Endpoint) -> None:
    _set(endpoint, "node_name", intern(endpoint.node_name))
    _set(endpoint, "topology", interned(endpoint.topology))  # also of none: 150,000 empty dictionaries are 10 MB
    if endpoint.hostname:
        _set(endpoint, "hostname", intern(endpoint.hostname))
    if endpoint.topology_zone is not None:
        _set(endpoint, "topology_zone", intern(endpoint.topology_zone))
    for field in ("zone_hints", "node_hints"):
        if names := cast(Iterable[str], getattr(endpoint, field)):
            _set(endpoint, field, tuple(map(intern, names)))


_set: Final = object.__setattr__  # the values are frozen
