"""Decides on which Node the client of a query runs: by the query's claims, else by the first method with a result.

The methods are in docs/reference/topology.md. The result is a Node, never a Pod. A wrong Node is worse than none, so
ambiguous data gives "unknown". Source addresses can be forged inside a cluster: a location is a routing hint, topology
is no access control.
"""

from collections.abc import Callable, Collection, Container, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from topodns.cluster.model import Node
from topodns.memory.bounded import ReadLRU
from topodns.topology.claims import Claim, ClaimTrust, node_of_endpoints, node_of_locators, node_of_pods
from topodns.topology.select import Location

if TYPE_CHECKING:
    from topodns.cluster.state import ClusterState


UNKNOWN: Final = Location()
MAX_KNOWN: Final = 65_536  # source addresses whose locations are cached

_IPV6_LOOPBACK: Final = bytes(15) + b"\x01"
_IPV4_LOOPBACK: Final = 127  # the first octet of 127.0.0.0/8


class Method(Enum):
    """Methods that map an address to a Node, in the spelling of the Corefile's option `locate`."""

    NODES = "nodes"  # status.addresses and the CNI's tunnel addresses
    PODCIDR = "podcidr"  # Node.spec.podCIDRs, once observed addresses prove that the CNI assigns from them
    PODS = "pods"  # status.podIPs
    SLICES = "slices"  # EndpointSlices, where nothing contradicts them
    NODELOCATOR = "nodelocator"  # spec.podIPs and spec.addresses of NodeLocators, where nothing contradicts them
    PODLOCATOR = "podlocator"  # spec.addresses of PodLocators, likewise
    PODCIDR_UNVERIFIED = "podcidr-unverified"  # without that proof: the operator knows that the CNI assigns from them


