"""Findings about the lines `default` of a `topology` directive."""

from topodns.cluster.findings.finding import CLUSTER, Finding, Findings
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
