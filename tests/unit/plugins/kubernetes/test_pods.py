"""Names of Pods, in each mode."""

import pytest

from tests.support.cluster_dig import ClusterDig, ZoneText, settings
from tests.support.model_builders import pod
from tests.unit.plugins.kubernetes.scene import few_services
from topodns.plugins.kubernetes.settings import PodMode

PODS = ZoneText("podns.pod.cluster.local.", "cluster.local. 5")
POD_MODES: dict[PodMode, dict[str, list[str]]] = {
    PodMode.DISABLED: {
        "10-240-0-1 A": ["NXDOMAIN"],
        "@ A": ["NXDOMAIN"],
        "pod.cluster.local. A": ["NODATA"],
    },
    PodMode.INSECURE: {
        "10-240-0-1 A": ["A 10.240.0.1"],
        "172-0-0-2 A": ["A 172.0.0.2"],
        "172-0-0-2 AAAA": ["NODATA"],
        "172-0-0-2 TXT": ["NODATA"],
        "172-0-0-2.podns.pod.ClusTer.local. SRV": ["SRV 0 100 0 172-0-0-2.podns.pod.ClusTer.local.", "+ A 172.0.0.2"],
        "fd00--5 AAAA": ["AAAA fd00::5"],
        "fd00--5 A": ["NODATA"],
        "1-2-3-4-5-6-7-8 AAAA": ["AAAA 1:2:3:4:5:6:7:8"],
        "--ffff-a00-1 A": ["A 10.0.0.1"],
        "1-2-3-256 A": ["NXDOMAIN"],
        "01-2-3-4 A": ["NXDOMAIN"],
        "10--0-0-1 AAAA": ["AAAA 10::1"],
        "blah A": ["NXDOMAIN"],
        "blah AAAA": ["NXDOMAIN"],
        "blah HINFO": ["NXDOMAIN"],
        "blah.pod-nons.pod.cluster.local. A": ["NXDOMAIN"],
        "@ A": ["NODATA"],
        "pod-nons.pod.cluster.local. A": ["NXDOMAIN"],
        "pod.cluster.local. A": ["NODATA"],
        "x.y.10-0-0-1 A": ["A 10.0.0.1"],
        "x.y.z.10-0-0-1 A": ["NXDOMAIN"],
    },
    PodMode.VERIFIED: {
        "10-240-0-1 A": ["A 10.240.0.1"],
        "10-240-0-1.testns.pod.cluster.local. A": ["NXDOMAIN"],
        "10-240-0-1.testns.pod.cluster.local. SRV": ["NXDOMAIN"],
        "172-0-0-2 A": ["NXDOMAIN"],
        "fd00--5 AAAA": ["AAAA fd00::5"],
        "@ A": ["NODATA"],
        "pod-nons.pod.cluster.local. A": ["NXDOMAIN"],
    },
}


@pytest.mark.parametrize(
    ("mode", "question", "records"),
    [
        pytest.param(mode, question, records, id=f"{mode.value}: {question}")
        for mode, table in POD_MODES.items()
        for question, records in table.items()
    ],
)
def test_pod_names_are_answered_in_each_mode(mode: PodMode, question: str, records: list[str]) -> None:
    dig = ClusterDig(few_services(), settings(pods=mode))
    assert dig(PODS.absolute(question)) == PODS.answer(question, *records)


def test_the_weight_of_a_verified_pod_name_is_shared_by_the_pods_that_have_its_address() -> None:
    host = tuple(pod(name, ["192.0.2.1"], namespace="podns") for name in ("host-1", "host-2"))
    dig = ClusterDig((*few_services(), *host), settings(pods=PodMode.VERIFIED))
    answer, *_ = dig("192-0-2-1.podns.pod.cluster.local. SRV").splitlines()
    assert answer.endswith("SRV 0 50 0 192-0-2-1.podns.pod.cluster.local.")


def test_a_verified_pod_name_rests_on_the_holder_of_the_address() -> None:
    dig = ClusterDig(few_services(), settings(pods=PodMode.VERIFIED))
    resolution = dig.resolve("10-9-9-9.podns.pod.cluster.local. A")
    assert [fact.kind for fact in resolution.facts] == ["namespace", "address"]
