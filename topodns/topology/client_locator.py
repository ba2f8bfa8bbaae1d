"""Where a client is: the node behind a query, by the first method that knows (docs/topology.md).

Only the node matters, never the pod. A wrong node is worse than none, so ambiguity is "unknown". Source addresses can
be forged inside a cluster: a location is a routing hint, and topology is no access control.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Final

from topodns.cluster.model import Node, Pod
from topodns.cluster.topology import Location

if TYPE_CHECKING:
    from topodns.cluster.state import ClusterState

UNKNOWN: Final = Location()
MAX_KNOWN: Final = 65_536  # clients whose locations are remembered

_IPV6_LOOPBACK: Final = bytes(15) + b"\x01"
_IPV4_LOOPBACK: Final = 127  # the first octet of 127.0.0.0/8


class Method(Enum):
    """Ways to find the node of an address, in the spelling of the Corefile's `locate`."""

    NODES = "nodes"
    PODCIDR = "podcidr"
    SLICES = "slices"
    PODS = "pods"
    PODCIDR_UNVERIFIED = "podcidr-unverified"  # for whoever knows that the CNI hands out Node.spec.podCIDRs


@dataclass(frozen=True, slots=True)
class Claim:
    """What a query says about its client; believed only from trusted sources."""

    node_name: str | None = None  # EDNS option 65518, decoded
    subnet: tuple[bytes, int] | None = None  # EDNS Client Subnet: packed address (4 or 16 octets), source prefix length


