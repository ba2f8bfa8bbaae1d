"""EndpointSlice hints: the endpoints for a client by its Node's name and zone, as kube-proxy chooses them.

The rule is that of CategorizeEndpoints in Kubernetes (KEP-2433 for zones, KEP-3015 for Nodes), for the ready endpoints
of one family:

1. Hints of a kind count only if every endpoint has one: a hint that is missing means that the EndpointSlice controller
   is still at work, or that zones have too few endpoints.
2. If hints for Nodes count, and some endpoint is hinted for the client's Node, the client gets the endpoints hinted for
   it.
3. Else, if hints for zones count, and some endpoint is hinted for the zone of the client's Node, it gets those.
4. Else it gets all endpoints: hints are a preference, and never leave a client without an answer.

Endpoints that are not ready, which are in a pool only with `terminating_fallback`, keep old hints. They have no effect.
"""

from topodns.cluster.endpoints import Group, Pool
from topodns.cluster.model import ZONE_LABEL, Node


def hinted(pool: Pool, node_name: str, node: Node | None) -> Group:
    """The endpoints of `pool` hinted for clients on a Node, or `pool.everyone`.

    `node`: the Node's object; None if there is none, and then only hints for the Node's name apply.
    """
    if not _ready(pool):
        return pool.everyone
    for_node = pool.hinted_for_node(node_name)
    if for_node is not None:
        return for_node
    topology_zone = node.labels.get(ZONE_LABEL) if node is not None else None
    for_zone = pool.hinted_for_zone(topology_zone) if topology_zone else None
    return pool.everyone if for_zone is None else for_zone


def goes_by_zone(pool: Pool, node_name: str) -> bool:
    """Whether `hinted` goes by the zone of this Node: by rule 3, or by rule 4 since none is hinted for its zone."""
    return _ready(pool) and pool.has_zone_hints and pool.hinted_for_node(node_name) is None


def _ready(pool: Pool) -> bool:
    """Whether the endpoints are ready; either all of them are, or none is."""
    return all(endpoint.ready for endpoint in pool.everyone.endpoints[:1])
