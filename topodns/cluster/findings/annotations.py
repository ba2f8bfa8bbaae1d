"""Findings about annotations: of Services, as their keys were read, and of Pods, where they have no effect."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Final

from topodns.cluster.findings.finding import CLUSTER, Finding, Findings, Severity
from topodns.cluster.model import MisannotatedPod, Notice, ObjectKey
from topodns.cluster.state import ClusterState

SERVICES: Final = 25  # with an annotated Pod as endpoint, looked at in one step


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
        services = yield from _own_services(state, pod)
        headless = [key for key, is_headless in services.items() if is_headless]
        for bad in pod.bad:
            yield None
            text = (
                f"its Pods have the annotation {bad.name!r}, which has no effect on a Pod: "
                f"put {bad.meant!r} on the Service"
            )
            for at, key in enumerate(headless or services, 1):
                found[Finding(key, "annotation", text)] = None
                if at % SERVICES == 0:
                    yield None
            if not services:
                text = (
                    f"Pods of namespace {pod.namespace!r} that no Service has as endpoints have the annotation "
                    f"{bad.name!r}, which has no effect on a Pod: put {bad.meant!r} on a headless Service"
                )
                found[Finding(CLUSTER, "annotation_of_pods", text)] = None
    yield from found


def _own_services(state: ClusterState, pod: MisannotatedPod) -> Generator[None, None, Mapping[ObjectKey, bool]]:
    """The Services with this Pod as an endpoint, in order, and whether they are headless; in steps."""
    found: dict[ObjectKey, bool] = {}
    for address in pod.ips:
        for at, (key, _) in enumerate(tuple(state.endpoints_with_address(address))):
            if at % SERVICES == 0:
                yield
            if key.namespace != pod.namespace or key in found:  # a slice may list any address
                continue
            service = state.service(key)
            if service is not None:
                found[key] = service.headless
    return dict(sorted(found.items()))
