"""Findings about the objects of a cluster, all or those about one Service: key lists, annotations, objects that do not
fit together (Services without a namespace or EndpointSlices, addresses that several Nodes have), and objects that are
left out.
"""

from bisect import insort
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from itertools import chain, islice
from typing import Final

from topodns.cluster.annotations import TOPOLOGY_KEYS, problem_elsewhere
from topodns.cluster.findings.endpoint_nodes import endpoint_node_findings, endpoint_zone_findings
from topodns.cluster.findings.finding import (
    CLUSTER,
    MAX_NAMED,
    Finding,
    Findings,
    Hides,
    Severity,
    first_names,
    hides_none,
    visible,
)
from topodns.cluster.findings.key_lists import import_key_problems, key_findings
from topodns.cluster.findings.labels import label_findings, labels_of, service_label_findings
from topodns.cluster.findings.slices import Strays, slice_findings, stray_steps
from topodns.cluster.model import (
    ANY_KEY,
    HOSTNAME_LABEL,
    NO_KEYS,
    OWN_CLUSTER,
    REGION_LABEL,
    ZONE_LABEL,
    EndpointSlice,
    InvalidPolicy,
    MisannotatedPod,
    Namespace,
    Node,
    Notice,
    ObjectKey,
    Policy,
    label_name,
)
from topodns.cluster.namespace_budget import FURTHER
from topodns.cluster.slices import SliceOwner
from topodns.cluster.state import ClusterState


def policy_findings(state: ClusterState, ignored: bool, hides: Hides = hides_none) -> Findings:
    """The findings about key lists, annotations and objects, in no particular order; None after each Service with a
    list. A Service is taken as it was at the first step. None about namespaces that are hidden.

    `ignored` as of `key_findings`. Of labels that only some Nodes have there is a finding for each label, not for each
    Service.
    """
    yield from state.policies.look_up_steps()
    for key, policy in {**dict.fromkeys(state.max_endpoints), **state.policies.all()}.items():
        if hides(key.namespace):
            yield None
            continue
        yield from _key_findings(state, key, policy, ignored)
        yield None
    yield from label_findings(state, hides)
    yield from visible(annotation_findings(state), hides)
    yield from visible(object_findings(state), hides)


def service_findings(state: ClusterState, key: ObjectKey, ignored: bool) -> Findings:
    """The findings about the keys and annotations of one Service, in steps; `ignored` as of `key_findings`.

    Of labels that only some Nodes have, with those alone that other Nodes have in another case; and without missing
    objects: an explanation names those of the client, of each endpoint and of the name.
    """
    policy = state.policies.get(key)
    yield from _key_findings(state, key, policy, ignored)
    yield from service_label_findings(state, key, policy)
    yield from endpoint_zone_findings(state, key, policy)
    yield from noted(key, state.policies.notices(key))
    namespace = state.namespaces.get(("", key.namespace))
    for text in _problems_of_namespace(namespace) if namespace is not None else ():
        yield Finding(key, "annotation", text)
    for found in chain(elsewhere_findings(state), pod_findings(state)):
        yield found if found is not None and found.service == key else None


def _key_findings(
    state: ClusterState, key: ObjectKey, policy: Policy | InvalidPolicy | None, ignored: bool
) -> Iterator[Finding]:
    return key_findings(key, policy, state.policies.governs(key), key in state.max_endpoints, ignored, labels_of(state))


_ELSEWHERE: Final = "annotation_elsewhere"
SERVICES: Final = 25  # with an annotated Pod as endpoint, looked at in one step


def annotation_findings(state: ClusterState) -> Findings:
    """The findings about annotations: of unknown names, without effect, or where another annotation wins."""
    for key in state.policies.noted():
        yield from noted(key, state.policies.notices(key))
    for name, problem in tuple(state.policies.namespace_problems.items()):
        text = f"namespace {name!r}: annotation {TOPOLOGY_KEYS!r}: {problem}"
        yield Finding(CLUSTER, "keys_of_namespace", text, of_namespace=name)
    for key in tuple(state.cluster_set.keys):
        yield from import_findings(state, key)
    yield from _own_cluster_findings(state)
    yield from elsewhere_findings(state)
    yield from pod_findings(state)


def noted(key: ObjectKey, notices: Iterable[Notice]) -> Iterator[Finding]:
    """The findings of the notices about a Service's annotations."""
    return (Finding(key, notice.kind, notice.text, Severity(notice.severity)) for notice in notices)


