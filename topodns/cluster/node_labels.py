"""How many Nodes have each label: what a topology key can match."""

from collections import Counter

from topodns.cluster.model import HOSTNAME_LABEL, Node


class NodeLabels:
    """The labels of the Nodes of one cluster. All count as having kubernetes.io/hostname: a Node's name stands in."""

    def __init__(self) -> None:
        self.nodes = 0
        self._counts: Counter[str] = Counter()  # no zeros
        self._names: tuple[str, ...] | None = None

    def move(self, old: Node | None, new: Node | None) -> None:
        """A Node was added (`old` None), changed, or removed (`new` None)."""
        self.nodes += (new is not None) - (old is not None)
        before, after = (each.labels if each is not None else {} for each in (old, new))
        if before == after:
            return
        self._counts.update(after.keys())
        self._counts.subtract(before.keys())
        for label in before.keys() - after.keys():
            if not self._counts[label]:
                del self._counts[label]
        self._names = None

    def with_label(self, label: str) -> int:
        """The number of Nodes that have this label."""
        return self.nodes if label == HOSTNAME_LABEL else self._counts[label]

    @property
    def names(self) -> tuple[str, ...]:
        """All labels that Nodes have, in order."""
        if self._names is None:
            self._names = tuple(sorted(self._counts.keys() | {HOSTNAME_LABEL}))
        return self._names
