"""Decides whether Node.spec.podCIDRs may locate clients: proof that the CNI plugin assigns Pod addresses from them.

Some plugins ignore podCIDRs that are set (Calico's own IPAM, Cilium's cluster-pool, those of cloud VPCs). The proof is
made of observations: each is an address, the Node of a Pod with it, and the namespace of the object it comes from. An
observation agrees if the address lies in a pod CIDR of that Node, and contradicts if it does not. The rule is in
docs/reference/topology.md.
"""

from collections.abc import Callable, Iterator, Set
from typing import Final

from topodns.cluster.model import Placement

MANY: Final = 200  # agreeing observations; so many are proof, however few Nodes they are on
TOLERATED: Final = 1000  # observations; a namespace with one contradiction in so many still agrees
CHANCE: Final = 1_000_000  # fewer agreeing observations are proof if accident is less likely than one in so many
TOLERATED_NAMESPACES: Final = 100  # one contradicting namespace in so many, or a single one, is outvoted

Verdict = Callable[[bytes, str], bool | None]
"""(address, Node name) -> whether the address agrees with the Node's pod CIDRs; None: it is no evidence."""


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
