"""A user with the role `edit` of one namespace: a real API server takes Services of thousands of ports, which take no
server the memory that others need, running or started anew.
"""

from pathlib import Path
from typing import Final

from tests.support.kube.cluster import Cluster
from tests.support.kube.host_process import serving_on_host
from tests.support.kube.objects import headless
from tests.support.kube.waiting import PATIENCE, eventually
from tests.support.server_process import Server as Process

MOST: Final = 0.6 * 512 * (1 << 20)  # octets
SERVICES, PORTS = 128, 15_000
LONG: Final = 5 * PATIENCE


def answers(process: Process, name: str) -> bool:
    reply = process.ask(f"{name}.svc.cluster.local A")
    return (reply.rcode, reply.data) == ("NOERROR", ["10.61.9.1"])


def test_services_of_many_ports_take_no_memory_that_others_need(cluster: Cluster, tmp_path: Path) -> None:
    slices = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "victim-1", "labels": {"kubernetes.io/service-name": "victim"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.61.9.1"]}],
        "ports": [{"name": "http", "port": 80}],
    }
    with cluster.namespace() as other, cluster.namespace() as tenant:
        other.create(headless("victim", app=""), slices)
        victim = f"victim.{other.name}"
        (tmp_path / "running").mkdir()
        (tmp_path / "new").mkdir()
        with serving_on_host(cluster, tmp_path / "running") as process:
            eventually(lambda: answers(process, victim), "the victim's name")
            for number in range(SERVICES):
                ports = [{"name": f"p{port}-{number}", "port": port} for port in range(1, PORTS + 1)]
                tenant.create(headless(f"wide-{number}", app="", ports=ports))
                assert answers(process, victim)
            eventually(lambda: process.metric("topodns_state_objects", kind="Service") >= SERVICES, "taken", LONG)
            assert process.peak_resident_bytes() <= MOST
        with serving_on_host(cluster, tmp_path / "new") as process:
            assert answers(process, victim)
            assert process.metric("topodns_state_objects", kind="Service") >= SERVICES
            assert process.peak_resident_bytes() <= MOST
