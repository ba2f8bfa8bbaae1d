"""What the tests of findings share: the findings about some objects, and Nodes and Pods for them."""

from collections.abc import Sequence

from tests.support.model_builders import node, packed
from topodns.cluster.annotations import TOPOLOGY_KEYS, BadAnnotation
from topodns.cluster.findings.objects import policy_findings
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    ClusterObject,
    KeySource,
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


def misannotated(name: str, address: str, annotation: str = TOPOLOGY_KEYS) -> MisannotatedPod:
    return MisannotatedPod("default", name, (packed(address),), bad=(BadAnnotation(annotation, TOPOLOGY_KEYS),))


NODES = [node(f"n{at}", {ZONE_LABEL: "a", HOSTNAME_LABEL: f"n{at}"}) for at in range(3)]
