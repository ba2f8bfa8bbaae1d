"""All findings about the keys, annotations and objects of a cluster, and those of them about one Service."""

from topodns.cluster.findings.annotations import annotation_findings, noted, pod_findings
from topodns.cluster.findings.finding import CLUSTER, MAX_NAMED, Finding, Findings, Severity
from topodns.cluster.findings.key_labels import nodes_without, partial_keys
from topodns.cluster.findings.key_lists import key_findings, lacking
from topodns.cluster.findings.objects import object_findings
from topodns.cluster.model import ObjectKey, Policy
from topodns.cluster.node_labels import NodeLabels
from topodns.cluster.state import ClusterState


def policy_findings(state: ClusterState, ignored: bool) -> Findings:
    """The findings about key lists, annotations and objects, in no particular order; None after each Service with a
    list. A Service is taken as it was at the first step.

    `ignored` as of `key_findings`. Of labels that only some Nodes have there is a finding for each label, not for each
    Service.
    """
    partial: dict[str, list[ObjectKey]] = {}
    for key, policy in tuple(state.policies.items()):
        yield from key_findings(key, policy, state.governs(key), ignored, _labels_of(state))
        for label in partial_keys(policy, _labels_of(state)) if isinstance(policy, Policy) else ():
            partial.setdefault(label, []).append(key)
        yield None
    for label, services in partial.items():
        if without := nodes_without(label, state.all_nodes().values()):
            first, more = services[0], f" and {len(services) - 1} more" if len(services) > 1 else ""
            text = f"{lacking(label, without, state.node_labels)}; it is a topology key of {first}{more}"
            yield Finding(CLUSTER, "partial", text, Severity.INFO, len(without), tuple(without[:MAX_NAMED]))
        yield None
    yield from annotation_findings(state)
    yield from object_findings(state)


def service_findings(state: ClusterState, key: ObjectKey, ignored: bool) -> Findings:
    """The findings about the keys and annotations of one Service, in steps; `ignored` as of `key_findings`.

    Without labels that only some Nodes have, and without missing objects: an explanation names those of the client,
    of each endpoint and of the name.
    """
    yield from key_findings(key, state.policies.get(key), state.governs(key), ignored, _labels_of(state))
    yield from noted(key, state.notices.get(key, ()))
    for found in pod_findings(state):
        yield found if found is not None and found.service == key else None


def _labels_of(state: ClusterState) -> NodeLabels:
    """The labels of the Nodes once these are listed; before, of none."""
    return state.node_labels if state.synced else NodeLabels()
