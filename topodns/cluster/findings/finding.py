"""A finding: one problem of a Service or of the whole cluster, with its severity and its text."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from topodns.cluster.model import ObjectKey

CLUSTER: Final = ObjectKey("", "")
"""In place of a Service, for findings about all of them."""

MAX_NAMED: Final = 10  # Nodes, zones, endpoints or Pods that a finding names
_SHOWN: Final = 5  # names in a text

_OF_KUBERNETES: Final = frozenset(("namespaces", "namespace_labels", "labels"))  # its options
_PASSING: Final = _OF_KUBERNETES | {
    *("cluster_id", "default", "no_namespace", "no_service", "no_slice", "other_zone"),
    *("shared_address", "shared_hostname", "shared_pod_cidr", "unknown_node"),
}


class Severity(StrEnum):
    """The severity of a finding; members are in the order from the worst."""

    ERROR = "error"  # clients get no endpoint, or the keys are not those that were meant
    WARNING = "warning"  # one failure away from it, or most likely a mistake
    INFO = "info"


# Their texts name what they are about.
_COMPLETE: Final = _OF_KUBERNETES | {"annotation_elsewhere", "cluster_id", "default", "import", "no_service"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of one Service's policy, or of the whole cluster (service CLUSTER). `kind` is one of

    annotation: an annotation of the Service, or of its Pods, has no effect: its name is unknown, for example.
    annotation_of_pods: the same of Pods that no Service has as endpoints. annotation_elsewhere: the same of
    a Namespace, of Nodes, and of an EndpointSlice without a Service. keys_of_namespace: the key list of a
    Namespace breaks a rule, or parts of it are ignored.
    default: a `default` of the Corefile names a namespace that does not exist or is hidden, selects no Service by its
    labels, or has a key that no Node has. namespaces, namespace_labels, labels: what the option of `kubernetes` selects
    does not exist.
    import: keys of a ServiceImport are invalid or match nothing, or an annotation has no effect. cluster_id: keys of
    ServiceImports need the id of this cluster, which is not known.
    invalid: the key list breaks a rule. mended: parts of the list are ignored, topodns.io/ttl
    is ignored or clamped, or a guard changes no answer.
    governing: the Service is a StatefulSet's governing one, so its members may not find each other. misplaced: the
    Service has keys, but is not headless. overridden: two annotations are set, one of them wins.
    no_namespace: the Service's namespace does not exist. no_slice: the Service has no EndpointSlice, or none of one
    of its families. no_service: an EndpointSlice is of no Service that exists. unknown_node: endpoints of the Service
    are on a Node that does not exist. other_zone: their slices have another zone than their Node. shared_address,
    shared_pod_cidr: several Nodes have it, so it locates no client. shared_hostname: several Nodes have it, and are one
    domain.
    uncovered: clients on some Nodes get no endpoint. empty: no endpoint is ready. single_point: an endpoint alone
    serves clients on several Nodes. skew: an endpoint has far more clients than others. ineffective: a key that no Node
    has, or that decides for no client. partial: a key that only some Nodes have. alike_values: two values of a key
    differ in case, punctuation or spaces only. empty_value: Nodes have it with an empty value. unlocated: clients that
    cannot be located. no_nodes: no Node is known.
    left_out: objects of the Service are left out (`cluster.namespace_budget`), so its names are SERVFAIL.
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
    noun: str = field(default="", compare=False)  # what `names` are of: Pod or endpoint
    names: tuple[str, ...] = field(default=(), compare=False)  # of objects it concerns, at most MAX_NAMED, not in text
    imported: ObjectKey | None = None  # the ServiceImport of an `import`
    of_slice: ObjectKey | None = field(default=None, compare=False)  # the EndpointSlice of a `no_service`
    of_namespace: str = field(default="", compare=False)  # of a namespace, or of an object in it that is no Service

    @property
    def subject(self) -> ObjectKey:
        """The Service or ServiceImport that it is about."""
        return self.imported or self.service

    @property
    def namespace(self) -> str:
        """The namespace that it is about, or whose object; "" for none."""
        return self.subject.namespace or self.of_namespace

    @property
    def text_with_names(self) -> str:
        """`TEXT (Pods a, b, ...)`, for audits and explanations. In the log each rollout would be a new line."""
        more = ", ..." if len(self.names) > _SHOWN else ""
        noun = self.noun if len(self.names) == 1 else f"{self.noun}s"
        return f"{self.text} ({noun} {', '.join(self.names[:_SHOWN])}{more})" if self.names else self.text

    def __str__(self) -> str:
        if self.kind in _COMPLETE:
            return self.text
        if self.service == CLUSTER:
            return f"all Services: {self.text}"
        return f"Service {self.service}: {self.text}"

    @property
    def plugin(self) -> str:
        """The directive that it is about, as in a line of the log."""
        return "kubernetes" if self.kind in _OF_KUBERNETES else "topology"

    @property
    def may_pass(self) -> bool:
        """Whether several objects contradict each other, which a watch of each kind may bring about for a moment."""
        return self.kind in _PASSING


Findings = Iterator[Finding | None]
"""In small steps; None is a step without a finding. The state may change between two steps."""


Hides = Callable[[str], bool]
"""Whether names in this namespace are denied by the options of `kubernetes` (`plugins.kubernetes.zone.excludes`)."""


def hides_none(_: str) -> bool:
    return False


def visible(findings: Findings, hides: Hides) -> Findings:
    """These findings without those about namespaces that are hidden, whose names are NXDOMAIN."""
    for found in findings:
        yield None if found is not None and found.namespace and hides(found.namespace) else found


def first_names(names: Sequence[str], count: int = 0) -> str:
    """The first of these names as text: `a, b and 3 more`. `count`: of all, where `names` are the first of them."""
    further = max(count, len(names)) - _SHOWN
    more = f" and {further} more" if further > 0 else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
