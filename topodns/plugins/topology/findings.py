"""Findings about the lines `default` of a `topology` directive."""

from dataclasses import replace

from topodns.cluster.findings.finding import CLUSTER, Finding, Findings
from topodns.cluster.model import InvalidPolicy, KeySource, Policy
from topodns.cluster.state import ClusterState
from topodns.plugins.topology.settings import TopologySettings


def default_findings(state: ClusterState, topology: TopologySettings) -> Findings:
    """The findings about namespaces that a `default` names and that do not exist, in steps."""
    if not state.synced or "Namespace" not in state.known:
        return
    unknown: set[str] = set()
    for default in topology.defaults:
        for name in default.namespaces:
            yield None
            if ("", name) not in state.namespaces:
                unknown.add(name)
                similar = yield from state.unknown_namespaces.similar_steps(name)
                meant = f", did you mean {similar!r}?" if similar else ""
                text = f"{default.place}: 'default' names the namespace {name!r}, which does not exist{meant}"
                yield Finding(CLUSTER, "default", text)
    state.unknown_namespaces.keep_only(unknown)


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
