"""The locators that should exist, computed from the Pods, Nodes and topology keys of a cluster. Pure.

Of a Pod only what locates it is kept, some 400 octets. A Pod counts until it is deleted or ends (Succeeded, Failed), so
also while it terminates, since it still sends queries. A NodeLocator has the addresses of its Node, so that hostNetwork
Pods do not count; of PodLocators one of them has each address of their Node.

The topology keys of Services, from all sources that a server may have in `keys`, and those of ServiceImports and
Namespaces are read: locators have the labels of Nodes that they name. A label that no key names any more stays until
the next term of a leader, so that a Service whose keys come and go has no locators written again.
"""

from collections.abc import Iterable, Mapping
from itertools import filterfalse
from sys import intern
from typing import Final, NamedTuple

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.decode.fields import shared_labels
from topodns.cluster.decode.locators import (
    MAX_ADDRESSES,
    MAX_ADDRESSES_OF_POD,
    MAX_LABELS,
    MAX_POD_IPS,
    address_fault,
)
from topodns.cluster.decode.objects import decode_object
from topodns.cluster.decode.structs import Source
from topodns.cluster.model import (
    InvalidPolicy,
    KeySource,
    Kind,
    LabelPairs,
    Namespace,
    Node,
    ObjectKey,
    Pod,
    Policy,
    Service,
)
from topodns.locator.objects import LocatorContent, LocatorKind, ordered
from topodns.topology.keys import NAMED_SOURCES, parse_list, policy_of

LABELS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone")
KEYED: Final[tuple[Kind, ...]] = ("Namespace", "Service", "ServiceImport")  # the kinds that have topology keys
MAX_NAMED: Final = 100  # labels that the keys in one namespace name; further ones do not count
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
    """The parts of a Node that locators have, and its other labels, which keys may come to name.

    `addresses` are packed.
    """

    uid: str
    addresses: tuple[bytes, ...]
    labels: Mapping[str, str]


def placed_pod(uid: str, source: Source, host_network: bool = False) -> PlacedPod | None:
    """The place of a Pod as the API sends it; None for one that no locator has. Raises DecodeError.

    `host_network`: whether a Pod of the Node's network has one.
    """
    pod = next(iter(decode_object("Pod", source)), None)
    if not isinstance(pod, Pod) or (pod.host_network and not host_network) or not pod.node_name:
        return None
    ips = tuple(filterfalse(address_fault, dict.fromkeys(pod.ips)))
    return PlacedPod(uid, pod.node_name, ips, (not pod.terminating, pod.started)) if ips and uid else None


def placed_node(uid: str, source: Source) -> PlacedNode | None:
    """The place of a Node as the API sends it; None without a UID. Raises DecodeError."""
    node = next(iter(decode_object("Node", source)), None)
    if not isinstance(node, Node) or not uid:
        return None
    addresses = ordered(filterfalse(address_fault, (*node.addresses, *node.tunnel_addresses)))
    return PlacedNode(uid, addresses, node.labels)


def named_labels(kind: Kind, source: Source) -> frozenset[str]:
    """The labels that the topology keys of an object of KEYED name, as the API sends it. Raises DecodeError."""
    value = next(iter(decode_object(kind, source)), None)
    policies: list[Policy | InvalidPolicy | None] = []
    if isinstance(value, Namespace):
        policies = [parse_list(value.topology_keys, KeySource.NAMESPACE)]
    elif isinstance(value, Service):
        sources = (KeySource.ANNOTATION,) if value.imported else NAMED_SOURCES
        policies = [policy_of(value, (each,)) for each in sources]
    return frozenset(label for policy in policies if isinstance(policy, Policy) for label in policy.labels)


class Projection:
    """Pods, Nodes and objects with keys as last seen.

    Each change returns the keys of the locators whose content may have changed. `labels`: the names of those that
    locators have whatever keys there are.
    """

    def __init__(self, kind: LocatorKind, labels: Iterable[str] = LABELS) -> None:
        self._of_pods = kind.namespaced
        self._labels = {name: at for at, name in enumerate(labels)}  # those in use; the first have room for certain
        self._named: dict[str, set[str]] = {}  # by namespace
        # Those with keys, and the labels that these name.
        self.keyed: dict[Kind, dict[ObjectKey, tuple[str, ...]]] = {each: {} for each in KEYED}
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
        before = self._labels_of(key.name)
        if place is None:
            del self.nodes[key]
        else:
            self.nodes[key] = place
        return self._describing(key) if not self._of_pods or self._labels_of(key.name) != before else set()

    def set_keyed(self, kind: Kind, key: ObjectKey, names: tuple[str, ...] | None) -> set[ObjectKey]:
        """An object of KEYED with keys was added or changed, or with None has gone or has no keys. `names`: of
        `admitted`.
        """
        if names is None:
            self.keyed[kind].pop(key, None)
            return set()
        self.keyed[kind][key] = names
        new = [name for name in names if name not in self._labels]
        self._labels.update({name: at for at, name in enumerate(new, len(self._labels))})
        having = (node for node, place in self.nodes.items() if any(name in place.labels for name in new))
        return {locator for node in having for locator in self._describing(node)}

    def admitted(self, namespace: str, names: Iterable[str]) -> tuple[str, ...]:
        """Of the labels that keys of a namespace name, those that count: the first MAX_NAMED that were seen."""
        in_order = [intern(name) for name in sorted(names)]
        known = self._named.setdefault(namespace, set()) if in_order else set()
        known.update([name for name in in_order if name not in known][: MAX_NAMED - len(known)])
        return tuple(name for name in in_order if name in known)

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
        return LocatorContent(key, node.uid, kept, "", addresses, self._labels_of(name), left_out)

    def _of_pod(self, key: ObjectKey) -> LocatorContent | None:
        pod = self.pods.get(key)
        if pod is None:
            return None
        ips = ordered(ip for ip in pod.ips if self._winner(ip) == key)
        if not ips:
            return None
        kept, labels = ips[:MAX_ADDRESSES_OF_POD], self._labels_of(pod.node)
        return LocatorContent(key, pod.uid, kept, pod.node, labels=labels, left_out=len(ips) - len(kept))

    def _labels_of(self, node: str) -> LabelPairs:
        """The labels of a Node that its locators have; none without a Node object."""
        place = self.nodes.get(ObjectKey("", node))
        if place is None:
            return ()
        names = sorted(place.labels.keys() & self._labels.keys(), key=self._labels.__getitem__)
        return shared_labels((name, place.labels[name]) for name in names[:MAX_LABELS])

    def _describing(self, node: ObjectKey) -> set[ObjectKey]:
        """The keys of the locators that have the labels of this Node."""
        return set(self._pods_of_node.get(node.name, _NONE)) if self._of_pods else {node}

    def _winner(self, address: bytes) -> ObjectKey:
        """Of the Pods with this address, of which there is one at least, the one that has it.

        It is on the Node of the one that started last, as far as not all terminate. Of several there, which hostNetwork
        Pods are, the first has the address as long as it runs, so that it does not move with each new one.
        """
        claims = self._claims.keys(address)
        if len(claims) == 1:
            return claims[0]
        newest = self.pods[max(claims, key=lambda key: (self.pods[key].rank, key))]
        there = (key for key in claims if self.pods[key].node == newest.node)
        return min(there, key=lambda key: (not self.pods[key].rank[0], self.pods[key].rank[1], key))

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
