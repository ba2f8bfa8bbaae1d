"""Nodes by what a client's address can show: their own addresses, tunnel addresses and pod CIDRs.

Kept by `ClusterState`, asked by `locate`. Also verifies podCIDRs against observed endpoints, because some CNIs (Calico
IPAM, Cilium cluster-pool, the cloud VPC ones) give pods addresses from elsewhere, and a wrong node is worse than none.
So nothing here guesses: what several nodes claim equally well is nobody's.
"""

from collections.abc import Set
from typing import Final

from topodns.cluster.cidr_table import CidrTable
from topodns.cluster.model import Node

VERIFIED_SAMPLES: Final = 200  # fewer observed endpoints prove nothing
VERIFIED_PER_MILLE: Final = 999  # of the samples, those that must lie in their own node's pod CIDR


class NodeIndex:
    """The Nodes of one cluster, looked up by address. Every lookup is a few dictionary accesses, whatever the size."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._claimants: dict[bytes, tuple[str, ...]] = {}  # address or tunnel address -> names of its Nodes
        self._cidrs = CidrTable()
        self._observations = _Observations()

    def replace(self, old: Node | None, new: Node | None) -> None:
        """A Node was added (old None), changed, or removed (new None)."""
        node = new or old
        if node is None:
            return
        if new is not None:
            self._nodes[node.name] = new
        else:
            self._nodes.pop(node.name, None)
        if (old is None) != (new is None):
            self._observations.outdate(node.name)
        self._move_addresses(node.name, _addresses(old), _addresses(new))
        self._move_cidrs(node.name, _cidrs(old), _cidrs(new))

    def with_address(self, address: bytes) -> Node | None:
        """The Node that owns this address (or tunnel address); of several, the ready one created last.

        A replacement machine often gets the address of the one before, whose Node object is still there. Nodes that
        are equally ready and equally old cannot be told apart: None.
        """
        names = self._claimants.get(address)
        if names is None:
            return None
        if len(names) == 1:
            return self._nodes[names[0]]
        return _newest_ready([self._nodes[name] for name in names])

    def with_pod_cidr(self, address: bytes) -> Node | None:
        """The Node whose longest pod CIDR holds this address (the .0 address included); None where several have it."""
        name = self._cidrs.owner(address)
        return self._nodes[name] if name else None

    def with_pod_subnet(self, network: bytes, prefix_length: int) -> Node | None:
        """The Node whose pod CIDR holds all of this network; None where a part of it is another Node's."""
        name = self._cidrs.subnet_owner(network, prefix_length)
        return self._nodes[name] if name else None

    def with_pod_gateway(self, address: bytes) -> Node | None:
        """The Node whose pod CIDR has this address as its .0 or .1, which belong to the node itself and to no pod.

        flannel's tunnel end is the .0; the bridge, which host processes of the server's own node come from, the .1.
        """
        name = self._cidrs.start_owner(address, 2)
        return self._nodes[name] if name else None

    def observe(self, address: bytes, node_name: str, count: int) -> None:
        """An endpoint of a slice with this address on this node appeared (count 1) or went away (-1)."""
        if not node_name:
            return
        change = self._observations.count(address, node_name, count)
        node = self._nodes.get(node_name)
        if change and node is not None and address not in _addresses(node):
            agrees = self._cidrs.owner(address) == node_name
            self._observations.adjust(node_name, change, change * agrees)

    def has_endpoints_on(self, node_name: str) -> bool:
        """Whether some endpoint of a slice is on the node of this name, be there a Node object or not."""
        return bool(self._observations.on_node(node_name))

    @property
    def pod_cidrs_verified(self) -> bool:
        """At least 99.9 % of at least 200 observed endpoints (no node addresses) lie in their own node's pod CIDR.

        The same address in several slices is one endpoint. Endpoints on a node without Node object say nothing: when
        a node is deleted, its slices outlive it, and everybody else's pod CIDRs are as good as before.
        """
        for name in self._observations.take_outdated():
            self._observations.record(name, *self._tally(name))
        samples, agreeing = self._observations.samples, self._observations.agreeing
        return samples >= VERIFIED_SAMPLES and agreeing * 1000 >= samples * VERIFIED_PER_MILLE

    def _tally(self, name: str) -> tuple[int, int]:
        """Of the endpoints observed on one node: how many are samples, and how many of those lie in its pod CIDR."""
        node = self._nodes.get(name)
        if node is None:
            return 0, 0
        samples = self._observations.on_node(name) - _addresses(node)  # hostNetwork pods have the node's address
        return len(samples), list(map(self._cidrs.owner, samples)).count(name)

    def _move_addresses(self, name: str, old: frozenset[bytes], new: frozenset[bytes]) -> None:
        if old == new:
            return
        for address in old - new:
            remaining = tuple(other for other in self._claimants.pop(address) if other != name)
            if remaining:
                self._claimants[address] = remaining
        for address in new - old:
            self._claimants[address] = (*self._claimants.get(address, ()), name)
        self._observations.outdate(name)

    def _move_cidrs(self, name: str, old: frozenset[tuple[bytes, int]], new: frozenset[tuple[bytes, int]]) -> None:
        if old == new:
            return
        for network, prefix_length in old:
            self._cidrs.remove(network, prefix_length, name)
        # Only where a CIDR lies inside another node's (or is the same) does it move verdicts on that node's endpoints.
        if any(self._cidrs.covers(network, prefix_length) for network, prefix_length in old | new):
            self._observations.outdate_all()
        for network, prefix_length in new:
            self._cidrs.add(network, prefix_length, name)
        self._observations.outdate(name)


