"""What the tests of findings share: states of some objects, the findings about them, and Nodes and Pods."""

from collections.abc import Iterable, Sequence

from tests.support.model_builders import listed, node, packed
from topodns.cluster.annotations import TOPOLOGY_KEYS, BadAnnotation
from topodns.cluster.findings.objects import policy_findings
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    ClusterObject,
    KeySource,
    Kind,
    MisannotatedPod,
    Upserted,
)
from topodns.cluster.state import ClusterState
from topodns.topology.keys import key_reader

SOURCES = (KeySource.ANNOTATION, KeySource.FIELD, KeySource.OPENYURT)


def findings(
    *objects: ClusterObject, ignored: bool = True, sources: Sequence[KeySource] = SOURCES
) -> list[tuple[str, str]]:
    """(kind, line) of each finding, sorted."""
    state = ClusterState(frozenset(), key_reader(sources))
    for each in objects:
        state.apply(Upserted(each), 0)
    return sorted((finding.kind, str(finding)) for finding in policy_findings(state, ignored) if finding is not None)


KINDS: Sequence[Kind] = ("Namespace", "Node", "Service", "EndpointSlice")


def state_of(*objects: ClusterObject, kinds: Iterable[Kind] = KINDS, of_files: bool = False) -> ClusterState:
    """A state that needs all KINDS, of which `kinds` are listed, and that has keys from annotations."""
    state = ClusterState(frozenset(KINDS), key_reader([KeySource.ANNOTATION]), all_pods=True, of_files=of_files)
    return listed(state, kinds, objects)


def misannotated(name: str, address: str, annotation: str = TOPOLOGY_KEYS) -> MisannotatedPod:
    return MisannotatedPod("default", name, (packed(address),), bad=(BadAnnotation(annotation, TOPOLOGY_KEYS),))


NODES = [node(f"n{at}", {ZONE_LABEL: "a", HOSTNAME_LABEL: f"n{at}"}) for at in range(3)]
