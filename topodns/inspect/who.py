"""Where a client is, and why: its Node in each cluster, and the evidence of each method of `locate`, for `topodns who`.

For operators only: `client_locator` decides without the evidence.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from itertools import islice
from typing import Final, NamedTuple

from topodns.cluster.model import ANY_KEY, HOSTNAME_LABEL, ZONE_LABEL, Endpoint, Kind, ObjectKey, Pod, Policy
from topodns.cluster.state import ClusterState
from topodns.dns.name import name_text
from topodns.inspect.documents import VERSION, LocationObject, WhoDocument
from topodns.inspect.errors import Refused
from topodns.inspect.explain import parse_address
from topodns.inspect.reasons import operator_hint
from topodns.inspect.text import named
from topodns.plugins.kubernetes.clusters import Cluster
from topodns.topology.claims import contradiction, is_evidence, verdicts
from topodns.topology.client_locator import ClientLocator, Method
from topodns.topology.select import Location

MAX_CONTRADICTIONS: Final = 20
MAX_LACKING: Final = 20  # label keys
MAX_SERVICES: Final = 2000  # whose keys are looked at: together with MAX_LISTS about 2 ms
MAX_LISTS: Final = 200  # different lists of keys
MAX_ENDPOINTS: Final = 1000  # with the address; to look at one takes about 2 us

_OWN: Final = "an address of this server itself"
_IN_PROVEN_CIDR: Final = "in its pod CIDR; the addresses of known Pods prove that Pods get theirs from pod CIDRs"

_Endpoints = Sequence[tuple[ObjectKey, Endpoint]]


class MethodEvidence(NamedTuple):
    """The result of one method for an address, and its reason. `used`: `locate` has the method."""

    method: str  # in the spelling of the option `locate`
    used: bool
    node_name: str  # "": no result
    text: str  # why: a clause without the method's name


class Evidence(NamedTuple):
    """The evidence about an address: the methods of `locate` in its order, then all others; and contradictions.

    The latter are sentences, at most MAX_CONTRADICTIONS, and one more if further ones are left out.
    """

    methods: tuple[MethodEvidence, ...]
    contradictions: tuple[str, ...]


def who_reply(clusters: Collection[Cluster], arguments: Mapping[str, str]) -> WhoDocument:
    """The document about the address in the argument `client`: its location in each cluster.

    Raises Refused for a text that is no address, and without clusters.
    """
    address = parse_address(arguments.get("client", ""))
    if not clusters:
        raise Refused("no server block has a kubernetes directive: nothing is known of any client's node")
    located = [_located(cluster, address) for cluster in clusters]
    return {"version": VERSION, "address": str(ip_address(address)), "clusters": located}


def _located(cluster: Cluster, address: bytes) -> LocationObject:
    state, locator = cluster.state, cluster.locator
    location = locator.locate(address) if locator is not None else Location()
    evidence = gather_evidence(state, locator, location, address) if locator is not None else Evidence((), ())
    node_labels = location.node.labels if location.node is not None else None
    labels, lacking = labels_in_use(state, node_labels) if node_labels is not None else ({}, ())
    return {
        "origins": list(map(name_text, cluster.kubernetes.origins)),  # of the `kubernetes` directive
        "view": cluster.view.name or None if cluster.view is not None else None,  # of its server block
        "node": location.node_name or None,
        "method": location.method,
        "because": _reason(location, locator, evidence),
        "zone": (node_labels or {}).get(ZONE_LABEL) or None,  # the Node's label topology.kubernetes.io/zone
        "labels": labels,  # of the Node, those that some Service's keys name
        "lacking": list(lacking),  # keys that some Service names, and the Node has no label for; some of them
        "methods": [  # none without `topology`
            {"method": each.method, "used": each.used, "node": each.node_name or None, "because": each.text}
            for each in evidence.methods
        ],
        "contradictions": list(evidence.contradictions),
        "hint": _hint(cluster, None if location.node_name else address) or None,  # advice for the operator
    }


def _reason(location: Location, locator: ClientLocator | None, evidence: Evidence) -> str:
    if locator is None:
        return "the server block has no `topology`: clients are not located"
    if location.node_name:
        return next((each.text for each in evidence.methods if each.method == location.method), _OWN)
    return f"no method of `locate` has a result: {', '.join(method.value for method in locator.methods)}"


def _hint(cluster: Cluster, unlocated: bytes | None) -> str:
    if line := cluster.from_snapshot():
        return line
    if not cluster.state.synced:
        return f"the state of the cluster is not complete: waiting for {', '.join(cluster.waiting_for())}"
    return operator_hint(cluster, unlocated)


def gather_evidence(state: ClusterState, locator: ClientLocator, location: Location, address: bytes) -> Evidence:
    """The evidence for the location of a packed address, and against it.

    Contradictions are methods with another Node than the location, a Node name without a Node object, and locators and
    endpoints of EndpointSlices that other objects contradict. Of the endpoints with this address MAX_ENDPOINTS are
    looked at.
    """
    endpoints = state.endpoints_with_address(address)[:MAX_ENDPOINTS]
    others = [method for method in Method if method not in locator.methods]
    methods = []
    for method in (*locator.methods, *others):
        node_name = locator.node_name_by(method, address)
        text = _clause(state, method, address, node_name, endpoints)
        methods.append(MethodEvidence(method.value, method in locator.methods, node_name, text))
    found = list(islice(_contradictions(state, location, methods, endpoints, address), MAX_CONTRADICTIONS + 1))
    if len(found) > MAX_CONTRADICTIONS:
        found[-1] = "there are more contradictions"
    return Evidence(tuple(methods), tuple(found))


def _contradictions(
    state: ClusterState, location: Location, methods: Iterable[MethodEvidence], endpoints: _Endpoints, address: bytes
) -> Iterator[str]:
    if location.node_name and location.node is None:
        yield f"no Node object is named {location.node_name}: its labels are unknown"
    for each in methods:
        if location.node_name and each.node_name and each.node_name != location.node_name:
            yield f"{each.method} says {each.node_name}: {each.text}"
    for service, endpoint in endpoints:
        against = contradiction(state, address, endpoint.node_name) if endpoint.node_name else None
        if against is not None:
            whose = f"an EndpointSlice of Service {service.namespace}/{service.name}"
            yield f"{whose} says that it is on node {endpoint.node_name}, but {against.clause}"
    for verdict in verdicts(state, address, state.locators.claims(address)):
        if verdict.against is not None:
            yield verdict.sentence(address)


def labels_in_use(state: ClusterState, labels: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The labels of a Node whose keys some Service's topology keys name, and named keys that the Node lacks.

    The first ordered by key; of the second the first MAX_LACKING, without kubernetes.io/hostname, for which the Node's
    name counts. Only the first MAX_SERVICES Services with keys count, and MAX_LISTS lists of theirs.
    """
    policies = islice(state.policies.all().values(), MAX_SERVICES)
    lists = {policy.labels for policy in policies if isinstance(policy, Policy)}
    keys = {key for names in islice(lists, MAX_LISTS) for key in names}
    lacking = sorted(keys - labels.keys() - {HOSTNAME_LABEL, ANY_KEY})
    return {key: labels[key] for key in sorted(keys & labels.keys())}, tuple(lacking[:MAX_LACKING])


