"""Findings about the key lists and annotations of a cluster's Services and objects that are left out, and their type.

They are in the log, in Events, in `explain`, on the page and in an audit. Those about the endpoints that clients get
are in `inspect.findings`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from topodns.cluster.left_out import FURTHER
from topodns.cluster.model import ANY_KEY, EndpointSlice, InvalidPolicy, Node, Notice, ObjectKey, Policy
from topodns.cluster.node_labels import NodeLabels
from topodns.cluster.state import ClusterState
from topodns.topology.key_labels import absent_keys, nearest_label, nodes_without, partial_keys, shadowed_keys

CLUSTER: Final = ObjectKey("", "")
"""In place of a Service, for findings about all of them."""

MAX_NAMED: Final = 10  # Nodes, zones, endpoints or Pods that a finding names
_SHOWN: Final = 5  # Nodes in the text

_GOVERNING: Final = (
    "topology keys on the governing Service of a StatefulSet hide its members from each other when they look up the "
    "Service's name; give clients a headless Service of their own"
)
_TOO_MANY: Final = "the namespace has more octets than others, and all together too many"


class Severity(StrEnum):
    """The severity of a finding; members are in the order from the worst."""

    ERROR = "error"  # clients get no endpoint, or the keys are not those that were meant
    WARNING = "warning"  # one failure away from it, or most likely a mistake
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of one Service's policy, or of the whole cluster (service CLUSTER). `kind` is one of

    annotation: an annotation of the Service, or of its Pods, has no effect: its name is unknown, for example.
    annotation_of_pods: the same of Pods that no Service has as endpoints.
    invalid: the key list breaks a rule. mended: parts of the list are ignored, or topodns.io/ttl is ignored or clamped.
    governing: the Service is a StatefulSet's governing one, so its members may not find each other. misplaced: the
    Service has keys, but is not headless. overridden: two annotations are set, one of them wins.
    uncovered: clients on some Nodes get no endpoint. empty: no endpoint is ready. single_point: an endpoint alone
    serves clients on several Nodes. skew: an endpoint has far more clients than others. ineffective: a key that no Node
    has, or that decides for no client. partial: a key that only some Nodes have. unlocated: clients that cannot be
    located. no_nodes: no Node is known.
    left_out: objects of the Service are left out (`cluster.left_out`), so its names are SERVFAIL.
    left_out_of_namespace: the same of a namespace, without a Service.
    """

    service: ObjectKey
    kind: str
    text: str
    severity: Severity = Severity.WARNING
    nodes: int = 0  # Nodes whose clients it concerns
    node_names: tuple[str, ...] = ()  # of them, at most MAX_NAMED
    zones: tuple[str, ...] = ()  # those it concerns as a whole, at most MAX_NAMED
    keys: tuple[str, ...] = ()  # topology keys that it concerns
    endpoints: tuple[str, ...] = ()  # addresses, at most MAX_NAMED
    family: int = 0  # 4 or 6 if it concerns one family of two
    ratio: float = 0.0  # of a skew: the highest load over the mean

    def __str__(self) -> str:
        if self.service == CLUSTER:
            return f"all Services: {self.text}"
        return f"Service {self.service}: {self.text}"


