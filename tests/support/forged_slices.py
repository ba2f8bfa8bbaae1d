"""States of two nodes n1 and n2, as from an API server, and EndpointSlices that claim a Pod of n1 for n2."""

from collections.abc import Sequence
from typing import Final

from tests.support.model_builders import endpoint, endpoint_slice, listed_state, node
from topodns.cluster.model import ClusterObject, Endpoint, Kind, Upserted
from topodns.cluster.state import ClusterState

VICTIM: Final = "10.1.1.9"  # in the podCIDR of n1
N1: Final = node("n1", addresses=["192.0.2.1"], pod_cidrs=["10.1.1.0/24"])
N2: Final = node("n2", addresses=["192.0.2.2"], pod_cidrs=["10.1.2.0/24"])
KINDS: Final[Sequence[Kind]] = ("Namespace", "Node", "Service", "EndpointSlice", "Pod")
GENUINE: Final = endpoint_slice("web", endpoint(VICTIM, "n1"), namespace="apps")


def api_state(*objects: ClusterObject, pods: bool = True) -> ClusterState:
    """A state with both nodes and these objects, with or without Pods watched."""
    state = listed_state(KINDS if pods else KINDS[:-1], all_pods=True)
    for each in (N1, N2, *objects):
        state.apply(Upserted(each), 0)
    return state


def forged(*endpoints: Endpoint, namespace: str = "evil", name: str = "x") -> ClusterObject:
    """A slice of another namespace, usually with an endpoint that has the address VICTIM on n2."""
    return endpoint_slice(name, *endpoints, namespace=namespace)
