"""Findings about annotations: of Services, as their keys were read, and of Pods, where they have no effect."""

from collections.abc import Iterable, Iterator

from topodns.cluster.findings.finding import CLUSTER, Finding, Findings, Severity
from topodns.cluster.model import Notice, ObjectKey
from topodns.cluster.state import ClusterState


def annotation_findings(state: ClusterState) -> Findings:
    """The findings about annotations: of unknown names, without effect, or where another annotation wins."""
    for key, notices in tuple(state.notices.items()):
        yield from noted(key, notices)
    yield from pod_findings(state)


def noted(key: ObjectKey, notices: Iterable[Notice]) -> Iterator[Finding]:
    """The findings of the notices about a Service's annotations."""
    return (Finding(key, notice.kind, notice.text, Severity(notice.severity)) for notice in notices)


def pod_findings(state: ClusterState) -> Findings:
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
