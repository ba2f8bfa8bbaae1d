"""The locators that should exist, computed from the Pods and Nodes of a cluster. Pure.

Of a Pod only what locates it is kept, some 400 octets. A Pod counts until it is deleted or ends (Succeeded, Failed), so
also while it terminates, since it still sends queries; a hostNetwork Pod does not count: its address is the Node's.
"""

from collections.abc import Iterable
from itertools import filterfalse
from typing import Final, NamedTuple

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.decode.locators import MAX_ADDRESSES, MAX_IPS, MAX_POD_IPS, address_fault
from topodns.cluster.decode.objects import decode_object
from topodns.cluster.decode.structs import Source
from topodns.cluster.model import Node, ObjectKey, Pod
from topodns.locator.objects import LocatorContent, LocatorKind, ordered

LABELS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_NONE: Final[frozenset[ObjectKey]] = frozenset()


class PlacedPod(NamedTuple):
    """The parts of a Pod that locate it. `rank` decides between Pods with one address: the higher one has it.

    `ips` are packed; `node` is a name.
    """

    uid: str
    node: str
    ips: tuple[bytes, ...]
    rank: tuple[bool, str]  # whether it is not terminating, and its start (RFC 3339): an address is given to new Pods


class PlacedNode(NamedTuple):
    """The parts of a Node that its NodeLocator has. `addresses` are packed."""

    uid: str
    addresses: tuple[bytes, ...]
    labels: tuple[tuple[str, str], ...]


def placed_pod(uid: str, source: Source) -> PlacedPod | None:
    """The place of a Pod as the API sends it; None for one that no locator has. Raises DecodeError."""
    pod = next(iter(decode_object("Pod", source)), None)
    if not isinstance(pod, Pod) or pod.host_network or not pod.node_name:
        return None
    ips = tuple(filterfalse(address_fault, dict.fromkeys(pod.ips)))
    return PlacedPod(uid, pod.node_name, ips, (not pod.terminating, pod.started)) if ips and uid else None


def placed_node(uid: str, source: Source, label_keys: Iterable[str] = LABELS) -> PlacedNode | None:
    """The place of a Node as the API sends it, with those of its labels; None without a UID. Raises DecodeError."""
    node = next(iter(decode_object("Node", source)), None)
    if not isinstance(node, Node) or not uid:
        return None
    addresses = ordered(filterfalse(address_fault, (*node.addresses, *node.tunnel_addresses)))
    labels = tuple(sorted((key, node.labels[key]) for key in set(label_keys) if key in node.labels))
    return PlacedNode(uid, addresses, labels)


class Projection:
    """Pods and Nodes as last seen. Each change returns the keys of the locators whose content may have changed."""

    def __init__(self, kind: LocatorKind) -> None:
        self._of_pods = kind.namespaced
        self.pods: dict[ObjectKey, PlacedPod] = {}
        self.nodes: dict[ObjectKey, PlacedNode] = {}
        self._pods_of_node: dict[str, set[ObjectKey]] = {}
        self._claims: AddressIndex[ObjectKey] = AddressIndex()

    def set_pod(self, key: ObjectKey, place: PlacedPod | None) -> set[ObjectKey]:
        """A Pod was added or changed, or with None has gone or no longer counts."""
        old = self.pods.get(key)
        if old == place:
            return set()
        touched = self._affected(key, old)
        old_ips, new_ips = old.ips if old is not None else (), place.ips if place is not None else ()
        self._claims.move(key, old_ips, new_ips)
        if old is not None:
            self._leave(key, old.node)
        if place is None:
            self.pods.pop(key, None)
        else:
            self.pods[key] = place
            self._pods_of_node.setdefault(place.node, set()).add(key)
        return touched | self._affected(key, place)

    def set_node(self, key: ObjectKey, place: PlacedNode | None) -> set[ObjectKey]:
        """A Node was added or changed, or with None was deleted."""
        if self.nodes.get(key) == place:
            return set()
        if place is None:
            del self.nodes[key]
        else:
            self.nodes[key] = place
        return {key}

    def locator(self, key: ObjectKey) -> LocatorContent | None:
        """The locator with this key as it should be; None if there should be none."""
        return self._of_pod(key) if self._of_pods else self._of_node(key)

    def _of_node(self, key: ObjectKey) -> LocatorContent | None:
        node, name = self.nodes.get(key), key.name
        if node is None:
            return None
        pods = self._pods_of_node.get(name, _NONE)
        ips = ordered(ip for pod in pods for ip in self.pods[pod].ips if self.pods[self._winner(ip)].node == name)
        left_out = max(0, len(ips) - MAX_POD_IPS) + max(0, len(node.addresses) - MAX_ADDRESSES)
        kept, addresses = ips[:MAX_POD_IPS], node.addresses[:MAX_ADDRESSES]
        return LocatorContent(key, node.uid, kept, "", addresses, node.labels, left_out)

    def _of_pod(self, key: ObjectKey) -> LocatorContent | None:
        pod = self.pods.get(key)
        if pod is None:
            return None
        ips = ordered(ip for ip in pod.ips if self._winner(ip) == key)
        kept = ips[:MAX_IPS]
        return LocatorContent(key, pod.uid, kept, pod.node, left_out=len(ips) - len(kept)) if kept else None

    def _winner(self, address: bytes) -> ObjectKey:
        """Of the Pods with this address, of which there is one at least, the one that has it."""
        return max(self._claims.keys(address), key=lambda key: (self.pods[key].rank, key))

    def _affected(self, key: ObjectKey, place: PlacedPod | None) -> set[ObjectKey]:
        """The keys of the locators that this Pod and the others with its addresses are in."""
        if place is None:
            return set()
        others = {other for ip in place.ips for other in self._claims.keys(ip) if other in self.pods}
        if self._of_pods:
            return {key, *others}
        return {ObjectKey("", node) for node in (place.node, *(self.pods[other].node for other in others))}

    def _leave(self, key: ObjectKey, node: str) -> None:
        pods = self._pods_of_node[node]
        pods.discard(key)
        if not pods:
            del self._pods_of_node[node]
