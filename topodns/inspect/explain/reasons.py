"""The sentences of an explanation: the reason of the answer, and advice for the operator."""

from typing import Final

from topodns.cluster.model import Kind
from topodns.dns.message import Query
from topodns.dns.rrtype import Rcode
from topodns.inspect.explain.name_errors import name_error_text
from topodns.kube.manifests.source import ManifestSource
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.query.plugin import Resolution
from topodns.topology.client_locator import Method
from topodns.topology.locator_claims import verdicts
from topodns.topology.select import Reason

_LOCATORS: Final = frozenset[Kind](("NodeLocator", "PodLocator"))

SENTENCES: Final = {
    Reason.UNFILTERED: "no topology keys: every ready endpoint",
    Reason.MATCHED: "the first key with a match wins, with all its matches",
    Reason.ANY: "no key matched before `*`: every ready endpoint",
    Reason.NO_MATCH: "no endpoint shares any of the keys with the client's node: NODATA for this client",
    Reason.NO_ENDPOINTS: "no ready endpoint of this address family: there was nothing to choose from",
    Reason.UNKNOWN_CLIENT: "the client's node is unknown, and the last key is not `*`: NODATA",
    Reason.UNKNOWN_CLIENT_ALL: "the client's node is unknown: every ready endpoint",
    Reason.INVALID: "the topology keys are invalid and ignored: every ready endpoint",
    Reason.DENIED: "the topology keys are invalid (on_invalid deny): NODATA",
    Reason.NOT_PERMITTED: "RBAC denies the objects that give the client's node or its labels: every ready endpoint",
    Reason.HINTED: "the EndpointSlices' hints were followed",
    Reason.RANKED: "srv_priority: every ready endpoint, its priority is the index of the first key it matches",
}


def answer_reason(cluster: Cluster, query: Query, resolution: Resolution) -> str:
    """Why the response is SERVFAIL or NXDOMAIN, or else why these endpoints were selected; "" if none were selected.

    SERVFAIL: the name may exist, but the cluster's state is not complete.
    """
    if resolution.response.rcode == Rcode.SERVFAIL:
        if cluster.state.synced and resolution.response.ede is not None:
            return resolution.response.ede.text
        waiting = f": waiting for {', '.join(cluster.waiting_for())}" if not cluster.state.synced else ""
        return f"the state of the cluster is not complete{waiting}"
    if resolution.response.rcode == Rcode.NXDOMAIN:
        return missing_object(cluster, query)
    return SENTENCES[resolution.selection.reason] if resolution.selection is not None else ""


def missing_object(cluster: Cluster, query: Query) -> str:
    """Why this name does not exist, as a clause: a missing object, or an option or rule that leaves the name out.

    Only for names answered with NXDOMAIN, or that `fallthrough` passes on in its place.
    """
    return name_error_text(KubernetesZone(cluster.kubernetes, None, cluster.state, None), query)


def unknown_node(cluster: Cluster, name: str) -> str:
    """Why no Node of this name is known; "" if one is. Either there is none, or Nodes cannot be read."""
    if cluster.state.node(name) is not None:
        return ""
    if "Node" in cluster.state.known:
        return f"no Node is named {name!r}"
    if "Node" not in cluster.state.needed:
        return f"no NodeLocator has labels of a Node {name!r}"
    return f"Nodes cannot be read, so that no node is known: {_unread(cluster, 'Node')}"


def _unread(cluster: Cluster, kind: Kind) -> str:
    source = cluster.source
    if isinstance(source, ManifestSource):
        return f"manifest files that cannot be read: {source.files_bad}"
    return next((progress.describe() for progress in source.progress if progress.resource.kind == kind), kind)


def _locator_problem(cluster: Cluster, address: bytes) -> str:
    """Why the locators that `locate` has do not locate this address, as far as there is a problem to mend; else ""."""
    kinds = _LOCATORS & (cluster.topology.placing_kinds if cluster.topology is not None else frozenset())
    if not kinds:
        return ""
    claims = cluster.state.locators.claims(address)
    for verdict in verdicts(cluster.state, address, claims):
        if verdict.claim.kind in kinds and (sentence := verdict.sentence(address)):
            return sentence
    if isinstance(cluster.source, ManifestSource):
        return ""
    absent = (each for each in cluster.source.progress if each.resource.kind in kinds and each.trouble is not None)
    return "; ".join(f"topology reads no {each.describe()}" for each in absent)


def operator_hint(cluster: Cluster, unlocated: bytes | None) -> str:
    """Advice for the operator, "" for none.

    `unlocated`: the packed address of a client without a known Node; None if its Node is known or was given.
    """
    state = cluster.state
    if cluster.topology is None:
        return "the server block has no `topology`: every client gets the same answer"
    if lacking := "; ".join(cluster.lacks()):
        return f"topology lacks {lacking}"
    if unlocated is None:
        return ""
    if problem := _locator_problem(cluster, unlocated):
        return problem
    node = state.nodes.with_pod_cidr(unlocated)
    if node is None:
        return ""
    if state.nodes.pod_cidrs_verified:
        return f"the address is in the podCIDR of {node.name}; `locate` can have podcidr"
    unproven = "but nothing has proven that the network plugin goes by podCIDRs"
    by_pods = Method.PODS in cluster.topology.locate
    unseen, others = ("no Pod has it, and ", "") if by_pods else ("", " or pods")
    return (
        f"the address is in the podCIDR of {node.name}, {unproven}; "
        f"{unseen}`locate` can have podcidr-unverified{others}"
    )
