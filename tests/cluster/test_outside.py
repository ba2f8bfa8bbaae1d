"""topodns as a process outside of the cluster. tests/e2e/test_api_server.py takes its API server away."""

from pathlib import Path

from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.host_process import serving_on_host
from tests.support.kube.objects import headless, manual_slice
from tests.support.kube.waiting import becomes


def test_outside_the_cluster_a_kubeconfig_is_enough(cluster: Cluster, place: Place, tmp_path: Path) -> None:
    with serving_on_host(cluster, tmp_path) as on_the_host:
        assert on_the_host.ask("kubernetes.default.svc.cluster.local A").data == ["10.96.0.1"]
        place.create(headless("web", app=""), manual_slice("web", "web", [("198.51.100.1", "node1")]))
        becomes(lambda: on_the_host.ask(f"{place.fqdn('web')} A").data, ["198.51.100.1"])
