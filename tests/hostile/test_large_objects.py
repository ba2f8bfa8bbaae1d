"""A user who may write one namespace cannot delay DNS by objects as large as etcd takes, changed again and again."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.api_objects import Object, endpoint_slice, service
from tests.support.program_with_fake_api import IN_A, Scene, scene
from tests.support.server_process import until
from tests.support.steady_client import Victim, victim

OCTETS = 1_500_000  # of one object, in etcd
EVENT_P99 = 0.05  # seconds of the server's CPU between a question and its reply; it was 0.37 to 1.85
CHANGES = 12
ASKED = 100
PORTS = [{"name": f"p{number}", "port": number, "protocol": "TCP"} for number in range(1, 20_001)]


def with_external_addresses() -> Object:
    made = service("large", cluster_ip="10.96.0.77")
    made["spec"]["externalIPs"] = [f"2001::{number:x}" for number in range(OCTETS // 18)]
    return made


def with_addresses() -> Object:
    """As many as the API takes: 100 of each of 1,000 endpoints."""
    made = endpoint_slice("large", {"10.100.0.1": "n1"})
    (one,) = made["endpoints"]
    made["endpoints"] = [
        {**one, "addresses": [f"10.1{number // 256}.{number % 256}.{last}" for last in range(100)]}
        for number in range(1000)
    ]
    return made


def with_ports() -> Object:
    made = endpoint_slice("large", {"10.100.0.1": "n1", "10.100.0.2": "n2"})
    made["ports"] = PORTS
    return made


def changed_all_the_time(there: Scene, large: Object, question: str) -> Victim:
    """The fate of a victim while the object is changed, and asked about, as soon as the last change was answered."""
    done = threading.Event()

    def change() -> None:
        for number in range(CHANGES):
            large["metadata"]["annotations"] = {"changed": str(number)}
            there.api.put(large)
            there.server.ask(question, IN_A)
            done.wait(0.1)
        done.set()

    with victim(there.server, "front.default.svc.cluster.local A", "10.96.0.1", per_second=100) as fate:
        thread = threading.Thread(target=change)
        thread.start()
        until(lambda: done.is_set() and fate.asked >= ASKED, "changes are over")
        thread.join()
    return fate


@pytest.mark.parametrize(
    ("large", "question"),
    [
        pytest.param(with_external_addresses, "large.default.svc.cluster.local A", id="external addresses"),
        pytest.param(with_addresses, "large.default.svc.cluster.local A", id="addresses"),
        pytest.param(with_ports, "large.default.svc.cluster.local SRV", id="ports"),
        pytest.param(with_ports, "_tcp.large.default.svc.cluster.local A", id="ports by protocol"),
    ],
)
def test_objects_as_large_as_they_can_be_do_not_delay_dns(
    tmp_path: Path, large: Callable[[], Object], question: str
) -> None:
    made = large()
    headless = () if made["kind"] == "Service" else (service("large"),)
    with scene(tmp_path, *headless, made) as there:
        fate = changed_all_the_time(there, made, question)
    assert (fate.lost, fate.wrong) == (0, []), fate
    assert fate.cpu(99) <= EVENT_P99, fate


def test_of_a_service_with_too_many_ports_all_that_is_read_is_answered(tmp_path: Path) -> None:
    with scene(tmp_path, service("large"), with_ports()) as there:
        assert there.data("large.default.svc.cluster.local A") == ["10.100.0.1", "10.100.0.2"]
        assert there.data("_p1000._tcp.large.default.svc.cluster.local A") == ["10.100.0.1", "10.100.0.2"]
        assert there.data("_p1001._tcp.large.default.svc.cluster.local A") == ["NXDOMAIN"]
        until(lambda: there.witness.asked, "the witness asked")


@pytest.mark.parametrize("pod", ["\N{PILE OF POO}", "a" * 64, "a.b"], ids=["no ASCII", "too long", "two labels"])
def test_a_slice_of_a_pod_that_cannot_be_does_not_take_the_name_of_an_address(tmp_path: Path, pod: str) -> None:
    """The API server does not look at the name in a `targetRef`."""
    forged = endpoint_slice("forged", {"10.61.1.2": "n1"}, name="forged-1")
    forged["endpoints"][0]["targetRef"] = {"kind": "Pod", "name": pod, "namespace": "default"}
    origins = "cluster.local 61.10.in-addr.arpa"
    objects = (service("forged"), forged)
    with scene(tmp_path, *objects, options="endpoint_pod_names", origins=origins) as there:
        until(lambda: there.witness.asked, "the witness asked")
        assert "pod-10-61-1-2.plain.default.svc.cluster.local." in there.data("2.1.61.10.in-addr.arpa PTR")
