"""The sentences of an explanation: the reason of the answer, which object of the cluster does not exist or which option
leaves it out for NXDOMAIN, and advice for the operator.
"""

from ipaddress import ip_address
from typing import Final

from topodns.cluster.model import Kind, ObjectKey
from topodns.dns.message import Query
from topodns.dns.name import name_text
from topodns.dns.rrtype import Rcode
from topodns.kube.manifests.source import ManifestSource
from topodns.plugins.kubernetes.answer import answer, name_of
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.parse import NamespaceNode, PodName, ServiceName, ZonalName
from topodns.plugins.kubernetes.pods import pod_address
from topodns.plugins.kubernetes.question import Missing, NameOrAddress, question_of
from topodns.plugins.kubernetes.zone import KubernetesZone, Origin
from topodns.query.plugin import Client, Resolution
from topodns.topology.client_locator import Method
from topodns.topology.locator_claims import verdicts
from topodns.topology.select import Reason

_ANY_CLIENT: Final = Client(bytes(4), 0, "tcp")  # whether a name exists depends on no client
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


def name_error_text(kubernetes: KubernetesZone, query: Query) -> str:
    """One clause, without a final dot, on why the name of this query does not exist; "" if it does.

    The name is under an origin of the directive.
    """
    origin = kubernetes.origins.match(query.qname)
    assert origin is not None
    question = question_of(query, _ANY_CLIENT, origin)
    name = name_of(kubernetes, question)
    missing = answer(kubernetes, name, question).missing
    return "" if missing is None else _missing_text(kubernetes, origin, name, missing)


def _missing_text(kubernetes: KubernetesZone, origin: Origin, name: NameOrAddress, missing: Missing) -> str:
    settings = kubernetes.settings
    noendpoints = " (`noendpoints` is set)" if settings.noendpoints else ""
    selected = " with the labels of `labels`" if settings.labels is not None else ""
    if isinstance(name, bytes):
        served = " in the namespaces that `namespaces` lists" if settings.namespaces else ""
        return f"no Service and no ready endpoint{served} has the address {ip_address(name)}{noendpoints}"
    if missing is Missing.PODS:
        return "names of Pods do not exist with `pods disabled`"
    if missing is Missing.NAMESPACE and isinstance(name, (ServiceName, ZonalName, PodName, NamespaceNode)):
        return _namespace_text(kubernetes, name.namespace)
    if isinstance(name, PodName):
        if missing is Missing.POD_ADDRESS:
            return f"{name.label!r} is not an IP address with dashes"
        address = ip_address(pod_address(name.label) or b"")
        return f"no Pod in namespace {name.namespace!r}{selected} has the address {address}"
    if isinstance(name, (ServiceName, ZonalName)):
        kind = "ServiceImport" if origin.multicluster else "Service"
        if missing is Missing.SERVICE:
            return f"no {kind} {name.service!r} in namespace {name.namespace!r}{selected}"
        lacking = _lacking(kubernetes, origin, name, missing)
        return f"{kind} {name.service!r} in namespace {name.namespace!r} {lacking}"
    if origin.reverse:
        return "the name is not the reverse name of an address"
    return f"not a name of the Kubernetes DNS schema, such as SERVICE.NAMESPACE.svc.{name_text(origin.name)}"


def _namespace_text(kubernetes: KubernetesZone, namespace: str) -> str:
    if kubernetes.settings.namespaces and namespace not in kubernetes.settings.namespaces:
        return f"`namespaces` does not list namespace {namespace!r}"
    if ("", namespace) not in kubernetes.state.namespaces:
        return f"no namespace {namespace!r}"
    return f"namespace {namespace!r} does not have the labels of `namespace_labels`"


def _lacking(kubernetes: KubernetesZone, origin: Origin, name: ServiceName | ZonalName, missing: Missing) -> str:
    """Why this name of an existing Service does not exist, as the predicate of a sentence about the Service."""
    service = kubernetes.state.service(ObjectKey(name.namespace, name.service), origin.multicluster)
    headless = service is not None and service.headless
    noendpoints = " (`noendpoints` is set)" if kubernetes.settings.noendpoints else ""
    if missing is Missing.EXTERNAL_NAME and service is not None:
        return f"has an externalName that is not a DNS name: {service.external_name!r}"
    if missing is Missing.BELOW_EXTERNAL_NAME:
        return "is of type ExternalName: no names exist below it"
    if isinstance(name, ZonalName):
        return "is not headless: it has no zone-scoped names"
    if missing is Missing.READY and headless:
        return f"is headless and has no ready endpoint{noendpoints}"
    if missing is Missing.READY:
        return f"has no ready endpoint, and `ignore empty_service` is set{noendpoints}"
    if missing is Missing.PORT:
        return f"has no {'ready endpoint with a ' if headless else ''}{_port_text(name)}"
    if service is not None and service.imported and not name.cluster:  # KEP-1645
        expected = f"{name.endpoint}.CLUSTER.{name.service}"
        return f"is imported: names of its endpoints have the cluster's id before the Service, as in {expected!r}"
    cluster = f" of cluster {name.cluster!r}" if name.cluster else ""
    return f"has no ready endpoint{cluster} named {name.endpoint!r}{noendpoints}"


def _port_text(name: ServiceName) -> str:
    named = f" named {name.port!r}" if name.port else ""
    return f"port{named}" + (f" of protocol {name.protocol!r}" if name.protocol else "")


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