class Locator:
    """Finds clients in one cluster's state. `own_addresses` are this server's (its node is `own_node`).

    `trust` holds the sources whose claims are believed. An ECS that no method can map says nothing: what is next is
    the source address, as if there were no ECS.
    """

    def __init__(
        self,
        state: "ClusterState",
        methods: Sequence[Method],
        trust: Sequence[IPv4Network | IPv6Network] = (),
        own_node: str = "",
        own_addresses: frozenset[bytes] = frozenset(),
    ) -> None:
        self._state = state
        self._methods = tuple((method.value, self._finder(method)) for method in methods)
        self._subnets_by_cidr = Method.PODCIDR in methods
        self._subnets_by_unverified_cidr = Method.PODCIDR_UNVERIFIED in methods
        self._trust = tuple(_prefix(network) for network in trust)
        self._own_node = own_node
        self._own_addresses = own_addresses
        self._known: dict[bytes, Location] = {}  # as of `_revision`
        self._revision = state.revision

    def locate(self, source: bytes, claim: Claim | None = None) -> Location:
        """The location of a query that came from `source` (packed) with these claims."""
        if claim is not None:
            location = self._located_by_claim(source, claim)
            if location is not None:
                return location
        # Asking the methods takes 2 us, a memory of it 0.1 us, on the way of every answer that a policy chooses.
        if self._revision != self._state.revision:
            self._known, self._revision = {}, self._state.revision
        return self._known.get(source) or self._find(source)

    def trusts(self, source: bytes) -> bool:
        """Whether ECS from this source is believed. For any other, ECS is not enabled: neither read nor echoed.

        (RFC 7871 section 7.2.1: a server that has not enabled ECS ignores the option and sends none.)
        """
        number = int.from_bytes(source, "big")
        size = len(source)
        return any(size == of_size and number >> host_bits == prefix for of_size, host_bits, prefix in self._trust)

    def _located_by_claim(self, source: bytes, claim: Claim) -> Location | None:
        """The location that the claims give, of those that this source may make; None: as if nothing were claimed."""
        if claim.node_name is None and claim.subnet is None:
            return None
        trusted = self.trusts(source)
        node_name = claim.node_name
        if node_name is not None and self._is_known(node_name) and (trusted or self._may_name(source, node_name)):
            return Location(node_name, self._state.node(node_name), "identity")
        if claim.subnet is None or not trusted:
            return None
        address, prefix_length = claim.subnet
        node_name = self._node_name_of_subnet(address, prefix_length)
        return Location(node_name, self._state.node(node_name), "ecs", prefix_length) if node_name else None

    def _find(self, source: bytes) -> Location:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        location = self._known[source] = self._located_by_methods(source)
        return location

    def _located_by_methods(self, source: bytes) -> Location:
        for method, node_name_of in self._methods:
            node_name = node_name_of(source)
            if node_name:
                return Location(node_name, self._state.node(node_name), method)
        return self._own_location(source)

    def _is_known(self, node_name: str) -> bool:
        """Whether a Node has this name, or had it and its endpoints outlive it. Any other name says nothing."""
        return self._state.node(node_name) is not None or self._state.nodes.has_endpoints_on(node_name)

    def _may_name(self, source: bytes, node_name: str) -> bool:
        """Whether an untrusted source may say that its client is on this node.

        A node's address may name any node: it is a node cache, or a forwarder in its host network (so a hostNetwork
        pod can forge the claim). The first addresses of a pod CIDR may name only the CIDR's node: the kernel gives a
        node cache on the server's own node the bridge's address, which is in no Node object. No verification of pod
        CIDRs is asked for then, because the claim and the CIDR vouch for each other, and a small cluster has none.
        """
        nodes = self._state.nodes
        if nodes.with_address(source) is not None:
            return True
        gateway_of = nodes.with_pod_gateway(source)
        return gateway_of is not None and gateway_of.name == node_name

    def _node_name_of_subnet(self, address: bytes, prefix_length: int) -> str:
        """The node of a client in this subnet: of a whole address by the methods, of more by a pod CIDR around it."""
        if prefix_length == len(address) * 8:
            names = (node_name_of(address) for _, node_name_of in self._methods)
            return next(filter(None, names), "")
        nodes = self._state.nodes
        if self._subnets_by_unverified_cidr or (self._subnets_by_cidr and nodes.pod_cidrs_verified):
            return _name(nodes.with_pod_subnet(address, prefix_length))
        return ""

    def _own_location(self, source: bytes) -> Location:
        """Our own node, for loopback and our own addresses. Asked last: a pod may be told by a loopback address too.

        (As in tests and demonstrations on one machine, where every 127.x.y.z can be a client's source.)
        """
        if self._own_node and (source in self._own_addresses or _is_loopback(source)):
            return Location(self._own_node, self._state.node(self._own_node), "own")
        return UNKNOWN

    def _finder(self, method: Method) -> Callable[[bytes], str]:
        """The function that gives the node name of an address by one method, "" where it does not know."""
        match method:
            case Method.NODES:
                return lambda address: _name(self._state.nodes.with_address(address))
            case Method.PODCIDR:
                return self._by_verified_pod_cidr
            case Method.SLICES:
                return self._by_slices
            case Method.PODS:
                return lambda address: _node_of_pods(self._state.pods_with_address(address))
            case Method.PODCIDR_UNVERIFIED:
                return lambda address: _name(self._state.nodes.with_pod_cidr(address))

    def _by_verified_pod_cidr(self, address: bytes) -> str:
        nodes = self._state.nodes
        return _name(nodes.with_pod_cidr(address)) if nodes.pod_cidrs_verified else ""

    def _by_slices(self, address: bytes) -> str:
        endpoints = [endpoint for _, endpoint in self._state.endpoints_with_address(address) if endpoint.node_name]
        if not endpoints:
            return ""
        # A slice may still list the address's last pod when its next one is there already.
        staying = [endpoint for endpoint in endpoints if not endpoint.terminating]
        return _sole(endpoint.node_name for endpoint in staying or endpoints)


def _node_of_pods(pods: Sequence[Pod]) -> str:
    """The node of the pods that claim one address, hostNetwork ones sharing theirs; "" where they contradict.

    A terminating pod gives way to one that stays. Two that stay, on different nodes, cannot both be right; of several
    that all terminate, the one started last was given the address last.
    """
    if not pods:
        return ""
    staying = [pod for pod in pods if not pod.terminating]
    if staying:
        return _sole(pod.node_name for pod in staying)
    last_start = max(pod.started for pod in pods)
    return _sole(pod.node_name for pod in pods if pod.started == last_start)


def _sole(node_names: Iterable[str]) -> str:
    distinct = set(node_names)
    return distinct.pop() if len(distinct) == 1 else ""


def _name(node: Node | None) -> str:
    return "" if node is None else node.name


def _is_loopback(address: bytes) -> bool:
    return address[0] == _IPV4_LOOPBACK if len(address) == 4 else address == _IPV6_LOOPBACK


def _prefix(network: IPv4Network | IPv6Network) -> tuple[int, int, int]:
    """A network as its address's size in octets, its number of host bits, and its number without them."""
    host_bits = network.max_prefixlen - network.prefixlen
    return network.max_prefixlen // 8, host_bits, int(network.network_address) >> host_bits
