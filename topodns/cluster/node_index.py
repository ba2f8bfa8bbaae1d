"""Index of Nodes by their own addresses, their tunnel addresses and their pod CIDRs; and proof of the latter.

`ClusterState` maintains it, `topology.client_locator` reads it. An address that several Nodes have equally well is
of none: a wrong Node is worse than none.

Some CNI plugins ignore Node.spec.podCIDRs that are set (Calico's own IPAM, Cilium's cluster-pool, those of cloud VPCs).
So these locate clients only once it is proven that Pods get their addresses from them. The proof is made of
observations: each is an address, the Node of a Pod with it, and the namespace of the object it comes from. An
observation agrees if the address lies in a pod CIDR of that Node, and contradicts if it does not. The rule is in
docs/reference/topology.md.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from topodns.cluster.model import Node, Placement, Pod
from topodns.dependency import EVERYTHING, Fact, address_facts, node_fact

GATEWAYS: Final = 2  # addresses at the start of a pod CIDR that belong to the Node: flannel's tunnel end, the bridge
MANY: Final = 200  # agreeing observations; so many are proof, however few Nodes they are on
TOLERATED: Final = 1000  # observations; a namespace with one contradiction in so many still agrees
CHANCE: Final = 1_000_000  # fewer agreeing observations are proof if accident is less likely than one in so many
TOLERATED_NAMESPACES: Final = 100  # one contradicting namespace in so many, or a single one, is outvoted

Verdict = Callable[[bytes, str], bool | None]
"""(address, Node name) -> whether the address agrees with the Node's pod CIDRs; None: it is no evidence."""


class CidrTable:
    """CIDRs and their owners (names), found by longest prefix.

    A dictionary per prefix length, of which a cluster has one or two per address family. Networks are stored as
    integers without their host bits, so host bits set by mistake have no effect. A CIDR with several owners counts as
    without owner, and still hides the shorter ones around it.
    """

    def __init__(self) -> None:
        # By address size in octets: (number of host bits, network without them -> owners), fewest host bits first.
        self._tables: dict[int, list[tuple[int, dict[int, tuple[str, ...]]]]] = {4: [], 16: []}

    def owner(self, address: bytes) -> str:
        """The owner of the longest CIDR around an address; "" if there is none, or several."""
        owners = self.owners(address)
        return owners[0] if len(owners) == 1 else ""

    def owners(self, address: bytes) -> tuple[str, ...]:
        """All owners of the longest CIDR around an address."""
        number = int.from_bytes(address, "big")
        for host_bits, networks in self._tables[len(address)]:
            owners = networks.get(number >> host_bits)
            if owners is not None:
                return owners
        return ()

    def start_owner(self, address: bytes, size: int) -> str:
        """As `owner`, but "" unless the address is among the first `size` addresses of the longest CIDR around it."""
        number = int.from_bytes(address, "big")
        for host_bits, networks in self._tables[len(address)]:
            if number >> host_bits in networks:
                return self.owner(address) if number & ((1 << host_bits) - 1) < size else ""
        return ""

    def subnet_owner(self, network: bytes, prefix_length: int) -> str:
        """The owner of all addresses of this network; "" if none, several, or a CIDR inside has another owner."""
        bits, prefix = _split(network, prefix_length)
        for host_bits, networks in self._tables[len(network)]:
            owners = networks.get(prefix >> (host_bits - bits)) if host_bits >= bits else None
            if owners is not None:
                whole = len(owners) == 1 and self._inside(network, prefix_length) <= {owners[0]}
                return owners[0] if whole else ""
        return ""

    def covers(self, network: bytes, prefix_length: int, besides: str = "") -> bool:
        """Whether this network equals or lies in a CIDR with an owner other than `besides`."""
        bits, prefix = _split(network, prefix_length)
        tables = self._tables[len(network)]
        around = (networks.get(prefix >> (host_bits - bits), ()) for host_bits, networks in tables if host_bits >= bits)
        return any(owner != besides for owners in around for owner in owners)

    def add(self, network: bytes, prefix_length: int, name: str) -> None:
        """Add `name` to the owners of this CIDR."""
        host_bits, prefix = _split(network, prefix_length)
        networks = self._networks(len(network), host_bits)
        networks[prefix] = (*_without(networks.get(prefix, ()), name), name)

    def remove(self, network: bytes, prefix_length: int, name: str) -> None:
        """Remove `name` from the owners of this CIDR; no effect if it is none."""
        host_bits, prefix = _split(network, prefix_length)
        networks = self._networks(len(network), host_bits)
        remaining = _without(networks.pop(prefix, ()), name)
        if remaining:
            networks[prefix] = remaining
        elif not networks:
            self._tables[len(network)].remove((host_bits, networks))

    def shared(self) -> Iterator[tuple[bytes, int, tuple[str, ...]]]:
        """(network, prefix length, owners) of each CIDR with several owners."""
        for size, tables in self._tables.items():
            for host_bits, networks in tables:
                for prefix, owners in [each for each in networks.items() if len(each[1]) > 1]:
                    yield (prefix << host_bits).to_bytes(size, "big"), size * 8 - host_bits, owners

    def _inside(self, network: bytes, prefix_length: int) -> set[str]:
        """The owners of the longer CIDRs inside a network. A linear search: few clusters nest pod CIDRs."""
        bits, prefix = _split(network, prefix_length)
        return {
            owner
            for host_bits, networks in self._tables[len(network)]
            if host_bits < bits
            for inner, owners in networks.items()
            if inner >> (bits - host_bits) == prefix
            for owner in owners
        }

    def _networks(self, size: int, host_bits: int) -> dict[int, tuple[str, ...]]:
        """The dictionary of one prefix length, created on first use."""
        tables = self._tables[size]
        for found, networks in tables:
            if found == host_bits:
                return networks
        networks = {}
        tables.append((host_bits, networks))
        tables.sort(key=lambda table: table[0])
        return networks


