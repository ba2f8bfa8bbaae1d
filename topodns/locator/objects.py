"""NodeLocator and PodLocator as values and as API objects (`topodns.io/v1alpha1`). Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final

from topodns.cluster.decode.fields import parse_address, shared_labels
from topodns.cluster.decode.structs import ApiWritten, Source, StructReader
from topodns.cluster.model import LOCATOR_GROUP, LOCATOR_VERSION, Kind, LabelPairs, ObjectKey

FIELD_MANAGER: Final = "topodns-locator"
_WRITTEN: Final = StructReader(ApiWritten)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LocatorKind:
    """One of the two kinds, and the kind of the objects that own its objects."""

    word: str  # of the flag --kind
    kind: Kind
    plural: str
    owner: str
    ips: str  # the field of `spec` with the addresses of Pods
    labels: str  # that with the labels of the Node
    namespaced: bool

    @property
    def collection(self) -> str:
        """The path of all objects."""
        return f"/apis/{LOCATOR_GROUP}/{LOCATOR_VERSION}/{self.plural}"

    def collection_of(self, key: ObjectKey) -> str:
        """The path at which this object is created."""
        if not self.namespaced:
            return self.collection
        return f"/apis/{LOCATOR_GROUP}/{LOCATOR_VERSION}/namespaces/{key.namespace}/{self.plural}"

    def path(self, key: ObjectKey) -> str:
        """The path of one object."""
        return f"{self.collection_of(key)}/{key.name}"


NODE_LOCATORS: Final = LocatorKind("nodelocator", "NodeLocator", "nodelocators", "Node", "podIPs", "labels", False)
POD_LOCATORS: Final = LocatorKind("podlocator", "PodLocator", "podlocators", "Pod", "addresses", "nodeLabels", True)
KINDS: Final = {each.word: each for each in (NODE_LOCATORS, POD_LOCATORS)}


@dataclass(frozen=True, slots=True)
class LocatorContent:
    """The content of a NodeLocator or PodLocator. Addresses are packed; sequences are sorted, without duplicates."""

    key: ObjectKey
    owner_uid: str
    ips: tuple[bytes, ...]  # of Pods; an address is in one locator at a time
    node: str = ""  # of a PodLocator
    addresses: tuple[bytes, ...] = ()  # of a NodeLocator: the Node's own
    labels: LabelPairs = ()  # of the Node
    left_out: int = field(default=0, compare=False)  # addresses above the limits of the schema


@dataclass(frozen=True, slots=True)
class StoredLocator:
    """A locator as the API server has it."""

    uid: str
    version: str  # resourceVersion
    ips: tuple[bytes, ...]
    content: LocatorContent | None  # None: not as this program writes it
    owner_uids: frozenset[str] = frozenset()


def ordered(addresses: Iterable[bytes]) -> tuple[bytes, ...]:
    """The distinct addresses, IPv4 first, each family by number."""
    return tuple(sorted(set(addresses), key=lambda address: (len(address), address)))


def locator_object(kind: LocatorKind, locator: LocatorContent, stored: StoredLocator | None) -> Json:
    """The object to create, or with `stored` to apply: refused (409) where that version is not stored any more.

    The UID has an object that was deleted meanwhile stay away: server-side apply creates one that has only a version.
    """
    metadata: Json = {"name": locator.key.name, "ownerReferences": [_owner(kind, locator)]}
    if kind.namespaced:
        metadata["namespace"] = locator.key.namespace
    if stored is not None:
        metadata |= {"uid": stored.uid, "resourceVersion": stored.version}
    version = f"{LOCATOR_GROUP}/{LOCATOR_VERSION}"
    return {"apiVersion": version, "kind": kind.kind, "metadata": metadata, "spec": _spec(kind, locator)}


def read_locator(kind: LocatorKind, source: Source) -> StoredLocator:
    """A locator as the API server has it.

    Other programs can write such objects. So any `spec` is accepted, addresses that cannot be parsed are left out, and
    `content` is None unless the object is exactly as this program writes it. Raises one of UNREADABLE.
    """
    read = _WRITTEN.read(source)
    metadata, spec = read.metadata, read.spec if isinstance(read.spec, dict) else {}
    owner_uids = [str(owner.get("uid", "")) for owner in _dicts(metadata.owner_references)]
    found = LocatorContent(
        ObjectKey(metadata.namespace or "", metadata.name),
        next(iter(owner_uids), ""),
        _readable(spec.get(kind.ips)),
        str(spec.get("nodeName", "")),
        _readable(spec.get("addresses")) if not kind.namespaced else (),
        _labels(spec.get(kind.labels)),
    )
    ours = spec == _spec(kind, found) and metadata.owner_references == [_owner(kind, found)]
    uid, version = metadata.uid or "", metadata.resource_version or ""
    return StoredLocator(uid, version, found.ips, found if ours else None, frozenset(owner_uids))


def is_older(version: str, known: str) -> bool:
    """Whether this resourceVersion is older than a known one; not where either is no number, which has no order."""
    return version.isdecimal() and known.isdecimal() and int(version) < int(known)


def is_newer(version: str, known: str) -> bool:
    """Whether this resourceVersion is newer than a known one; also where either is no number, which has no order."""
    return not (version.isdecimal() and known.isdecimal()) or int(version) > int(known)


def _spec(kind: LocatorKind, locator: LocatorContent) -> Json:
    spec: Json = {kind.ips: _texts(locator.ips), kind.labels: dict(locator.labels)}
    return spec | ({"nodeName": locator.node} if kind.namespaced else {"addresses": _texts(locator.addresses)})


def _owner(kind: LocatorKind, locator: LocatorContent) -> Json:
    return {
        "apiVersion": "v1",
        "kind": kind.owner,
        "name": locator.key.name,
        "uid": locator.owner_uid,
        "blockOwnerDeletion": False,
    }


def _texts(addresses: Iterable[bytes]) -> list[str]:
    return [str(ip_address(address)) for address in addresses]


def _readable(texts: object) -> tuple[bytes, ...]:
    found = []
    for text in texts if isinstance(texts, list) else ():
        try:
            found.append(parse_address(str(text)))
        except ValueError:
            continue
    return ordered(found)


def _labels(labels: object) -> LabelPairs:
    return shared_labels((str(name), str(value)) for name, value in labels.items()) if isinstance(labels, dict) else ()


def _dicts(items: object) -> Iterator[Mapping[str, Any]]:
    return (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))
