"""This cluster among those of its cluster set (KEP-1645), and the topology keys of ServiceImports.

A ServiceImport has endpoints of many clusters. The value of a topology key at one of them is

- of `cluster`, the cluster of its slice; the client's own value is this cluster, whether it has a Node or not;
- of topology.kubernetes.io/zone, the `zone` in its slice;
- of topology.kubernetes.io/region, the region that the Nodes of this cluster show for that zone, if they agree;
- of every other label, that of its Node, if it is of this cluster. Another cluster may have a Node of the same name.

Without a value nothing matches. So while the id of this cluster is unknown, neither `cluster` nor a label of Nodes
does. Specification: docs/reference/topology.md#serviceimports. The rule: `cluster.label_values.imported_label_of`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from topodns.cluster.model import (
    CLUSTER_KEY,
    NO_KEYS,
    REGION_LABEL,
    ZONE_LABEL,
    ClusterProperty,
    Endpoint,
    KeyReader,
    Node,
    ObjectKey,
    Service,
    ServiceKeys,
)


class ClusterSet:
    """The id of this cluster, in lower case, "" while it is unknown; and the keys of the ServiceImports that have any.

    `cluster_id`: the option of the Corefile; it wins over the ClusterProperty. Each change is reported by the keys of
    the ServiceImports that may be answered otherwise after it.
    """

    def __init__(self, read_keys: KeyReader | None = None, cluster_id: str = "") -> None:
        self.id = self._option = cluster_id.lower()
        self._read_keys = read_keys
        self.properties: dict[
            tuple[str, str], ClusterProperty
        ] = {}  # the caller changes it, then calls `take_property`
        self.keys: dict[ObjectKey, ServiceKeys] = {}  # of the ServiceImports with keys, a bound or notices
        self._regions: dict[str, Counter[str]] = {}  # by zone: how many Nodes are in each region; no zeros

    def take_import(self, key: ObjectKey, new: Service | None) -> Collection[ObjectKey]:
        """A ServiceImport came, changed or went (None)."""
        keys = self._read_keys.read(new) if new is not None and self._read_keys is not None else NO_KEYS
        if keys == NO_KEYS:
            self.keys.pop(key, None)
        else:
            self.keys[key] = keys
        return (key,)

    def take_property(self, new: ClusterProperty | None) -> Collection[ObjectKey]:
        """The ClusterProperty with this cluster's id came, changed or went (None)."""
        before, self.id = self.id, self._option or (new.value.lower() if new is not None else "")
        return self.keys if before != self.id else ()

    def take_node(
        self, before: Node | None, after: Node | None, is_built: Callable[[ObjectKey, str], bool]
    ) -> Collection[ObjectKey]:
        """A Node was added (`before` None), changed, or removed (`after` None).

        `is_built`: whether a ServiceImport has been answered, and has endpoints with this nodeName.
        """
        places = [_place(each) for each in (before, after)]
        regions = {topology_zone: self.region_of(topology_zone) for topology_zone, _ in places}
        for place, sign in zip(places, (-1, 1), strict=True):
            self._count(*place, sign)
        if any(self.region_of(topology_zone) != region for topology_zone, region in regions.items()):
            return self.keys
        node = after or before
        return [key for key in self.keys if node is not None and is_built(key, node.name)]

    def _count(self, topology_zone: str | None, region: str | None, sign: int) -> None:
        if topology_zone is None or region is None:
            return
        regions = self._regions.setdefault(topology_zone, Counter())
        regions[region] += sign
        if not regions[region]:
            del regions[region]
        if not regions:
            del self._regions[topology_zone]

    def region_of(self, topology_zone: str | None) -> str | None:
        """The region of a zone by the labels of this cluster's Nodes; None: they show none, or several."""
        regions = self._regions.get(topology_zone, ()) if topology_zone is not None else ()
        return next(iter(regions)) if len(regions) == 1 else None

    @property
    def regions_agree(self) -> bool:
        """Whether the Nodes of each zone show one region for it: what is in a zone then is in the zone's region."""
        return all(len(regions) == 1 for regions in self._regions.values())

    def has(self, endpoint: Endpoint) -> bool:
        """Whether an endpoint of a ServiceImport is of this cluster."""
        return bool(self.id) and endpoint.topology.get(CLUSTER_KEY) == self.id

    def labels_of_client(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        """The values of topology keys for a client on a Node of this cluster with these labels, {} without a Node."""
        others = {label: value for label, value in labels.items() if label != CLUSTER_KEY}
        return {**others, CLUSTER_KEY: self.id} if self.id else others


def _place(node: Node | None) -> tuple[str | None, str | None]:
    """(zone, region) by the labels of a Node."""
    return (node.labels.get(ZONE_LABEL), node.labels.get(REGION_LABEL)) if node is not None else (None, None)
