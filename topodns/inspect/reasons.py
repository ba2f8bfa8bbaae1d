"""The sentences of an explanation: the reason of the answer, which object of the cluster does not exist or which option
leaves it out for NXDOMAIN, and advice for the operator.
"""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from itertools import islice
from typing import Final

from topodns.cluster.decode.misspelt import nearest
from topodns.cluster.findings.objects import no_namespace, shared_address
from topodns.cluster.findings.slices import (
    SERVICE_LABEL,
    at_hand_steps,
    families_without_slice,
    no_slice,
    no_slice_of,
)
from topodns.cluster.model import EndpointPort, Kind, ObjectKey, Policy, Service, ServicePort
from topodns.cluster.unknown_names import nearest_steps
from topodns.dns.message import Query
from topodns.dns.name import Name, is_reverse, name_text, name_wire
from topodns.dns.rrtype import Rcode, RRClass, RRType, type_text
from topodns.inspect.model import Steps
from topodns.inspect.text import NAMED, named, offer
from topodns.kube.manifests.source import ManifestSource
from topodns.plugins.kubernetes.answer import answer, name_of, question_of
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.plugins.kubernetes.endpoints import any_ready
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.other_names import pod_address
from topodns.plugins.kubernetes.question import (
    ALL,
    NEAR,
    Fixed,
    Missing,
    NameOrAddress,
    NamespaceNode,
    PodName,
    ServiceName,
    ZonalName,
    ZoneQuestion,
)
from topodns.plugins.kubernetes.zone import KubernetesZone, Origin
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import Client, Resolution
from topodns.topology.claims import verdicts
from topodns.topology.client_locator import Method
from topodns.topology.select import MISSES, Reason, Selection, UnknownClient

_ANY_CLIENT: Final = Client(bytes(4), 0, "udp", limit=512)  # whether a name exists depends on no client
_TYPES: Final = (RRType.A, RRType.AAAA, RRType.CNAME, RRType.SRV, RRType.PTR, RRType.TXT, RRType.NS, RRType.SOA)
_FAMILIES: Final = {RRType.A: "IPv4", RRType.AAAA: "IPv6"}
_OF_THE_SERVER: Final = {Fixed.APEX: (RRType.SOA, RRType.NS), Fixed.NS_DNS: (RRType.A, RRType.AAAA)}
_PORTS: Final = 50  # of a Service that are looked at for one that may be meant
_OF_SERVICE: Final = 3  # labels of SERVICE.NAMESPACE.svc
_LOCATORS: Final = frozenset[Kind](("NodeLocator", "PodLocator"))

SENTENCES: Final = {
    Reason.UNFILTERED: "no topology keys: every ready endpoint",
    Reason.MATCHED: "the first key that matches an endpoint decides: every endpoint that it matches",
    Reason.LAST_RESORT: "no key passes the guards of the Service's annotations: the endpoints of the first with any",
    Reason.ANY: "no key matched before `*`: every ready endpoint",
    Reason.NO_MATCH: "no key matches a ready endpoint for the client's node: NODATA for this client",
    Reason.NO_ENDPOINTS: "no ready endpoint of this address family: there was nothing to choose from",
    Reason.UNKNOWN_CLIENT: "the client's node is unknown, and the last key is not `*`: NODATA",
    Reason.UNKNOWN_CLIENT_ALL: "the client's node is unknown: every ready endpoint",
    Reason.INVALID: "the topology keys are invalid and ignored: every ready endpoint",
    Reason.DENIED: "the topology keys are invalid (on_invalid deny): NODATA",
    Reason.NOT_PERMITTED: "RBAC denies the objects that give the client's node or its labels: every ready endpoint",
    Reason.HINTED: "the EndpointSlices' hints were followed",
    Reason.RANKED: "srv_priority: every ready endpoint, its priority is the index of the first key it matches",
}

_GUARDED: Final = {
    Reason.MATCHED: "the first key that matches and passes the guards decides: every endpoint that it matches",
    Reason.ANY: "no key before `*` passes the guards: every ready endpoint",
}
"""In place of SENTENCES, where a guard passes over a key before the winner."""


