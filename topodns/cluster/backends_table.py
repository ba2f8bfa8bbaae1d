"""The Backends of each Service, built on first use after a change and kept until the next one."""

from collections.abc import Sequence
from typing import Final

from topodns.cluster.backends import Backends
from topodns.cluster.endpoints import NodeOf
from topodns.cluster.model import EndpointSlice, ObjectKey
from topodns.cluster.slice_members import SliceMembers
from topodns.cluster.slices import SliceOwner, SliceTable

_Part = tuple[bool, str]  # (imported, cluster id); "" is all clusters

WHOLE: Final[_Part] = (False, "")
IMPORTED: Final[_Part] = (True, "")


class BackendsTable:
    """The Backends of Services and ServiceImports, built from `slices`; the other arguments are those of Backends.

    The caller reports each change to `invalidate`, `invalidate_slice` or `discard_kept`. After a change of a slice the
    members of the Service's other slices are kept for the next `get`: it costs what the changed slice takes, and little
    for each other one. Their indexes have read the labels of Nodes, so a change of labels discards them too.
    """

    def __init__(self, slices: SliceTable, node: NodeOf, terminating_fallback: bool, pod_names: bool) -> None:
        self.built: dict[ObjectKey, dict[_Part, Backends]] = {}
        self._kept: dict[ObjectKey, dict[str, SliceMembers]] = {}  # by Service, which is not in `built`, and slice
        self._slices = slices
        self._node = node
        self._terminating_fallback = terminating_fallback
        self._pod_names = pod_names
        self._none = self._build(())

    def get(self, owner: SliceOwner, cluster_id: str = "") -> Backends:
        """The Backends of a Service or ServiceImport; with `cluster_id`, of that cluster's slices only (KEP-1645).

        `cluster_id` is lower-case, and compared with the ids of slices without regard to case (RFC 4343).
        Nothing is cached without slices: names that do not exist must take no memory.
        """
        part = (owner.imported, cluster_id)
        built = self.built.get(owner.key, {}).get(part)
        if built is not None:
            return built
        slices = self._slices.owned.counted(owner)
        if cluster_id:
            slices = tuple(one for one in slices if one.cluster_id.lower() == cluster_id)
        if not slices:
            return self._none
        built = self._build(slices, self._kept.pop(owner.key, None) if part == WHOLE else None)
        self.built.setdefault(owner.key, {})[part] = built
        return built

    def invalidate(self, key: ObjectKey) -> None:
        """The Service, its policy, or the labels of its endpoints' Nodes changed: discard its Backends and members."""
        self.built.pop(key, None)
        self._kept.pop(key, None)

    def invalidate_slice(self, key: ObjectKey, slice_name: str) -> None:
        """A slice of the Service was added, changed or removed: discard all but the members of its other slices."""
        parts = self.built.pop(key, None)
        if parts is not None and WHOLE in parts:
            self._kept[key] = {one.slice.name: one for one in parts[WHOLE].members}
        kept = self._kept.get(key)
        if kept is not None:
            kept.pop(slice_name, None)
            if not kept:
                del self._kept[key]

    def discard_kept(self) -> None:
        """The labels of a Node changed: discard the kept members of all Services; built Backends stay."""
        self._kept.clear()

    def _build(self, slices: Sequence[EndpointSlice], kept: dict[str, SliceMembers] | None = None) -> Backends:
        return Backends(slices, self._node, self._terminating_fallback, self._pod_names, kept, self._slices.sharers)
