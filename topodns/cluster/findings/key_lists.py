"""Findings about the key list of a Service: invalid, ineffective, harmful, or partly without effect."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from topodns.cluster.findings.finding import MAX_NAMED, Finding, Severity, first_names
from topodns.cluster.findings.key_labels import (
    absent_keys,
    nearest_label,
    nodes_without,
    partial_keys,
    shadowed_keys,
)
from topodns.cluster.model import ANY_KEY, InvalidPolicy, Node, ObjectKey, Policy
from topodns.cluster.node_labels import NodeLabels

_GOVERNING: Final = (
    "topology keys on the governing Service of a StatefulSet hide its members from each other when they look up the "
    "Service's name; give clients a headless Service of their own"
)


def key_findings(
    key: ObjectKey, policy: Policy | InvalidPolicy | None, governing: bool, ignored: bool, labels: NodeLabels
) -> Iterator[Finding]:
    """The findings about one Service's key list, with the labels of the Nodes.

    `governing`: `ClusterState.governs`. `ignored` is on_invalid: True (ignore) leaves a Service with an invalid policy
    unfiltered, False (deny) empties it. None about labels that only some Nodes have, which is often meant:
    `partial_findings`.
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
            text = lacking(each, without, labels)
            yield Finding(key, "partial", text, Severity.INFO, len(without), named, keys=(each,))


def lacking(label: str, without: Sequence[str], labels: NodeLabels) -> str:
    """The sentence about the Nodes `without` this label."""
    names = first_names(without)
    return f"{len(without)} of {labels.nodes} Nodes lack the label {label}, so it matches nothing there: {names}"