class PodCidrProof:
    """The observations of one source: Pods, or endpoints of slices. `verdict` judges each by the current CIDRs.

    Call `retract` for a Node before a change of its verdicts; the next `holds` counts the Node again. Every other
    change costs constant time, independent of the number of observations.
    """

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict
        # Node name -> address -> namespace of the one object with it, or (several) number of objects per namespace.
        self._observed: dict[str, dict[bytes, str | dict[str, int]]] = {}
        self._retracted: set[str] = set()  # Nodes that are not counted at present
        self._nodes: dict[str, dict[str, int]] = {}  # namespace -> Node name -> agreeing observations; no zeros
        self._by_namespace: dict[str, tuple[int, int]] = {}  # agreeing and contradicting observations
        self._agreeing = 0
        self._contradicting: set[str] = set()  # namespaces

    def on_node(self, name: str) -> Set[bytes]:
        """The packed addresses observed on the Node of this name; empty if there are none."""
        return self._observed.get(name, {}).keys()

    def move(self, old: Set[Placement], new: Set[Placement], namespace: str) -> None:
        """An object of this namespace was at the placements `old` (none: it is new) and is at `new` (none: removed)."""
        for address, node_name in old - new:
            self._observe(address, node_name, namespace, -1)
        for address, node_name in new - old:
            self._observe(address, node_name, namespace, 1)

    def retract(self, name: str) -> None:
        """Subtract the observations on a Node from the counts, before their verdicts change."""
        if name not in self._retracted:
            for address, namespace in self._on(name):
                self._count(address, name, namespace, -1)
            self._retracted.add(name)

    def retract_all(self) -> None:
        """Subtract all observations from the counts, before verdicts on any Node change."""
        for name in list(self._observed):
            self.retract(name)

    def holds(self, nodes: int) -> bool | None:
        """Whether pod CIDRs are proven in a cluster in which `nodes` Nodes have one; None without any observation.

        Two conditions. By namespace: each contradicts if more than one in 1,000 of its observations does, else it
        agrees. None contradicts, or at least two agree and only one, or at most one in 100, contradicts. By number: the
        agreeing namespaces have 200 agreeing observations, or agreeing ones on so many Nodes that accident is excluded:
        an address from the same range but assigned regardless of the CIDRs lies in the CIDR of its Node with a
        probability of one in `nodes`. A Node counts once, since its Pods may all have addresses of one block. With
        `nodes` 1 a single agreeing observation is proof.
        """
        if not self._observed:
            return None
        for name in self._retracted:
            for address, namespace in self._on(name):
                self._count(address, name, namespace, 1)
        self._retracted.clear()
        outvoted = len(self._contradicting)
        voting = len(self._by_namespace)
        if outvoted and (outvoted > max(1, voting // TOLERATED_NAMESPACES) or voting - outvoted < 2):
            return False
        agreeing = self._agreeing - sum(self._by_namespace[name][0] for name in self._contradicting)
        if agreeing >= MANY:
            return True
        if not agreeing:
            return False
        # A union of fewer than MANY names: each has one of the agreeing observations counted above.
        on = set().union(*(on for name, on in self._nodes.items() if name not in self._contradicting))
        return nodes == 1 or nodes ** min(len(on), 20) > CHANCE

    def _observe(self, address: bytes, node_name: str, namespace: str, count: int) -> None:
        """An object of this namespace with this address on this Node was added (count 1) or removed (-1)."""
        addresses = self._observed.setdefault(node_name, {})
        held = addresses.pop(address, None)
        if held is None and count == 1:  # nearly always, in a list
            addresses[address] = namespace
            if node_name not in self._retracted:
                self._count(address, node_name, namespace, 1)
            return
        before = held if isinstance(held, dict) else {held: 1} if held is not None else {}
        after = {**before, namespace: before.get(namespace, 0) + count}
        if not after[namespace]:
            del after[namespace]
        if after:
            addresses[address] = next(iter(after)) if list(after.values()) == [1] else after
        elif not addresses:
            del self._observed[node_name]
        change = (namespace in after) - (namespace in before)
        if change and node_name not in self._retracted:
            self._count(address, node_name, namespace, change)

    def _on(self, name: str) -> Iterator[tuple[bytes, str]]:
        for address, held in self._observed.get(name, {}).items():
            for namespace in held if isinstance(held, dict) else (held,):
                yield address, namespace

    def _count(self, address: bytes, node_name: str, namespace: str, count: int) -> None:
        agrees = self._verdict(address, node_name)
        if agrees is None:
            return
        if agrees:
            self._agreeing += count
            self._count_node(namespace, node_name, count)
        agreeing, contradicting = self._by_namespace.pop(namespace, (0, 0))
        agreeing, contradicting = agreeing + count * agrees, contradicting + count * (not agrees)
        if agreeing or contradicting:
            self._by_namespace[namespace] = agreeing, contradicting
        if contradicting * TOLERATED > agreeing + contradicting:
            self._contradicting.add(namespace)
        else:
            self._contradicting.discard(namespace)

    def _count_node(self, namespace: str, node_name: str, count: int) -> None:
        on_nodes = self._nodes.setdefault(namespace, {})
        on_nodes[node_name] = on_nodes.get(node_name, 0) + count
        if not on_nodes[node_name]:
            del on_nodes[node_name]
        if not on_nodes:
            del self._nodes[namespace]


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

    def sharing(self, address: bytes) -> tuple[str, ...]:
        """The names of the Nodes of which `with_address` takes none, as several have the address equally well."""
        return () if self.with_address(address) is not None else self._names.get(address, ())

    def sharing_pod_cidr(self, address: bytes) -> tuple[str, ...]:
        """The names of the Nodes that all have the longest pod CIDR around this address; empty unless it is several."""
        owners = self._cidrs.owners(address)
        return owners if len(owners) > 1 else ()

    def all_sharing(self) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """Each address that is of no Node, as several Nodes have it equally well, and their names."""
        for address, names in [each for each in self._names.items() if len(each[1]) > 1]:
            if self.sharing(address):
                yield address, names

    def all_sharing_pod_cidrs(self) -> Iterator[tuple[bytes, int, tuple[str, ...]]]:
        """(network, prefix length, names) of each pod CIDR that several Nodes have."""
        return self._cidrs.shared()

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
        size = len(address)
        for network, _ in node.pod_cidrs:
            if len(network) == size:
                break
        else:
            if node.pod_cidrs:
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


def _split(network: bytes, prefix_length: int) -> tuple[int, int]:
    """The number of a network's host bits, and the network without them, as an integer."""
    host_bits = len(network) * 8 - prefix_length
    return host_bits, int.from_bytes(network, "big") >> host_bits


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(other for other in names if other != name)
