"""Findings about labels of Nodes that are topology keys: Nodes that lack one, values that are alike or empty, and
hostnames that several Nodes have.
"""

import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from string import punctuation, whitespace
from typing import Final

from topodns.cluster.findings.finding import CLUSTER, MAX_NAMED, Finding, Findings, Hides, Severity, first_names
from topodns.cluster.findings.key_lists import (
    WELL_KNOWN,
    in_another_case,
    lacking,
    nodes_without,
    partial_findings,
    partial_keys,
)
from topodns.cluster.model import (
    CLUSTER_KEY,
    HOSTNAME_LABEL,
    NO_KEYS,
    REGION_LABEL,
    ZONE_LABEL,
    InvalidPolicy,
    Node,
    ObjectKey,
    Policy,
    label_name,
)
from topodns.cluster.node_labels import AlikeValues, ComparedValues, NodeLabels, hostname_of
from topodns.cluster.state import ClusterState

STEP: Final = 50  # policies, and tens of Nodes or values, looked at in one step
MAX_SHARED: Final = 100  # hostnames that several Nodes have
_AROUND: Final = punctuation + whitespace
_SEPARATOR: Final = re.compile(r"[-_.\s]+")
_NOUNS: Final = {ZONE_LABEL: "zones", REGION_LABEL: "regions"}


def labels_of(state: ClusterState) -> NodeLabels:
    """The labels of the Nodes once these are listed; before, of none."""
    return state.node_labels if state.synced else NodeLabels()


def label_findings(state: ClusterState, hides: Hides) -> Findings:
    """The findings about each label of Nodes that is a topology key of a Service or ServiceImport, in steps; none about
    keys of hidden namespaces.
    """
    labels, nodes = labels_of(state), tuple(state.all_nodes().values())
    yield None
    first: dict[str, str] = {}  # by label that some Nodes lack: whose key it is
    number: Counter[str] = Counter()
    used: set[str] = set()
    for at, (whose, policy) in enumerate(_policies(state, hides), 1):
        if policy is not None:
            used.update(policy.labels)
            for label in partial_keys(policy, labels):
                first.setdefault(label, whose)
                number[label] += 1
        if at % STEP == 0:
            yield None
    for label, whose in first.items():
        without: list[str] = []
        for some in _chunks(nodes):
            without += nodes_without(label, some)
            yield None
        if without:
            more = f" and {number[label] - 1} more" if number[label] > 1 else ""
            text = f"{lacking(label, sorted(without), labels)}; it is a topology key of {whose}{more}"
            named = tuple(sorted(without)[:MAX_NAMED])
            severity = Severity.WARNING if label in WELL_KNOWN else Severity.INFO
            yield Finding(CLUSTER, "partial", text, severity, len(without), named)
    yield from _value_findings(labels, state, used)
    for label in labels.compared.keys() - used:
        del labels.compared[label]


def service_label_findings(state: ClusterState, key: ObjectKey, policy: Policy | InvalidPolicy | None) -> Findings:
    """The findings about mistakes in the labels that one Service, or ServiceImport without `cluster`, has as keys:
    values that are alike or empty, hostnames that several Nodes have, and labels that some Nodes have in another case.

    In steps, and in the sentences of an audit. Without other labels that only some Nodes have, which is often meant.
    """
    if not isinstance(policy, Policy):
        return
    labels = labels_of(state)
    for found in _value_findings(labels, state, set(policy.labels)):
        yield replace(found, service=key, keys=()) if found is not None else None  # no key is at fault
    if partial := in_another_case(policy, labels):
        yield from partial_findings(key, partial, labels, state.all_nodes().values())


def import_label_findings(state: ClusterState, key: ObjectKey) -> Findings:
    """`service_label_findings` of a ServiceImport."""
    return service_label_findings(state, key, _of_labels(state.cluster_set.keys.get(key, NO_KEYS).policy))


def _policies(state: ClusterState, hides: Hides) -> Iterator[tuple[str, Policy | None]]:
    """Whose policy it is, and the policy, of a ServiceImport without `cluster`; None for an invalid or a hidden one."""
    for namespace, name in tuple(state.services):  # not `Policies.all`, which takes 2 ms for 10,000
        policy = state.policies.get(ObjectKey(namespace, name))
        yield f"{namespace}/{name}", policy if isinstance(policy, Policy) and not hides(namespace) else None
    for key, keys in tuple(state.cluster_set.keys.items()):
        own = keys.policy if not hides(key.namespace) else None
        yield f"ServiceImport {key}", _of_labels(own)


def _of_labels(policy: Policy | InvalidPolicy | None) -> Policy | None:
    """The policy of a ServiceImport without the key `cluster`, which is no label; None for an invalid one."""
    if not isinstance(policy, Policy):
        return None
    return replace(policy, keys=tuple(each for each in policy.keys if label_name(each) != CLUSTER_KEY))


def _chunks(values: Sequence[Node]) -> Iterator[Sequence[Node]]:
    return (values[at : at + 10 * STEP] for at in range(0, len(values), 10 * STEP))


def _value_findings(labels: NodeLabels, state: ClusterState, used: set[str]) -> Findings:
    """The findings about the values of these labels, in steps."""
    yield from _compared_findings(labels, state, used)
    if HOSTNAME_LABEL in used:
        yield from _hostname_findings(labels, state)