def answer_reason(cluster: Cluster, query: Query, resolution: Resolution) -> str:
    """Why the response is SERVFAIL or NXDOMAIN, or has these endpoints, or is empty; "" if there is nothing to say.

    SERVFAIL: the name may exist, but the cluster's state is not complete. A reason that rests on a snapshot says so.
    """
    return "; ".join(filter(None, (_live_reason(cluster, query, resolution), cluster.from_snapshot())))


def _live_reason(cluster: Cluster, query: Query, resolution: Resolution) -> str:
    rcode, selection = resolution.response.rcode, resolution.selection
    if rcode == Rcode.SERVFAIL:
        if cluster.state.is_covered and resolution.response.ede is not None:
            return resolution.response.ede.text
        waiting = f": waiting for {', '.join(cluster.waiting_for())}" if not cluster.state.synced else ""
        return f"the state of the cluster is not complete{waiting}"
    if rcode == Rcode.NXDOMAIN:
        return missing_object(cluster, query)
    if not resolution.response.answer and (selection is None or selection.reason not in MISSES):
        return _empty_text(cluster, query)
    if selection is None:
        return _without_choice(cluster, query)
    known = resolution.location is not None and resolution.location.node is not None
    return f"{_other_keys(cluster, query, selection) if known else ''}{_sentence(cluster, query, selection)}"


def _sentence(cluster: Cluster, query: Query, selection: Selection) -> str:
    if selection.reason is Reason.UNFILTERED:
        return _unfiltered_text(cluster, query)
    passed_over = any(matches for key, matches in selection.tried if key != selection.key)
    return (passed_over and _GUARDED.get(selection.reason)) or SENTENCES[selection.reason]


def _other_keys(cluster: Cluster, query: Query, selection: Selection) -> str:
    """Why the keys that were compared are others than those of the policy, by OpenYurt's rule; "" if they are not."""
    name, question = asked_name(_unfiltered(cluster), query)
    if not isinstance(name, ServiceName) or question.origin.multicluster:
        return ""
    policy = cluster.state.policies.get(ObjectKey(name.namespace, name.service))
    if not isinstance(policy, Policy) or policy.keys_if_unlabelled is None:
        return ""
    others = ", ".join(key for key, _ in selection.tried if key not in policy.keys)
    return others and f"the client's node has no label {policy.keys[0]}, so {others} counts in its place: "


def _unfiltered_text(cluster: Cluster, query: Query) -> str:
    """Why no key filters the endpoints of this name: a Service without keys, or one whose keys are for other names."""
    name, _ = asked_name(_unfiltered(cluster), query)
    keys = isinstance(name, ServiceName) and cluster.state.policies.get(ObjectKey(name.namespace, name.service))
    if not keys or not isinstance(name, ServiceName):
        return SENTENCES[Reason.UNFILTERED]
    if name.view == ALL:
        return f"keys do not apply to {ALL}.{name.service}: every ready endpoint"
    return f"keys apply to {NEAR}.{name.service} alone: every ready endpoint"


def _without_choice(cluster: Cluster, query: Query) -> str:
    """Why the answer to a query for the name of a Service, or one below, rests on no choice of endpoints; "" of a
    Service whose answers never do.
    """
    name, question = asked_name(_unfiltered(cluster), query)
    if not isinstance(name, ServiceName | ZonalName):
        return ""
    key = ObjectKey(name.namespace, name.service)
    service = cluster.state.service(key, question.origin.multicluster)
    if service is not None and not service.headless:
        misplaced = any(notice.kind == "misplaced" for notice in cluster.state.policies.notices(key))
        return _not_headless(service, misplaced and not service.imported)
    if question.origin.multicluster:
        return ""
    if cluster.state.policies.get(key) is None or (isinstance(name, ServiceName) and not name.endpoint):
        return ""
    return f"keys have no effect: the name is that of {'one endpoint' if isinstance(name, ServiceName) else 'a zone'}"


