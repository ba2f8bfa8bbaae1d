"""Index of Nodes by their own addresses, their tunnel addresses and their pod CIDRs.

`ClusterState` maintains it, `topology.client_locator` reads it. An address that several Nodes have equally well is
of none: a wrong Node is worse than none. `pod_cidr_proof` decides whether pod CIDRs may locate clients at all.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from topodns.cluster.cidr_index import CidrTable
from topodns.cluster.model import Node, Placement, Pod
from topodns.cluster.pod_cidr_proof import PodCidrProof
from topodns.dependency import EVERYTHING, Fact, address_facts, node_fact

GATEWAYS: Final = 2  # addresses at the start of a pod CIDR that belong to the Node: flannel's tunnel end, the bridge


class NodeIndex:
    """The Nodes of one cluster by address. A lookup is a few dictionary accesses, independent of the number of Nodes.

    `with_pod_subnet` also searches all longer pod CIDRs, and `with_pods_around` the Pods of one Node.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self.by_name: Mapping[str, Node] = MappingProxyType(self._nodes)  # a live view
        self._names: dict[bytes, tuple[str, ...]] = {}  # address or tunnel address -> names of its Nodes
        self._cidrs = CidrTable()
        self._with_cidrs = 0  # how many Nodes have a pod CIDR
        self._verified: bool | None = None  # the last `pod_cidrs_verified`; None after a change that may alter it
        self._by_slices = PodCidrProof(self._verdict)
        self._by_pods = PodCidrProof(self._verdict)

    def replace(self, old: Node | None, new: Node | None) -> None:
        """Update the index: a Node was added (old None), changed, or removed (new None)."""
        node = new or old
        if node is None:
            return
        self._verified = None
        if (_addresses(old), _cidrs(old), old is None) != (_addresses(new), _cidrs(new), new is None):
            self._retract(node.name, _cidrs(old) ^ _cidrs(new))
        if new is not None:
            self._nodes[node.name] = new
        else:
            self._nodes.pop(node.name, None)
        self._move_addresses(node.name, _addresses(old), _addresses(new))
        self._move_cidrs(node.name, _cidrs(old), _cidrs(new))

    def with_address(self, address: bytes) -> Node | None:
        """The Node that has this address (or tunnel address); of several, a ready one, then the one created last.

        A replacement machine often gets the address of the previous one, whose Node object still exists. None if there
        is no such Node, or if the first two in that order are equally ready and equally old.
        """
        names = self._names.get(address)
        if names is None:
            return None
        if len(names) == 1:
            return self._nodes[names[0]]
        return _newest_ready([self._nodes[name] for name in names])

    def with_pod_cidr(self, address: bytes) -> Node | None:
        """The Node with the longest pod CIDR around this address (.0 included), proven or not.

        None if there is none, or several Nodes have it.
        """
        name = self._cidrs.owner(address)
        return self._nodes[name] if name else None

    def with_pod_subnet(self, network: bytes, prefix_length: int) -> Node | None:
        """The Node whose pod CIDR holds all of this network; None if there is none, or if a part is another Node's."""
        name = self._cidrs.subnet_owner(network, prefix_length)
        return self._nodes[name] if name else None

    def with_pod_gateway(self, address: bytes) -> Node | None:
        """The Node whose pod CIDR has this address as its first or second, which belong to the Node and to no Pod.

        .0 is flannel's tunnel end; .1 is the bridge, the source address of host processes on the server's own Node.
        """
        name = self._cidrs.start_owner(address, GATEWAYS)
        return self._nodes[name] if name else None

    def move_endpoints(self, old: Set[Placement], new: Set[Placement], namespace: str) -> None:
        """Update the proof that Pods get their addresses from pod CIDRs, by the Pods in one slice of this namespace.

        They were at `old` and are at `new` (empty: there is no slice, or no Pod in it).
        """
        if old != new:
            self._verified = None
            self._by_slices.move(old, new, namespace)

    def move_pod(self, old: Pod | None, new: Pod | None) -> tuple[bytes, ...]:
        """Update the proof that Pods get their addresses from pod CIDRs.

        A Pod was added (old None), changed, or removed (new None). Returns the first two addresses (GATEWAYS) of each
        pod CIDR of its old and its new Node, as `with_pods_around` may have another result for them now; none for a
        Pod of the host network.
        """
        one = new or old
        if one is None:
            return ()
        self._verified = None
        self._by_pods.move(_placements(old), _placements(new), one.namespace)
        names = [pod.node_name for pod in (old, new) if pod is not None and not pod.host_network]
        nodes = [self._nodes[name] for name in names if name in self._nodes]
        return tuple(address for node in nodes for address in _gateways(node))

    def has_pods_on(self, node_name: str) -> bool:
        """Whether a Pod (not of the host network), or a Pod's endpoint in a slice, is on a Node of this name.

        With or without a Node object.
        """
        return bool(self._by_slices.on_node(node_name) or self._by_pods.on_node(node_name))

    @property
    def pod_cidrs_verified(self) -> bool:
        """Whether it is proven that Pods get their addresses from pod CIDRs (`PodCidrProof.holds`).

        The proof is by Pods outside the host network if any is known, else by slices.

        Observations on a Node without a Node object do not count: slices outlive a deleted Node, and the pod CIDRs of
        the other Nodes are as reliable as before.
        """
        if self._verified is None:
            by_pods = self._by_pods.holds(self._with_cidrs)
            self._verified = bool(self._by_slices.holds(self._with_cidrs)) if by_pods is None else by_pods
        return self._verified

    def with_pods_around(self, address: bytes) -> Node | None:
        """The Node whose pod CIDR has this address as its first or second; None if there is none.

        Also None unless a Pod on that Node is known to have an address in the Node's pod CIDRs. With one, this address
        is that of the Pods' bridge, the source address of host processes on the server's own Node.
        """
        node = self.with_pod_gateway(address)
        if node is None:
            return None
        size = len(address)
        neighbours = (each for each in self._by_pods.on_node(node.name) if len(each) == size)
        return node if any(self._cidrs.owner(each) == node.name for each in neighbours) else None

    def _verdict(self, address: bytes, node_name: str) -> bool | None:
        """Whether this address agrees with the pod CIDRs of its Node; None: it is no evidence.

        No evidence are addresses of the Node itself (hostNetwork Pods), all addresses where there is no Node object,
        and those of a family in which the Node has no pod CIDR though it has one in the other.
        """
        node = self._nodes.get(node_name)
        if node is None or address in node.addresses or address in node.tunnel_addresses:
            return None
        if node.pod_cidrs and all(len(network) != len(address) for network, _ in node.pod_cidrs):
            return None
        return self._cidrs.owner(address) == node_name

    def _retract(self, name: str, moving: frozenset[tuple[bytes, int]]) -> None:
        """Before this Node changes, subtract from the proofs' counts the observations whose verdict may change.

        `moving`: the CIDRs that it gains or loses. The proofs count again when they are next queried.
        """
        for proof in (self._by_slices, self._by_pods):
            # Verdicts on another Node's Pods change only if a CIDR lies in (or equals) one of that Node.
            if any(self._cidrs.covers(network, prefix_length, name) for network, prefix_length in moving):
                proof.retract_all()
            proof.retract(name)

    def _move_addresses(self, name: str, old: frozenset[bytes], new: frozenset[bytes]) -> None:
        if old == new:
            return
        for address in old - new:
            remaining = tuple(other for other in self._names.pop(address) if other != name)
            if remaining:
                self._names[address] = remaining
        for address in new - old:
            self._names[address] = (*self._names.get(address, ()), name)

    def _move_cidrs(self, name: str, old: frozenset[tuple[bytes, int]], new: frozenset[tuple[bytes, int]]) -> None:
        if old == new:
            return
        for network, prefix_length in old:
            self._cidrs.remove(network, prefix_length, name)
        for network, prefix_length in new:
            self._cidrs.add(network, prefix_length, name)
        self._with_cidrs += bool(new) - bool(old)