def _hostname_findings(labels: NodeLabels, state: ClusterState) -> Findings:
    """The findings about hostnames that several Nodes have, the first MAX_SHARED, in steps."""
    number = 0
    for at, (value, others) in enumerate(tuple(labels.other_hostnames.items()), 1):
        namesake = state.node(value)
        own = namesake is not None and hostname_of(namesake) == value
        if len(others) + own > 1 and number < MAX_SHARED:
            number += 1
            names = nsmallest(MAX_NAMED, {*others, value} if own else others)
            by_name = own and namesake is not None and HOSTNAME_LABEL not in namesake.labels
            yield _shared_hostname(value, names, len(others) + own, by_name)
        if at % STEP == 0:
            yield None


def _shared_hostname(value: str, names: Sequence[str], count: int, by_name: bool) -> Finding:
    """The finding about a hostname that so many Nodes have. `by_name`: one of them, as it lacks the label."""
    which = f"{' and '.join(names)} both" if count == 2 else f"{first_names(names, count)} all"
    named = f" ({value} by its name)" if by_name else ""
    text = f"Nodes {which} have kubernetes.io/hostname={value}{named}: one domain"
    return Finding(CLUSTER, "shared_hostname", text, nodes=count, node_names=tuple(names), keys=(HOSTNAME_LABEL,))


def _compared_findings(labels: NodeLabels, state: ClusterState, used: set[str]) -> Findings:
    """The findings about values that are alike or empty, looked for once while a label of Nodes stays."""
    for label in sorted(each for each in used if labels.with_label(each)):
        if label == HOSTNAME_LABEL:  # each Node has its own
            continue
        revision, compared = labels.compared.get(label, (-1, ComparedValues()))
        if revision != labels.revisions[label]:
            revision = labels.revisions[label]
            compared = yield from _compared_steps(label, tuple(state.all_nodes().values()))
            labels.compared[label] = revision, compared
        for each in compared.alike:
            yield Finding(CLUSTER, "alike_values", _sentence(label, each), node_names=_names(each), keys=(label,))
        if compared.empty:
            yield _of_empty(label, compared.empty)
        yield None


def _compared_steps(label: str, nodes: Sequence[Node]) -> Generator[None, None, ComparedValues]:
    names: dict[str, list[str]] = {}  # by value
    for some in _chunks(nodes):
        for node in some:
            value = node.labels.get(label)
            if value is not None:
                names.setdefault(value, []).append(node.name)
        yield
    alike = yield from _alike_steps(names)
    is_mark = names.keys() == {""} and label not in WELL_KNOWN  # as node-role.kubernetes.io/worker, without any value
    return ComparedValues(alike, () if is_mark else tuple(sorted(names.get("", ()))))


def _alike_steps(names: Mapping[str, Sequence[str]]) -> Generator[None, None, tuple[AlikeValues, ...]]:
    """The values among these, with the names of their Nodes, that are alike; in steps."""
    groups: dict[str, list[str]] = {}
    for at, value in enumerate(names, 1):
        groups.setdefault(_squeezed(value).lower(), []).append(value)
        if at % (10 * STEP) == 0:
            yield
    found: list[AlikeValues] = []
    for group in groups.values():
        one, *others = sorted(group)
        for other in others[: MAX_NAMED - len(found)]:
            one_names, other_names = (tuple(sorted(names[value])[:2]) for value in (one, other))
            found.append(AlikeValues((one, other), (one_names, other_names)))
    return tuple(found)


def _squeezed(value: str) -> str:
    """The value without punctuation and spaces around it, and with one hyphen for each separator within."""
    return _SEPARATOR.sub("-", value.strip(_AROUND))


def _names(alike: AlikeValues) -> tuple[str, ...]:
    return tuple(names[0] for names in alike.nodes)


def _of_empty(label: str, names: Sequence[str]) -> Finding:
    which = "1 Node has" if len(names) == 1 else f"{len(names)} Nodes have"
    text = f"{which} {label} with an empty value, which is a domain of its own: {first_names(names)}"
    named = tuple(names[:MAX_NAMED])
    return Finding(CLUSTER, "empty_value", text, nodes=len(names), node_names=named, keys=(label,))


def _sentence(label: str, alike: AlikeValues) -> str:
    one, other = (
        f"{value!r} ({names[0]}{', ...' if len(names) > 1 else ''})"
        for value, names in zip(alike.values, alike.nodes, strict=True)
    )
    of = "" if label in _NOUNS else f" of the label {label}"
    by = " and ".join(differences(*alike.values))
    return f"{_NOUNS.get(label, 'values')} {one} and {other}{of} differ in {by} only, and are two domains"


def differences(one: str, other: str) -> Iterator[str]:
    """What two values that are alike differ in: `case`, `spaces`, `punctuation`."""
    if _squeezed(one) != _squeezed(other):
        yield "case"
    (one_spaces, one_rest), (other_spaces, other_rest) = map(_spaces_and_rest, (one, other))
    if one_spaces != other_spaces or (one_rest == other_rest and one.lower() != other.lower()):
        yield "spaces"
    if one_rest != other_rest:
        yield "punctuation"


def _spaces_and_rest(value: str) -> tuple[int, str]:
    """The number of spaces, and all other characters in small letters."""
    rest = "".join(value.split())
    return len(value) - len(rest), rest.lower()
