"""Findings about lines of the Corefile that select nothing: `namespaces`, `namespace_labels` and `labels` of
`kubernetes`, and `default` of `topology`.
"""

from typing import Final

from topodns.cluster.findings.finding import CLUSTER, Finding, Findings, Hides
from topodns.cluster.state import ClusterState
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.topology.findings import default_findings, unknown_namespace_steps
from topodns.plugins.topology.settings import TopologySettings

NAMESPACES: Final = 100  # whose labels are compared in one step


def corefile_findings(
    state: ClusterState, kubernetes: KubernetesSettings, topology: TopologySettings | None, hides: Hides
) -> Findings:
    """The findings about these options of the two directives, in steps; none before every kind is listed."""
    if not state.synced:
        return
    unknown: set[str] = set()
    yield from _namespace_findings(state, kubernetes, unknown)
    yield from _label_findings(state, kubernetes)
    if topology is not None:
        yield from default_findings(state, topology, hides, unknown)
    state.unknown_namespaces.keep_only(unknown)


def _namespace_findings(state: ClusterState, kubernetes: KubernetesSettings, unknown: set[str]) -> Findings:
    """About namespaces that do not exist; their names are added to `unknown`."""
    for name in sorted(kubernetes.namespaces) if "Namespace" in state.known else ():
        yield None
        if ("", name) not in state.namespaces:
            unknown.add(name)
            clause = yield from unknown_namespace_steps(state, name)
            place = kubernetes.places.get(f"namespaces {name}", "")
            yield Finding(CLUSTER, "namespaces", f"{place}: 'namespaces' {clause}")


def _label_findings(state: ClusterState, kubernetes: KubernetesSettings) -> Findings:
    selector, places = kubernetes.namespace_labels, kubernetes.places
    if selector is not None and "Namespace" in state.known:
        for at, namespace in enumerate(tuple(state.namespaces.values()), 1):
            if selector.matches(namespace.labels):
                break
            if at % NAMESPACES == 0:
                yield None
        else:
            text = f"no Namespace has the labels {selector.text!r}, so that every name of a Service is NXDOMAIN"
            yield Finding(CLUSTER, "namespace_labels", f"{places.get('namespace_labels', '')}: {text}")
    # An API server filters by `labels`, and no cluster has no Service at all.
    if kubernetes.labels is not None and "Service" in state.known and not state.services:
        text = f"no Service has the labels {kubernetes.labels.text!r}"
        yield Finding(CLUSTER, "labels", f"{places.get('labels', '')}: {text}")