class ClientLocator:
    """Maps clients to Nodes by one cluster's state, with `methods` in the given order.

    `trust`: sources (packed) of which every claim counts; `claims` decides on those of other sources. An ECS that no
    method can map is ignored: the source address decides, as if there were no ECS.
    `own_node` and `own_addresses` (packed) are this server's.
    """

    def __init__(
        self,
        state: "ClusterState",
        methods: Sequence[Method],
        trust: Container[bytes] = (),
        own_node: str = "",
        own_addresses: frozenset[bytes] = frozenset(),
    ) -> None:
        self.methods = tuple(methods)
        self._state = state
        self._methods = tuple((method.value, self._finder(method)) for method in methods)
        self._subnets_by_cidr = Method.PODCIDR in methods
        self._subnets_by_unverified_cidr = Method.PODCIDR_UNVERIFIED in methods
        self.claims = ClaimTrust(state, trust)
        self._own_node = own_node
        self._own_addresses = own_addresses
        self._known: ReadLRU[bytes, Location] = ReadLRU(MAX_KNOWN)  # by source address; valid for `_revision`
        self._revision = state.revision

    def locate(self, source: bytes, claim: Claim | None = None) -> Location:
        """The location of the client of a query from `source` (packed) with this claim; UNKNOWN if none is found.

        Order: node identity (EDNS 65518), ECS, the methods by source address, this server's own addresses.
        """
        if claim is not None:
            location = self._located_by_claim(source, claim)
            if location is not None:
                return location
        # The methods take 2 us, this cache 0.1 us, for every answer under a policy. Any change of the state clears it.
        if self._revision != self._state.revision:
            self._known = ReadLRU(MAX_KNOWN)
            self._revision = self._state.revision
        return self._known.entries.get(source) or self._find(source)

    def node_name_by(self, method: Method, address: bytes) -> str:
        """The Node name of an address by one method alone, one of `methods` or not; "" if it has no result."""
        return self._finder(method)(address)

    def _located_by_claim(self, source: bytes, claim: Claim) -> Location | None:
        """The location by the node identity, else by the ECS, if this source may make that claim; None: by neither."""
        if claim.node_name is None and claim.subnet is None:
            return None
        trusted = self.claims.trusts(source)
        node_name = claim.node_name
        if node_name is not None and self._is_known(node_name) and self.claims.may_name(source, node_name):
            return Location(node_name, self._state.node(node_name), "identity")
        if claim.subnet is None or not trusted:
            return None
        address, prefix_length = claim.subnet
        node_name = self._node_name_of_subnet(address, prefix_length)
        return Location(node_name, self._state.node(node_name), "ecs", prefix_length) if node_name else None

    def _find(self, source: bytes) -> Location:
        location = self._known[source] = self._located_by_methods(source)
        return location

    def _located_by_methods(self, source: bytes) -> Location:
        for method, node_name_of in self._methods:
            node_name = node_name_of(source)
            if node_name:
                return Location(node_name, self._state.node(node_name), method)
        return self._own_location(source)

    def _is_known(self, node_name: str) -> bool:
        """Whether a Node has this name, or a Pod or an endpoint has it as its Node's name (the Node may be deleted)."""
        return self._state.node(node_name) is not None or self._state.nodes.has_pods_on(node_name)

    def _node_name_of_subnet(self, address: bytes, prefix_length: int) -> str:
        """The Node name for an ECS subnet, "" if none is found.

        A full address goes through the methods. A shorter prefix must lie in the pod CIDR of one Node. Pod CIDRs count
        with the method `podcidr` if it is proven that Pods get their addresses from them, with `podcidr-unverified`
        always, and else not at all.
        """
        if prefix_length == len(address) * 8:
            names = (node_name_of(address) for _, node_name_of in self._methods)
            return next(filter(None, names), "")
        nodes = self._state.nodes
        if self._subnets_by_unverified_cidr or (self._subnets_by_cidr and nodes.pod_cidrs_verified):
            return _name(nodes.with_pod_subnet(address, prefix_length))
        return ""

    def _own_location(self, source: bytes) -> Location:
        """This server's own Node for loopback and its own addresses, else UNKNOWN.

        After the methods, because in tests and demonstrations on one machine a Pod may have an address 127.x.y.z.
        """
        if self._own_node and (source in self._own_addresses or _is_loopback(source)):
            return Location(self._own_node, self._state.node(self._own_node), "own")
        return UNKNOWN

    def _finder(self, method: Method) -> Callable[[bytes], str]:
        """The function that maps a packed address to a Node name by one method; it returns "" if that has no result."""
        match method:
            case Method.NODES:
                return lambda address: _name(self._state.nodes.with_address(address))
            case Method.PODCIDR:
                return self._by_verified_pod_cidr
            case Method.SLICES:
                return self._by_slices
            case Method.PODS:
                return lambda address: node_of_pods(self._state.pods_with_address(address))
            case Method.NODELOCATOR:
                return lambda address: node_of_locators(self._state, "NodeLocator", address)
            case Method.PODLOCATOR:
                return lambda address: node_of_locators(self._state, "PodLocator", address)
            case Method.PODCIDR_UNVERIFIED:
                return lambda address: _name(self._state.nodes.with_pod_cidr(address))

    def _by_verified_pod_cidr(self, address: bytes) -> str:
        """The name of the Node whose pod CIDR holds the address; "" for none.

        With the proof that Pods get their addresses from pod CIDRs (`pod_cidrs_verified`) that is the Node, unless Pods
        have this address and all of them are on other Nodes. Without the proof only the first two addresses of a pod
        CIDR count, one of which is that of the Node's bridge: if Pods of that Node are known to be in the CIDR, and the
        state has all Pods and none with the address.
        """
        state, nodes = self._state, self._state.nodes
        pods = state.pods_with_address(address)
        if nodes.pod_cidrs_verified:
            name = _name(nodes.with_pod_cidr(address))
            return name if not pods or any(pod.node_name == name for pod in pods) else ""
        return _name(nodes.with_pods_around(address)) if state.knows_all_pods and not pods else ""

    def _by_slices(self, address: bytes) -> str:
        return node_of_endpoints(self._state, address)


_WITHOUT_LOCATORS: Final = frozenset({Method.PODS, Method.PODCIDR_UNVERIFIED})  # locate each Pod without locators


def missing_locators(state: "ClusterState", methods: Collection[Method]) -> str:
    """The locators that clients need with these methods and that are not written yet, as a clause; "" for none.

    A server that replaces one which watched Pods would otherwise not locate clients that the other one still located.
    Of NodeLocators each known Node needs one; where Nodes are not watched, one is enough, as of PodLocators: how many
    there should be is not known. Of the two kinds one is enough.
    """
    if not _WITHOUT_LOCATORS.isdisjoint(methods):
        return ""
    locators = state.locators
    if Method.PODLOCATOR in methods:
        if locators.pod_locators:
            return ""
        if Method.NODELOCATOR not in methods:
            return "PodLocators: there is none"
    if Method.NODELOCATOR not in methods:
        return ""
    nodes = state.nodes.by_name
    if not nodes:
        return "" if locators.node_locators else "NodeLocators: there is none"
    without = sum(("", name) not in locators.node_locators for name in nodes)
    return f"NodeLocators: {without} of {len(nodes)} Nodes have none" if without else ""


def _name(node: Node | None) -> str:
    return "" if node is None else node.name


def _is_loopback(address: bytes) -> bool:
    return address[0] == _IPV4_LOOPBACK if len(address) == 4 else address == _IPV6_LOOPBACK