def facts_of_change(old: Node | None, new: Node | None) -> set[Fact]:
    """The dependencies that a change of a Node touches, except Services.

    A change of readiness or creation time touches only its addresses: they may belong to another Node now. A change
    of pod CIDRs touches EVERYTHING.
    """
    if _cidrs(old) != _cidrs(new):
        return {EVERYTHING}
    nodes = [node for node in (old, new) if node is not None]
    facts = address_facts(address for node in nodes for address in (*node.addresses, *node.tunnel_addresses))
    if old is None or new is None or replace(old, ready=new.ready, created=new.created) != new:
        facts.add(node_fact(nodes[0].name))
    return facts


def _placements(pod: Pod | None) -> frozenset[Placement]:
    """(address, Node name) of each address of a Pod; none for a hostNetwork Pod, whose addresses are the Node's."""
    if pod is None or not pod.node_name or pod.host_network:
        return frozenset()
    return frozenset((address, pod.node_name) for address in pod.ips)


def _gateways(node: Node) -> Iterator[bytes]:
    for network, _ in node.pod_cidrs:
        for at in range(GATEWAYS):
            yield network[:-1] + bytes((network[-1] | at,))


def _addresses(node: Node | None) -> frozenset[bytes]:
    return frozenset() if node is None else frozenset(node.addresses + node.tunnel_addresses)


def _cidrs(node: Node | None) -> frozenset[tuple[bytes, int]]:
    return frozenset() if node is None else frozenset(node.pod_cidrs)


def _newest_ready(nodes: list[Node]) -> Node | None:
    nodes.sort(key=lambda node: (node.ready, node.created), reverse=True)
    first, second = nodes[:2]
    tied = (first.ready, first.created) == (second.ready, second.created)
    return None if tied else first