def _not_headless(service: Service, with_keys: bool) -> str:
    if service.imported:
        return "the ServiceImport is of type ClusterSetIP: every client gets its ips"
    if service.external_name is not None:
        return "keys have no effect: the Service is of type ExternalName" if with_keys else ""
    if with_keys:
        return "keys have no effect: the Service has a ClusterIP"
    return "the Service has a ClusterIP: kube-proxy, not DNS, chooses the endpoint"


def _empty_text(cluster: Cluster, query: Query) -> str:
    """The types of which the name of an answer without records has some, or why it does not exist."""
    if missing := missing_object(cluster, query._replace(qtype=RRType.A)):  # of a query for SOA, never NXDOMAIN
        return missing
    name, _ = asked_name(_unfiltered(cluster), query)
    types = _OF_THE_SERVER[name] if isinstance(name, Fixed) and name in _OF_THE_SERVER else _types(cluster, query)
    if query.qtype in types:
        return "the records are made of the server's own addresses, which `explain` does not know"
    if not types:
        return _no_records_text(cluster, query)
    *others, last = map(type_text, types)
    exists = f"the name exists; it has {' and '.join(filter(None, (', '.join(others), last)))} only"
    return "; ".join(filter(None, (exists, _lacking_family(cluster, query))))


def _lacking_family(cluster: Cluster, query: Query) -> str:
    """The clause about the EndpointSlices of the family asked for that the Service lacks; "" for none."""
    name, question = asked_name(_unfiltered(cluster), query)
    family = _FAMILIES.get(query.qtype, "")
    if not isinstance(name, ServiceName) or name.endpoint or question.origin.multicluster:
        return ""
    key = ObjectKey(name.namespace, name.service)
    if family not in families_without_slice(cluster.state, key):
        return ""
    return f"the Service has {no_slice_of(family, key.name)}{_skipped_slice(cluster, key.namespace)}"


def _no_records_text(cluster: Cluster, query: Query) -> str:
    """Why a name that exists has no records; an API server gives each Service a ClusterIP, manifests may have none."""
    name, question = asked_name(_unfiltered(cluster), query)
    if isinstance(name, ServiceName):
        service = cluster.state.service(ObjectKey(name.namespace, name.service), question.origin.multicluster)
        if service is not None and not service.headless and not service.cluster_ips:
            lacking = "ServiceImport has no spec.ips" if service.imported else "Service has no spec.clusterIP"
            return f"the name exists, but the {lacking}"
    return "the name exists; it has no records of any type"


def _types(cluster: Cluster, query: Query) -> Sequence[int]:
    """The types of which the name of this query has records."""
    ask = ClusterZone(_unfiltered(cluster))
    return [each for each in _TYPES if _has_records(ask(query._replace(qtype=each), _ANY_CLIENT), each)]


def _has_records(step: object, qtype: int) -> bool:
    return isinstance(step, Resolution) and any(rrset.rtype == qtype for rrset in step.response.answer)


def _unfiltered(cluster: Cluster) -> KubernetesZone:
    """The names of a cluster with all their records, whatever the client: it has no location."""
    topology = TopologySettings(unknown_client=UnknownClient.ALL) if cluster.topology is not None else None
    return KubernetesZone(cluster.kubernetes, topology, cluster.state, None)


def missing_object(cluster: Cluster, query: Query) -> str:
    """Why this name does not exist, as a clause: a missing object, or an option or rule that leaves the name out.

    Only for names answered with NXDOMAIN, or that `fallthrough` passes on in its place.
    """
    kubernetes = _unfiltered(cluster)
    text = name_error_text(kubernetes, query)
    name, _ = asked_name(kubernetes, query)
    if isinstance(name, ServiceName) and text.endswith(no_slice(name.service)):
        return f"{text}{_skipped_slice(cluster, name.namespace)}"
    if isinstance(name, ServiceName) and (line := _skipped(cluster, f"Service {name.namespace}/{name.service}: ")):
        return text and f"{text}; it cannot be read: {line}"
    return text and f"{text}{name_offer(kubernetes, query)}"


def _skipped_slice(cluster: Cluster, namespace: str) -> str:
    """The end of a clause about EndpointSlices that a Service lacks: the first one of its namespace that cannot be
    read, with the reason. It may be of another Service: its label was not read either. "" for none.
    """
    line = _skipped(cluster, f"EndpointSlice {namespace}/")
    return line and f"; one of the namespace cannot be read: {line}"


