"""Findings about the lines `default` of a `topology` directive."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

from topodns.cluster.findings.finding import CLUSTER, Finding, Findings, Hides
from topodns.cluster.findings.key_lists import absent_keys, no_node_has
from topodns.cluster.model import InvalidPolicy, KeySource, Policy, label_name
from topodns.cluster.state import ClusterState
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.keys import DefaultKeys

SERVICES: Final = 20  # compared with the lines `default` in one step


def default_findings(state: ClusterState, topology: TopologySettings, hides: Hides, unknown: set[str]) -> Findings:
    """The findings about each line `default` that holds for no Service by mistake, in steps.

    It names a namespace that does not exist (added to `unknown`) or that `kubernetes` hides, its labels are those of no
    headless Service, or no Node has a key of it. Of a line that gives its keys to a Service the latter is a finding
    about that Service.
    """
    for default in topology.defaults if "Namespace" in state.known else ():
        for name in default.namespaces:
            yield None
            if ("", name) not in state.namespaces:
                unknown.add(name)
                clause = yield from unknown_namespace_steps(state, name)
                yield Finding(CLUSTER, "default", f"{default.place}: 'default' {clause}")
            elif hides(name):
                text = f"{default.place}: 'default' names the namespace {name!r}, which 'kubernetes' hides"
                yield Finding(CLUSTER, "default", text)
    labels = state.node_labels
    unmatched, idle = yield from _idle_steps(state, topology.defaults, hides)
    for default in unmatched:
        which = "headless Service of its namespaces" if default.namespaces else "headless Service"
        text = f"{default.place}: 'default' has the labels {default.labels.text!r}, which no {which} has"
        yield Finding(CLUSTER, "default", text)
    for default in idle:
        for key in absent_keys(default.policy.keys, labels):
            sentence = no_node_has(label_name(key), default.policy, labels.names)
            yield Finding(CLUSTER, "default", f"{default.place}: 'default': {sentence}", keys=(key,))


def unknown_namespace_steps(state: ClusterState, name: str) -> Generator[None, None, str]:
    """The predicate of a sentence about an option that names a namespace that does not exist, in steps."""
    similar = yield from state.unknown_namespaces.similar_steps(name)
    meant = f", did you mean {similar!r}?" if similar else ""
    return f"names the namespace {name!r}, which does not exist{meant}"


def _idle_steps(
    state: ClusterState, defaults: Sequence[DefaultKeys], hides: Hides
) -> Generator[None, None, tuple[list[DefaultKeys], list[DefaultKeys]]]:
    """The lines with labels that no headless Service has, and those with keys that no Node has that give these to no
    Service; in steps.
    """
    exists = state.namespaces.keys()
    unmatched = [
        each
        for each in defaults
        if each.labels.requirements and (not each.namespaces or any(("", name) in exists for name in each.namespaces))
    ]
    idle = [each for each in defaults if state.node_labels.nodes and absent_keys(each.policy.keys, state.node_labels)]
    for at, service in enumerate(tuple(state.services.values()) if unmatched or idle else (), 1):
        if at % SERVICES == 0:
            yield
        if not service.headless or hides(service.namespace):
            continue
        unmatched = [each for each in unmatched if not each.holds_for(service)]
        policy = state.policies.get(service.key) if idle else None
        if policy is not None and policy.source is KeySource.DEFAULT:
            giver = next((each for each in defaults if each.holds_for(service)), None)
            idle = [each for each in idle if each is not giver]
        if not unmatched and not idle:
            break
    return unmatched, idle


def with_origin(found: Finding, policy: Policy | InvalidPolicy | None, topology: TopologySettings) -> Finding:
    """This finding about a Service with this policy; where it is about keys of a `default`, with the place of that.

    With several places if several lines have the keys for the namespace: their labels are not looked at.
    """
    if not found.keys or not isinstance(policy, Policy) or policy.source is not KeySource.DEFAULT:
        return found
    namespace = found.service.namespace
    places = [
        each.place
        for each in topology.defaults
        if each.policy.keys == policy.keys and (not each.namespaces or namespace in each.namespaces)
    ]
    return replace(found, text=f"{found.text} (keys of 'default', {' or '.join(places)})") if places else found
