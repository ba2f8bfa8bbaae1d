"""Names of Pods, in each mode."""

import pytest

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, pod, service
from topodns.cluster.model import ClusterObject
from topodns.plugins.kubernetes.settings import PodMode

NS = "testns"


def cluster() -> list[ClusterObject]:
    return [
        namespace(NS),
        namespace("podns"),
        service("svc1", NS, ["10.0.0.1"], ["http:80"]),
        service("hdls1", NS),
        service("external", NS, external_name="ext.interwebs.test"),
        endpoint_slice("svc1", endpoint("172.0.0.1", hostname="ep1a"), namespace=NS, ports=["http:80"]),
        endpoint_slice("hdls1", endpoint("172.0.0.2"), namespace=NS, ports=["http:80"]),
        pod("web", ["10.240.0.1", "fd00::5"], namespace="podns"),
    ]


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(cluster(), settings(), own_addresses=["10.1.2.3", "fd00::9"])


POD_MODES = {
    "disabled": (
        PodMode.DISABLED,
        {
            "10-240-0-1.podns.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
            "podns.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
            "pod.cluster.local. A": "NODATA cluster.local. 5",
        },
    ),
    "insecure": (
        PodMode.INSECURE,
        {
            "10-240-0-1.podns.pod.cluster.local. A": "10-240-0-1.podns.pod.cluster.local. 5 IN A 10.240.0.1",
            "172-0-0-2.podns.pod.cluster.local. A": "172-0-0-2.podns.pod.cluster.local. 5 IN A 172.0.0.2",
            "172-0-0-2.podns.pod.cluster.local. AAAA": "NODATA cluster.local. 5",
            "172-0-0-2.podns.pod.cluster.local. TXT": "NODATA cluster.local. 5",
            "172-0-0-2.podns.pod.ClusTer.local. SRV": (
                "172-0-0-2.podns.pod.ClusTer.local. 5 IN SRV 0 100 0 172-0-0-2.podns.pod.ClusTer.local.\n"
                "+ 172-0-0-2.podns.pod.ClusTer.local. 5 IN A 172.0.0.2"
            ),
            "fd00--5.podns.pod.cluster.local. AAAA": "fd00--5.podns.pod.cluster.local. 5 IN AAAA fd00::5",
            "fd00--5.podns.pod.cluster.local. A": "NODATA cluster.local. 5",
            "1-2-3-4-5-6-7-8.podns.pod.cluster.local. AAAA": (
                "1-2-3-4-5-6-7-8.podns.pod.cluster.local. 5 IN AAAA 1:2:3:4:5:6:7:8"
            ),
            "--ffff-a00-1.podns.pod.cluster.local. A": "--ffff-a00-1.podns.pod.cluster.local. 5 IN A 10.0.0.1",
            "1-2-3-256.podns.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
            "01-2-3-4.podns.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
            "10--0-0-1.podns.pod.cluster.local. AAAA": ("10--0-0-1.podns.pod.cluster.local. 5 IN AAAA 10::1"),
            "blah.podns.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
            "blah.podns.pod.cluster.local. AAAA": "NXDOMAIN cluster.local. 5",
            "blah.podns.pod.cluster.local. HINFO": "NXDOMAIN cluster.local. 5",
            "blah.pod-nons.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
            "podns.pod.cluster.local. A": "NODATA cluster.local. 5",
            "pod-nons.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
            "pod.cluster.local. A": "NODATA cluster.local. 5",
            "x.y.10-0-0-1.podns.pod.cluster.local. A": "x.y.10-0-0-1.podns.pod.cluster.local. 5 IN A 10.0.0.1",
            "x.y.z.10-0-0-1.podns.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
        },
    ),
    "verified": (
        PodMode.VERIFIED,
        {
            "10-240-0-1.podns.pod.cluster.local. A": "10-240-0-1.podns.pod.cluster.local. 5 IN A 10.240.0.1",
            "10-240-0-1.testns.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
            "10-240-0-1.testns.pod.cluster.local. SRV": "NXDOMAIN cluster.local. 5",
            "172-0-0-2.podns.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
            "fd00--5.podns.pod.cluster.local. AAAA": "fd00--5.podns.pod.cluster.local. 5 IN AAAA fd00::5",
            "podns.pod.cluster.local. A": "NODATA cluster.local. 5",
            "pod-nons.pod.cluster.local. A": "NXDOMAIN cluster.local. 5",
        },
    ),
}


@pytest.mark.parametrize(
    ("mode", "question", "answer"),
    [
        pytest.param(mode, question, answer, id=f"{name}: {question}")
        for name, (mode, table) in POD_MODES.items()
        for question, answer in table.items()
    ],
)
def test_pod_names_are_answered_in_each_mode(mode: PodMode, question: str, answer: str) -> None:
    assert ClusterDig(cluster(), settings(pods=mode))(question) == answer


def test_the_weight_of_a_verified_pod_name_is_shared_by_the_pods_that_have_its_address() -> None:
    host = tuple(pod(name, ["192.0.2.1"], namespace="podns") for name in ("host-1", "host-2"))
    dig = ClusterDig((*cluster(), *host), settings(pods=PodMode.VERIFIED))
    answer, *_ = dig("192-0-2-1.podns.pod.cluster.local. SRV").splitlines()
    assert answer.endswith("SRV 0 50 0 192-0-2-1.podns.pod.cluster.local.")


def test_a_verified_pod_name_rests_on_the_holder_of_the_address() -> None:
    dig = ClusterDig(cluster(), settings(pods=PodMode.VERIFIED))
    resolution = dig.resolve("10-9-9-9.podns.pod.cluster.local. A")
    assert resolution is not None
    assert [fact.kind for fact in resolution.facts] == ["namespace", "address"]