def import_findings(state: ClusterState, key: ObjectKey) -> Findings:
    """The findings about the keys and annotations of one ServiceImport, in steps. A Service may have the same name."""
    keys = state.cluster_set.keys.get(key, NO_KEYS)
    policy = keys.policy
    labels, about = labels_of(state), f"ServiceImport {key}: "
    found = [(Severity(notice.severity), notice.text) for notice in keys.notices]
    if isinstance(policy, InvalidPolicy):
        found.append((Severity.ERROR, f"invalid topology keys: {policy.problem}"))
    elif policy is not None:
        found += ((Severity.WARNING, warning) for warning in policy.warnings)
    for severity, text in found:
        yield Finding(CLUSTER, "import", about + text, severity, imported=key)
    if isinstance(policy, Policy) and labels.nodes:
        own_zones = HOSTNAME_LABEL in policy.keys and (yield from _own_zones_steps(state, key))
        for each, text in import_key_problems(policy, labels, state.cluster_set.regions_agree, own_zones):
            yield Finding(CLUSTER, "import", about + text, imported=key, keys=(each,))
    yield None


def _own_zones_steps(state: ClusterState, key: ObjectKey) -> Generator[None, None, bool]:
    """Whether slices of a ServiceImport have the Node's zone for each endpoint of this cluster; a slice a step."""
    has = state.cluster_set.has
    for one in tuple(state.slice_table.owned.counted(SliceOwner(key, imported=True))):
        yield
        for each in one.endpoints:
            node = state.node(each.node_name) if has(each) else None
            if node is not None and node.labels.get(ZONE_LABEL) != each.topology_zone:
                return False
    return True


_OF_SLICES: Final = frozenset((ANY_KEY, ZONE_LABEL, REGION_LABEL))  # the keys of an import that need no own cluster


def _own_cluster_findings(state: ClusterState) -> Findings:
    """The finding about keys of ServiceImports that match nothing, as the id of this cluster is not known."""
    cluster_set = state.cluster_set
    if cluster_set.id or not state.synced or "ClusterProperty" not in state.needed:
        return
    waiting: list[ObjectKey] = []
    for key, keys in tuple(cluster_set.keys.items()):
        if isinstance(keys.policy, Policy) and not _OF_SLICES.issuperset(map(label_name, keys.policy.keys)):
            waiting.append(key)
        yield None
    if waiting:
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        text = (
            f"the id of this cluster is unknown, so the keys 'cluster' and labels of Nodes match nothing for "
            f"ServiceImport {waiting[0]}{more}: expected 'cluster_id' in the Corefile, or the ClusterProperty "
            f"{OWN_CLUSTER}"
        )
        yield Finding(CLUSTER, "cluster_id", text)


def elsewhere_findings(state: ClusterState) -> Findings:
    """The findings about annotations, and labels in their place, of Namespaces, Nodes and EndpointSlices: one for each
    Namespace or Service, and for all Nodes. Their texts do not change while Nodes and slices come and go.
    """
    found: dict[Finding, None] = {}
    for one in tuple(state.misannotated.values()):
        yield None
        if isinstance(one, Namespace):
            texts = _problems_of_namespace(one)
            found |= dict.fromkeys(Finding(CLUSTER, _ELSEWHERE, text, of_namespace=one.name) for text in texts)
        elif isinstance(one, Node):
            problems = (problem_elsewhere(bad, "Node") for bad in one.bad)
            found |= dict.fromkeys(Finding(CLUSTER, _ELSEWHERE, f"Nodes: {text}") for text in problems)
        else:
            service = state.service(ObjectKey(one.namespace, one.service_name))
            for bad in one.bad:
                text = problem_elsewhere(bad, "EndpointSlice")
                if service is not None and not one.imported:
                    found[Finding(service.key, "annotation", f"its EndpointSlices: {text}")] = None
                else:
                    text = f"EndpointSlice {one.key}: {text}"
                    found[Finding(CLUSTER, _ELSEWHERE, text, of_namespace=one.namespace)] = None
    yield from found


def _problems_of_namespace(one: Namespace) -> Iterator[str]:
    return (f"namespace {one.name!r}: {problem_elsewhere(bad, 'Namespace')}" for bad in one.bad)


def pod_findings(state: ClusterState) -> Findings:
    """The findings about annotations of Pods that only a Service can have: one for each Service, not for each Pod.

    The text of a finding does not change while Pods come and go; its `names` do.
    """
    found: dict[Finding, list[str]] = {}
    for pod in tuple(state.misannotated_pods.values()):
        services = yield from _own_services(state, pod)
        headless = [key for key, is_headless in services.items() if is_headless]
        for bad in pod.bad:
            yield None
            text = (
                f"its Pods have the annotation {bad.name!r}, which has no effect on a Pod: "
                f"put {bad.meant!r} on the Service"
            )
            for at, key in enumerate(headless or services, 1):
                _add_pod(found, Finding(key, "annotation", text), pod.name)
                if at % SERVICES == 0:
                    yield None
            if not services:
                text = (
                    f"Pods of namespace {pod.namespace!r} that no Service has as endpoints have the annotation "
                    f"{bad.name!r}, which has no effect on a Pod: put {bad.meant!r} on a headless Service"
                )
                _add_pod(found, Finding(CLUSTER, "annotation_of_pods", text, of_namespace=pod.namespace), pod.name)
    yield from (replace(each, noun="Pod", names=tuple(names)) for each, names in found.items())