def _skipped(cluster: Cluster, of: str) -> str:
    """The first line about an object that cannot be read, of those with this text at the beginning; "" for none."""
    return next((each for each in cluster.source.skipped if f"skipped {of}" in each), "")


def with_slice_at_hand_steps(cluster: Cluster, query: Query, reason: str) -> Steps[str]:
    """A reason of this module, of a Service that lacks slices with the one that may be meant for it; in steps."""
    name, _ = asked_name(_unfiltered(cluster), query)
    if not isinstance(name, ServiceName) or SERVICE_LABEL not in reason:
        return reason
    return reason + (yield from at_hand_steps(cluster.state, ObjectKey(name.namespace, name.service)))


def name_offer(kubernetes: KubernetesZone, query: Query) -> str:
    """The end of the clause about a name that does not exist: the Service, namespace or view that may be meant."""
    name, question = asked_name(kubernetes, query)
    state, missing = kubernetes.state, answer(kubernetes, name, question).missing
    if missing in (Missing.ENDPOINT, Missing.NAME) and len(question.labels) > _OF_SERVICE:
        view = nearest(question.labels[0], (NEAR, ALL))
        return f", did you mean {view!r}?" if view else ""
    if not isinstance(name, (ServiceName, ZonalName, NamespaceNode, PodName)):
        return ""
    if missing is Missing.SERVICE and isinstance(name, (ServiceName, ZonalName)):
        services = state.imports if question.origin.multicluster else state.services
        return offer(name.service, [each for namespace, each in services if namespace == name.namespace])
    if missing is Missing.NAMESPACE and not kubernetes.settings.namespaces:
        known = [each for _, each in state.namespaces]
        return offer(name.namespace, known) if name.namespace not in known else ""
    return ""


def name_error_text(kubernetes: KubernetesZone, query: Query) -> str:
    """One clause, without a final dot, on why the name of this query does not exist; "" if it does.

    The name is under an origin of the directive.
    """
    name, question = asked_name(kubernetes, query)
    missing = answer(kubernetes, name, question).missing
    return "" if missing is None else _missing_text(kubernetes, question.origin, name, missing)


def asked_name(
    kubernetes: KubernetesZone, query: Query, client: Client = _ANY_CLIENT
) -> tuple[NameOrAddress, ZoneQuestion]:
    """What the qname of this query is, which is under an origin of the directive, and the question of the client."""
    origin = kubernetes.origins.match(query.qname)
    assert origin is not None
    question = question_of(query, client, origin)
    return name_of(kubernetes, question), question


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
        return no_namespace(namespace)
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
    if missing is Missing.VIEW:
        return f"is not headless: it has no names {NEAR} and {ALL}"
    if name.view and missing is Missing.ENDPOINT:
        return f"has no names of endpoints below {name.view}: they are below {name.service!r} itself"
    if missing is Missing.READY and service is not None and headless:
        return f"is headless and has {_unready(kubernetes, service)}{noendpoints}"
    if missing is Missing.READY:
        return f"has no ready endpoint, and `ignore empty_service` is set{noendpoints}"
    if missing is Missing.PORT:
        others = _other_ports(kubernetes, service, name) if service is not None else ""
        return f"has no {'ready endpoint with a ' if headless else ''}{_port_text(name)}{others}"
    if service is not None and service.imported and not name.cluster:  # KEP-1645
        expected = f"{name.endpoint}.CLUSTER.{name.service}"
        return f"is imported: names of its endpoints have the cluster's id before the Service, as in {expected!r}"
    cluster = f" of cluster {name.cluster!r}" if name.cluster else ""
    return f"has no ready endpoint{cluster} named {name.endpoint!r}{noendpoints}"


def _unready(kubernetes: KubernetesZone, service: Service) -> str:
    """What a Service lacks: endpoints that are ready, or any EndpointSlice."""
    sliced = kubernetes.state.backends(service.key, service.imported).ports  # each slice has at least one
    if sliced or service.imported or kubernetes.settings.noendpoints:
        return "no ready endpoint"
    return no_slice(service.name)


