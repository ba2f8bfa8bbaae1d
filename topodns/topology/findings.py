"""Findings about the key lists of a cluster's Services and objects that are left out, and their type. They need no
endpoints: they are in the log, in Events and in an audit. Those about endpoints are in `inspect.findings`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from topodns.cluster.left_out import FURTHER
from topodns.cluster.model import EndpointSlice, InvalidPolicy, ObjectKey, Policy
from topodns.cluster.state import ClusterState

CLUSTER: Final = ObjectKey("", "")
"""In place of a Service, for findings about all of them."""

MAX_NAMED: Final = 10  # Nodes, zones, endpoints or Pods that a finding names

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

    invalid: the key list breaks a rule. mended: parts of the list are ignored, or topodns.io/ttl is ignored or clamped.
    governing: the Service is a StatefulSet's governing one, so its members may not find each other. misplaced: the
    Service has keys, but is not headless. overridden: two annotations are set, one of them wins.
    uncovered: clients on some Nodes get no endpoint. empty: no endpoint is ready. single_point: an endpoint alone
    serves clients on several Nodes. skew: an endpoint has far more clients than others. ineffective: a key that no Node
    has, or that decides for no client. unlocated: clients that cannot be located. no_nodes: no Node is known.
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
    """
    governing = state.governing_services()
    for key, policy in tuple(state.policies.items()):
        yield from key_findings(key, policy, key in governing, ignored)
        yield None
    yield from notice_findings(state)


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


def notice_findings(state: ClusterState) -> Iterator[Finding]:
    """The findings about keys without effect, as the Service is not headless, or another annotation wins.

    The state may change between two findings.
    """
    for key, notice in tuple(state.policy_notices().items()):
        service = state.service(key)
        if service is not None and service.headless:
            yield Finding(key, "overridden", notice, Severity.INFO)
        else:
            yield Finding(key, "misplaced", notice)


def key_findings(
    key: ObjectKey, policy: Policy | InvalidPolicy | None, governing: bool, ignored: bool
) -> Iterator[Finding]:
    """The findings about one Service's key list alone; the arguments are those of `policy_findings`."""
    if isinstance(policy, InvalidPolicy):
        effect = "the Service stays unfiltered" if ignored else "no client gets an endpoint (on_invalid deny)"
        text = f"topology {policy.source.value}: {policy.problem}; {effect}"
        yield Finding(key, "invalid", text, Severity.ERROR)
        return
    if policy is None:
        return
    for warning in policy.warnings:
        yield Finding(key, "mended", f"topology {policy.source.value}: {warning}")
    if governing and not policy.is_empty:
        yield Finding(key, "governing", _GOVERNING)
