"""How many Nodes have each label: what a topology key can match."""

from collections import Counter
from typing import NamedTuple

from topodns.cluster.model import HOSTNAME_LABEL, Node
from topodns.dependency import Fact, label_fact


class AlikeValues(NamedTuple):
    """Two values of a label that differ in case, punctuation or spaces only, with Nodes that have them."""

    values: tuple[str, str]
    nodes: tuple[tuple[str, ...], tuple[str, ...]]  # the first two of each


class ComparedValues(NamedTuple):
    """What is wrong with the values of a label."""

    alike: tuple[AlikeValues, ...] = ()
    empty: tuple[str, ...] = ()  # the Nodes with the empty text as its value, in order


def hostname_of(node: Node) -> str:
    """The value of the label kubernetes.io/hostname, for which the Node's name stands in."""
    return node.labels.get(HOSTNAME_LABEL, node.name)


class NodeLabels:
    """The labels of the Nodes of one cluster. All count as having kubernetes.io/hostname: a Node's name stands in."""

    def __init__(self) -> None:
        self.nodes = 0
        self.revisions: Counter[str] = Counter()  # by label: grows with each Node that gets, changes or loses it
        self.other_hostnames: dict[str, set[str]] = {}  # Nodes by their hostname where that is not their name: few
        self.compared: dict[str, tuple[int, ComparedValues]] = {}  # with the revision: `cluster.findings.labels`
        self._counts: Counter[str] = Counter()  # no zeros
        self._names: tuple[str, ...] | None = None
        self._by_lower: dict[str, list[str]] | None = None  # `names` by their small letters

    def move(self, old: Node | None, new: Node | None) -> set[Fact]:
        """A Node was added (`old` None), changed, or removed (`new` None). Returns the dependencies touched."""
        self.nodes += (new is not None) - (old is not None)
        before, after = (each.labels if each is not None else {} for each in (old, new))
        if before == after and old is not None and new is not None:
            return set()
        self._counts.update(after.keys())
        self._counts.subtract(before.keys())
        for label in before.keys() - after.keys():
            if not self._counts[label]:
                del self._counts[label]
        self._names = self._by_lower = None
        self._move_hostname(old, new)
        changed = [label for label in before.keys() | after.keys() if before.get(label) != after.get(label)]
        self.revisions.update(changed)
        return set(map(label_fact, changed))

    def _move_hostname(self, old: Node | None, new: Node | None) -> None:
        for node in (old, new):
            if node is None or (value := hostname_of(node)) == node.name:
                continue
            names = self.other_hostnames.setdefault(value, set())
            if node is new:
                names.add(node.name)
                continue
            names.remove(node.name)
            if not names:
                del self.other_hostnames[value]

    def with_label(self, label: str) -> int:
        """The number of Nodes that have this label."""
        return self.nodes if label == HOSTNAME_LABEL else self._counts[label]

    @property
    def names(self) -> tuple[str, ...]:
        """All labels that Nodes have, in order."""
        if self._names is None:
            self._names = tuple(sorted(self._counts.keys() | {HOSTNAME_LABEL}))
        return self._names

    def in_another_case(self, label: str) -> str:
        """A label that Nodes have, and that differs from this one in case only; "" for none."""
        if self._by_lower is None:
            self._by_lower = {}
            for name in self.names:
                self._by_lower.setdefault(name.lower(), []).append(name)
        return next((each for each in self._by_lower.get(label.lower(), ()) if each != label), "")