def _clause(state: ClusterState, method: Method, address: bytes, node_name: str, endpoints: _Endpoints) -> str:
    match method:
        case Method.NODES:
            return _by_nodes(state, address, node_name)
        case Method.PODS:
            return _by_pods(state, address, node_name)
        case Method.SLICES:
            return _by_slices(state, address, node_name, endpoints)
        case Method.PODCIDR:
            return _by_pod_cidr(state, address, node_name)
        case Method.NODELOCATOR:
            return _by_locators(state, "NodeLocator", address, node_name)
        case Method.PODLOCATOR:
            return _by_locators(state, "PodLocator", address, node_name)
        case Method.PODCIDR_UNVERIFIED:
            return "in its pod CIDR, proven or not" if node_name else _in_no_pod_cidr(state, address)


def _by_nodes(state: ClusterState, address: bytes, node_name: str) -> str:
    if node_name:
        return "an address of that Node"
    names = state.nodes.sharing(address)
    return f"several Nodes have it: {named(names)}" if names else "no Node has it"


def _in_no_pod_cidr(state: ClusterState, address: bytes) -> str:
    names = state.nodes.sharing_pod_cidr(address)
    return f"in a pod CIDR that several Nodes have: {named(names)}" if names else "in no Node's pod CIDR"


def _by_pods(state: ClusterState, address: bytes, node_name: str) -> str:
    pods = state.pods_with_address(address)
    if pods:
        which = named([_pod_text(pod) for pod in pods])
        return which if node_name else f"Pods on different nodes have it: {which}"
    if "Pod" in state.denied:
        return "RBAC denies Pods"
    if "Pod" not in state.needed:
        return "Pods are not watched"
    return "no Pod has it" if state.knows_all_pods else "no Pod that is known has it"


def _pod_text(pod: Pod) -> str:
    words = (
        f"Pod {pod.namespace}/{pod.name}",
        "of the host network" * pod.host_network,
        "terminating" * pod.terminating,
    )
    return f"{' '.join(filter(None, words))} on {pod.node_name or 'no node'}"


def _by_slices(state: ClusterState, address: bytes, node_name: str, endpoints: _Endpoints) -> str:
    if not endpoints:
        return "no EndpointSlice has it"
    if node_name or not state.knows_all_pods or state.pods_with_address(address):
        counting = [(service, one) for service, one in endpoints if is_evidence(state, one)]
        which = named([f"Service {service.namespace}/{service.name} on {one.node_name}" for service, one in counting])
        if counting:
            return f"endpoint of {which}" if node_name else f"EndpointSlices disagree: {which}"
    services = named([f"Service {service.namespace}/{service.name}" for service, _ in endpoints])
    return f"endpoint of {services}, without a Pod and its node, or contradicted"


def _by_locators(state: ClusterState, kind: Kind, address: bytes, node_name: str) -> str:
    claims = [claim for claim in state.locators.claims(address) if claim.kind == kind]
    if claims:
        which = named([f"{claim.locator} on {claim.node_name}" for claim in claims])
        return which if node_name else f"not believed: {which}"
    if kind in state.denied:
        return f"RBAC denies {kind}s"
    return f"no {kind} has it" if kind in state.needed else f"{kind}s are not watched"


def _by_pod_cidr(state: ClusterState, address: bytes, node_name: str) -> str:
    owner, proven = state.nodes.with_pod_cidr(address), state.nodes.pod_cidrs_verified
    if node_name:
        return _IN_PROVEN_CIDR if proven else "its Pods' bridge"
    if owner is None:
        return _in_no_pod_cidr(state, address)
    if proven:
        return f"in the pod CIDR of {owner.name}, but its Pods are on other nodes"
    return f"in the pod CIDR of {owner.name}, but nothing proves that Pods get their addresses from pod CIDRs"
