"""Pods that ask, on each node of a lab."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.objects import PYTHON_IMAGE, headless, pod_spec, sleeping_container, workload
from tests.support.kube.query_pods import Asker, asker

Askers = Mapping[str, Asker]


@contextmanager
def client_pods(cluster: Cluster, keys: str | None = None, image: str = PYTHON_IMAGE) -> Iterator[Place]:
    """On each node a pod and a pod of the node's network; the pods behind a headless Service with these keys."""
    spec = pod_spec(sleeping_container(image))
    host = pod_spec(sleeping_container(image), hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")
    with cluster.namespace("clients") as place:
        place.create(
            workload("DaemonSet", "client", {}, spec),
            workload("DaemonSet", "host-client", {}, host),
            headless("client", keys, ipFamilyPolicy="RequireDualStack"),
        )
        yield place


def askers_of(cluster: Cluster, place: Place, app: str) -> Iterator[Askers]:
    """By node: the pod of this app, asking; for a fixture to yield from."""
    with ExitStack() as stack:
        pods = place.pods_once_ready(app, len(cluster.nodes))
        askers = {pod.node: stack.enter_context(asker(cluster.lab, pod)) for pod in pods}
        yield dict(sorted(askers.items()))
