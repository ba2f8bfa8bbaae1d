"""The Nodes of a cluster, grouped by the values of the labels that a policy names.

`select` gives clients of one group the same endpoints, unless it uses the name of the Node. Most Services of a cluster
share a few lists of keys, so that each grouping is made once and kept.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, Node
from topodns.memory.bounded import LRUCache

MAX_GROUPINGS: Final = 32  # kept; each has a reference per Node
STEP: Final = 250  # Nodes grouped in one step, about 0.2 ms

_Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes with the same values of some labels, and all with labels or all without."""

    nodes: tuple[Node, ...]  # at least one
    topology_zone: str  # label topology.kubernetes.io/zone; "" for none


class NodeGrouping:
    """The groups by one set of labels, which never has kubernetes.io/hostname: that value is usually unique."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self._labels = labels
        self._members: dict[_Values, list[Node]] = {}
        self._groups: dict[_Values, NodeGroup] = {}

    @property
    def groups(self) -> Mapping[_Values, NodeGroup]:
        """The groups by their values, once `add` had all Nodes."""
        if not self._groups:
            self._groups = {
                values: NodeGroup(tuple(nodes), nodes[0].labels.get(ZONE_LABEL, ""))
                for values, nodes in self._members.items()
            }
        return self._groups

    def add(self, node: Node) -> None:
        self._members.setdefault(self.values(node), []).append(node)

    def has(self, label: str) -> bool:
        """Whether any Node has this label, one of those that the groups are made by."""
        at = 1 + self._labels.index(label)
        return any(values[at] is not None for values in self._members)

    def values(self, node: Node) -> _Values:
        """The key of this Node's group: "" if it has labels, else None; then its value of each label, None for none."""
        labels = node.labels
        return "" if labels else None, *map(labels.get, self._labels)


class NodeGroups:
    """The groupings of one set of Nodes, which is taken when this is made, as are the Nodes by hostname."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = dict(nodes)
        self._groupings: LRUCache[tuple[str, ...], NodeGrouping] = LRUCache(MAX_GROUPINGS)
        self._by_other_hostname: dict[str, list[str]] | None = None  # names of Nodes whose hostname is another

    def grouping_steps(self, labels: frozenset[str]) -> Iterator[None]:
        """Make the grouping by these labels and the zone, if it is not kept, in small steps; then `grouping` has it."""
        wanted = _wanted(labels)
        if wanted in self._groupings:
            return
        grouping = NodeGrouping(wanted)
        for at, node in enumerate(self.nodes.values(), 1):
            grouping.add(node)
            if at % STEP == 0:
                yield
        self._groupings[wanted] = grouping

    def grouping(self, labels: frozenset[str]) -> NodeGrouping:
        """The groups by these labels and the zone."""
        for _ in self.grouping_steps(labels):
            pass
        return self._groupings[_wanted(labels)]

    def with_hostnames(self, values: Collection[str]) -> set[str]:
        """The names of the Nodes whose label kubernetes.io/hostname has one of these values, and maybe a few others.

        Without the label its value is the name.
        """
        if self._by_other_hostname is None:
            self._by_other_hostname = {}
            for node in self.nodes.values():
                value = node.labels.get(HOSTNAME_LABEL, node.name)
                if value != node.name:
                    self._by_other_hostname.setdefault(value, []).append(node.name)
        others = (self._by_other_hostname[value] for value in self._by_other_hostname.keys() & values)
        return set(values).union(*others)


def _wanted(labels: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted((labels | {ZONE_LABEL}) - {HOSTNAME_LABEL}))