def _add_pod(found: dict[Finding, list[str]], finding: Finding, name: str) -> None:
    """Add the name of a Pod to a finding: the first MAX_NAMED in order are kept."""
    names = found.setdefault(finding, [])
    insort(names, name)
    del names[MAX_NAMED:]


def _own_services(state: ClusterState, pod: MisannotatedPod) -> Generator[None, None, Mapping[ObjectKey, bool]]:
    """The Services with this Pod as an endpoint, in order, and whether they are headless; in steps."""
    found: dict[ObjectKey, bool] = {}
    for address in pod.ips:
        for at, (key, _) in enumerate(tuple(state.endpoints_with_address(address))):
            if at % SERVICES == 0:
                yield
            if key.namespace != pod.namespace or key in found:  # a slice may list any address
                continue
            service = state.service(key)
            if service is not None:
                found[key] = service.headless
    return dict(sorted(found.items()))


MAX_LEFT_OUT: Final = 100  # Services of which objects are left out; there is a finding for each namespace, too
MAX_SHARED: Final = 100  # addresses, and pod CIDRs, that several Nodes have
_TOO_MANY: Final = "the namespace has more octets than others, and all together too many"


def object_findings(state: ClusterState) -> Findings:
    """The findings about Services with keys whose other objects are missing, about EndpointSlices of no Service, and
    about addresses of several Nodes; of manifests also about headless Services without keys that lack slices.

    None of a kind that is not known. The text of a finding does not change while endpoints come and go.
    """
    if not state.synced:
        return
    unknown: set[str] = set()
    strays = yield from stray_steps(state)
    yield from (each.finding() for each in strays)
    yield from state.policies.look_up_steps()
    with_keys = state.policies.all()
    for key, policy in with_keys.items():
        yield from _missing_findings(state, key, strays)
        yield from endpoint_node_findings(state, key, policy, unknown)
        yield None
    state.unknown_nodes.keep_only(unknown)
    # Manifests are meant to be complete; an API server has many Services whose Pods are still to come.
    for service in tuple(state.services.values()) if state.of_files else ():
        if service.headless and service.key not in with_keys:
            yield from slice_findings(state, service.key, strays)
        yield None
    yield from _shared_findings(state)


def _missing_findings(state: ClusterState, key: ObjectKey, strays: Strays) -> Iterator[Finding]:
    if "Namespace" in state.known and ("", key.namespace) not in state.namespaces:
        yield Finding(key, "no_namespace", f"{no_namespace(key.namespace)}: its names are NXDOMAIN")
    yield from slice_findings(state, key, strays)


def no_namespace(name: str) -> str:
    """The clause about a namespace that does not exist."""
    return f"no namespace {name!r}"


def _shared_findings(state: ClusterState) -> Iterator[Finding]:
    for address, names in islice(state.nodes.all_sharing(), MAX_SHARED):
        yield Finding(CLUSTER, "shared_address", shared_address(address, names))
    for network, prefix_length, names in islice(state.nodes.all_sharing_pod_cidrs(), MAX_SHARED):
        cidr = f"{ip_address(network)}/{prefix_length}"
        text = f"several Nodes have the podCIDR {cidr}, so it is of none: {first_names(sorted(names))}"
        yield Finding(CLUSTER, "shared_pod_cidr", text)


def shared_address(address: bytes, names: Sequence[str]) -> str:
    """The sentence about an address that all these Nodes have."""
    return f"several Nodes have the address {ip_address(address)}, so it is of none: {first_names(sorted(names))}"


def left_out_findings(state: ClusterState) -> Findings:
    """The findings about objects that are left out, in steps: their namespaces, and the first Services among them.

    Not about slices that do not count. The text of a finding does not change while objects come and go.
    """
    services: set[ObjectKey] = set()
    namespaces: set[str] = set()
    for kind, key in state.left_out_that_count():
        yield None
        if key.namespace not in namespaces:
            namespaces.add(key.namespace)
            text = f"objects of namespace {key.namespace!r} are left out: {_TOO_MANY}; its names are SERVFAIL"
            yield Finding(CLUSTER, "left_out_of_namespace", text, Severity.ERROR, of_namespace=key.namespace)
        one = state.held(kind, key)
        service = ObjectKey(key.namespace, one.service_name) if isinstance(one, EndpointSlice) else key
        if service.name in ("", FURTHER) or service in services or len(services) >= MAX_LEFT_OUT:
            continue
        services.add(service)
        what = "EndpointSlices of it are" if kind == "EndpointSlice" else "it is"
        yield Finding(service, "left_out", f"{what} left out: {_TOO_MANY}; its names are SERVFAIL", Severity.ERROR)