class _Observations:
    """Which addresses endpoints have on which node, and how many of those the pod CIDRs explain.

    Tallies are kept per node. An endpoint that comes or goes adjusts its node's; a change of the node itself outdates
    it, and it is made anew when somebody asks.
    """

    def __init__(self) -> None:
        self.samples = 0
        self.agreeing = 0
        self._addresses: dict[str, dict[bytes, int]] = {}  # node name -> address -> number of slices it is in
        self._tallies: dict[str, tuple[int, int]] = {}  # node name -> samples, and those that agree
        self._outdated: set[str] = set()

    def count(self, address: bytes, node_name: str, count: int) -> int:
        """Note that so many slices more have this address; 1 if it is new on this node, -1 if it is gone, else 0."""
        addresses = self._addresses.setdefault(node_name, {})
        before = addresses.pop(address, 0)
        after = before + count
        if after:
            addresses[address] = after
        elif not addresses:
            del self._addresses[node_name]
        return bool(after) - bool(before)

    def on_node(self, name: str) -> Set[bytes]:
        return self._addresses.get(name, {}).keys()

    def outdate(self, name: str) -> None:
        self._outdated.add(name)

    def outdate_all(self) -> None:
        self._outdated.update(self._addresses)

    def take_outdated(self) -> Set[str]:
        """The nodes that want a new tally, which the caller records."""
        if not self._outdated:
            return frozenset()
        outdated, self._outdated = self._outdated, set()
        return outdated

    def record(self, name: str, samples: int, agreeing: int) -> None:
        old_samples, old_agreeing = self._tallies.get(name, (0, 0))
        self.adjust(name, samples - old_samples, agreeing - old_agreeing)

    def adjust(self, name: str, samples: int, agreeing: int) -> None:
        self.samples += samples
        self.agreeing += agreeing
        old_samples, old_agreeing = self._tallies.pop(name, (0, 0))
        if old_samples + samples:
            self._tallies[name] = old_samples + samples, old_agreeing + agreeing


def _addresses(node: Node | None) -> frozenset[bytes]:
    return frozenset() if node is None else frozenset(node.addresses + node.tunnel_addresses)


def _cidrs(node: Node | None) -> frozenset[tuple[bytes, int]]:
    return frozenset() if node is None else frozenset(node.pod_cidrs)


def _newest_ready(nodes: list[Node]) -> Node | None:
    nodes.sort(key=lambda node: (node.ready, node.created), reverse=True)
    first, second = nodes[:2]
    tied = (first.ready, first.created) == (second.ready, second.created)
    return None if tied else first