def _port_text(name: ServiceName) -> str:
    named = f" named {name.port!r}" if name.port else ""
    return f"port{named}" + (f" of protocol {name.protocol!r}" if name.protocol else "")


def _other_ports(kubernetes: KubernetesZone, service: Service, name: ServiceName) -> str:
    """The end of a sentence about a port that a Service lacks: the names that it or, of a headless one, its ready
    endpoints have, as in the names of SRV records, and the one that may be meant; "" without any.
    """
    ports: Iterable[EndpointPort | ServicePort] = service.ports[:_PORTS]
    if service.headless:
        backends = kubernetes.state.backends(service.key, service.imported)
        ports = (each for each in backends.ports[:_PORTS] if any_ready(backends, (each,)))
    known = {f"_{each.name}._{each.protocol}".lower(): each.name.lower() for each in ports if each.name}
    if not known:
        return ""
    meant = offer(name.port, set(known.values())) if name.port and name.port not in known.values() else ""
    return f"; {'they have' if service.headless else 'it has'} {named(known)}{meant}"


def unknown_node(cluster: Cluster, name: str) -> str:
    """Why no Node of this name is known; "" if one is. Either there is none, or Nodes cannot be read."""
    if cluster.state.node(name) is not None:
        return ""
    if "Node" in cluster.state.known:
        return f"no Node is named {name!r}"
    if "Node" not in cluster.state.needed:
        return f"no locator has labels of a Node {name!r}"
    return f"Nodes cannot be read, so that no node is known: {_unread(cluster, 'Node')}"


def node_offer_steps(cluster: Cluster, name: str) -> Steps[str]:
    """The end of a sentence about the unknown Node `name`: the one that may be meant, or several if these are equally
    similar; without one, the first ones that there are.

    "" if no Node is known.
    """
    names = sorted(cluster.state.all_nodes())
    nearest_names = yield from nearest_steps(name, names)
    if nearest_names:
        several = "one of " if len(nearest_names) > 1 else ""
        return f", did you mean {several}{named(map(repr, nearest_names))}?"
    return f"; there are {named(map(repr, names[:NAMED]), len(names))}" if names else ""


def whole_names(clusters: Iterable[Cluster], qname: Name) -> list[str]:
    """The names that exist of those which search domains, or another domain of the cluster, make of this one."""
    found: dict[str, None] = {}
    for cluster in clusters:
        kubernetes = _unfiltered(cluster)
        for origin in cluster.kubernetes.origins:
            for name in _completed(cluster, qname, origin):
                query = Query(0, 0, name, name_wire(name), RRType.A, RRClass.IN, None, 0)
                if not is_reverse(origin) and not name_error_text(kubernetes, query):
                    found[name_text(name)] = None
    return list(found)


def _completed(cluster: Cluster, qname: Name, origin: Name) -> Iterator[Name]:
    if len(qname) == 1:
        services = (key for key in cluster.state.services if key[1] == qname[0])
        yield from ((*qname, namespace, "svc", *origin) for namespace, _ in islice(services, NAMED + 1))
        return
    yield (*qname, "svc", *origin)
    yield from ((*qname[: at + 1], *origin) for at, label in enumerate(qname) if label in ("svc", "pod"))


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
    if names := state.nodes.sharing(unlocated):
        return shared_address(unlocated, names)
    if names := state.nodes.sharing_pod_cidr(unlocated):
        return f"the address is in a podCIDR that several Nodes have, so it is of none: {named(names)}"
    node = state.nodes.with_pod_cidr(unlocated)
    if node is None:
        return ""
    if state.nodes.pod_cidrs_verified:
        return f"the address is in the podCIDR of {node.name}: add podcidr to `locate`"
    where = f"the address is in the podCIDR of {node.name}, but nothing proves that Pods have addresses of podCIDRs"
    if Method.PODS in cluster.topology.locate:
        return f"{where}, and no Pod has it: add podcidr-unverified to `locate` if you know that they do"
    return f"{where}: add pods to `locate`, or podcidr-unverified if you know that they do"