def policy_findings(state: ClusterState, ignored: bool) -> Iterator[Finding | None]:
    """The findings about key lists, in no particular order; in small steps, None after each Service with a list.

    The state may change between steps: a Service is taken as it was at the first one.

    `ignored` is on_invalid: True (ignore) leaves a Service with an invalid policy unfiltered, False (deny) empties it.
    Of labels that only some Nodes have there is a finding for each label, not for each Service.
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
            text = f"{_lacking(label, without, state.node_labels)}; it is a topology key of {first}{more}"
            yield Finding(CLUSTER, "partial", text, Severity.INFO, len(without), tuple(without[:MAX_NAMED]))
        yield None
    yield from notice_findings(state)


def service_findings(state: ClusterState, key: ObjectKey, ignored: bool) -> Iterator[Finding | None]:
    """The findings about the keys and annotations of one Service, in steps; `ignored` as of `policy_findings`.

    Without labels that only some Nodes have: an explanation names those of the client and of each endpoint.
    """
    yield from key_findings(key, state.policies.get(key), state.governs(key), ignored, _labels_of(state))
    yield from _noted(key, state.notices.get(key, ()))
    for found in _pod_findings(state):
        yield found if found is not None and found.service == key else None


def _labels_of(state: ClusterState) -> NodeLabels:
    """The labels of the Nodes once these are listed; before, of none."""
    return state.node_labels if state.synced else NodeLabels()


MAX_LEFT_OUT: Final = 100  # Services of which objects are left out; there is a finding for each namespace, too


def left_out_findings(state: ClusterState) -> Iterator[Finding | None]:
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
            yield Finding(CLUSTER, "left_out_of_namespace", text, Severity.ERROR)
        one = state.held(kind, key)
        service = ObjectKey(key.namespace, one.service_name) if isinstance(one, EndpointSlice) else key
        if service.name in ("", FURTHER) or service in services or len(services) >= MAX_LEFT_OUT:
            continue
        services.add(service)
        what = "EndpointSlices of it are" if kind == "EndpointSlice" else "it is"
        yield Finding(service, "left_out", f"{what} left out: {_TOO_MANY}; its names are SERVFAIL", Severity.ERROR)


def notice_findings(state: ClusterState) -> Iterator[Finding | None]:
    """The findings about annotations, in steps: of unknown names, without effect, or where another annotation wins.

    The state may change between two findings.
    """
    for key, notices in tuple(state.notices.items()):
        yield from _noted(key, notices)
    yield from _pod_findings(state)


def _noted(key: ObjectKey, notices: Iterable[Notice]) -> Iterator[Finding]:
    return (Finding(key, notice.kind, notice.text, Severity(notice.severity)) for notice in notices)


def _pod_findings(state: ClusterState) -> Iterator[Finding | None]:
    """The findings about annotations of Pods that only a Service can have: one for each Service, not for each Pod.

    The text of a finding does not change while Pods come and go.
    """
    found: dict[Finding, None] = {}
    for pod in tuple(state.misannotated_pods.values()):
        yield None
        listed = {key for address in pod.ips for key, _ in state.endpoints_with_address(address)}
        own = sorted(key for key in listed if key.namespace == pod.namespace)  # a slice may list any address
        services = {key: service for key in own if (service := state.service(key)) is not None}
        headless = [key for key, service in services.items() if service.headless]
        for bad in pod.bad:
            text = (
                f"its Pods have the annotation {bad.name!r}, which has no effect on a Pod: "
                f"put {bad.meant!r} on the Service"
            )
            found.update((Finding(key, "annotation", text), None) for key in headless or services)
            if not services:
                text = (
                    f"Pods of namespace {pod.namespace!r} that no Service has as endpoints have the annotation "
                    f"{bad.name!r}, which has no effect on a Pod: put {bad.meant!r} on a headless Service"
                )
                found[Finding(CLUSTER, "annotation_of_pods", text)] = None
    yield from found


def key_findings(
    key: ObjectKey, policy: Policy | InvalidPolicy | None, governing: bool, ignored: bool, labels: NodeLabels
) -> Iterator[Finding]:
    """The findings about one Service's key list; the arguments are those of `policy_findings`, and the Nodes' labels.

    None about labels that only some Nodes have, which is often meant: `partial_findings`.
    """
    if isinstance(policy, InvalidPolicy):
        effect = "the Service stays unfiltered" if ignored else "no client gets an endpoint (on_invalid deny)"
        text = f"topology {policy.source.value}: {policy.problem}; {effect}"
        yield Finding(key, "invalid", text, Severity.ERROR)
        return
    if policy is None:
        return
    for warning in policy.warnings:
        yield Finding(key, "mended", f"topology {policy.source.value}: {warning}")
    if governing and not policy.is_empty and policy.keys != (ANY_KEY,):
        yield Finding(key, "governing", _GOVERNING)
    if labels.nodes:
        yield from _label_findings(key, policy, labels)


def _label_findings(key: ObjectKey, policy: Policy, labels: NodeLabels) -> Iterator[Finding]:
    for each in absent_keys(policy.keys, labels):
        nearest = nearest_label(each, labels.names)
        meant = f"; did you mean {nearest}?" if nearest else ""
        text = f"no Node has the label {each}, which therefore never matches{meant}"
        yield Finding(key, "ineffective", text, keys=(each,))
    for each, before in shadowed_keys(policy.keys, labels):
        text = f"the key {each} never decides, since {before} before it always matches; put {each} first"
        yield Finding(key, "ineffective", text, keys=(each,))


def partial_findings(
    key: ObjectKey, policy: Policy | InvalidPolicy | None, labels: NodeLabels, nodes: Collection[Node]
) -> Iterator[Finding]:
    """The findings about keys of one Service that some of these Nodes have as a label, and others do not."""
    for each in partial_keys(policy, labels) if isinstance(policy, Policy) else ():
        if without := nodes_without(each, nodes):
            named = tuple(without[:MAX_NAMED])
            text = _lacking(each, without, labels)
            yield Finding(key, "partial", text, Severity.INFO, len(without), named, keys=(each,))


def _lacking(label: str, without: Sequence[str], labels: NodeLabels) -> str:
    more = f" and {len(without) - _SHOWN} more" if len(without) > _SHOWN else ""
    names = ", ".join(without[:_SHOWN])
    return f"{len(without)} of {labels.nodes} Nodes lack the label {label}, so it matches nothing there: {names}{more}"
