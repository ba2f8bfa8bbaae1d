"""Zone-scoped names, which the option `zonal` adds: CoreDNS's, case by case."""

import pytest

from tests.support.cluster_dig import ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.model import ClusterObject

NS = "testns"


def zones() -> list[ClusterObject]:
    return [
        namespace(NS),
        service("hdls", NS),
        service("drained", NS),
        service("clstr", NS, ["10.0.0.10"], ["http:80"]),
        service("ext", NS, external_name="example.org"),
        endpoint_slice(
            "hdls",
            endpoint("172.0.0.1", topology_zone="us-west-2a"),
            endpoint("172.0.0.2", topology_zone="US-west-2b"),
            endpoint("172.0.0.3", topology_zone="US-west-2b"),
            endpoint("172.0.0.4", topology_zone="rack.7"),
            namespace=NS,
            ports=["http:80"],
        ),
        endpoint_slice("hdls", endpoint("fd00::1", topology_zone="v6"), name="hdls-6", namespace=NS, ports=["http:80"]),
    ]


ZONAL = {
    "us-west-2a.pin._zone.hdls.testns.svc.cluster.local. A": """
        us-west-2a.pin._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.1
        """,
    "us-west-2b.pin._zone.hdls.testns.svc.cluster.local. A": """
        us-west-2b.pin._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.2
        us-west-2b.pin._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.3
        """,
    "rack.7.pin._zone.hdls.testns.svc.cluster.local. A": """
        rack.7.pin._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.4
        """,
    "us-west-2c.pin._zone.hdls.testns.svc.cluster.local. A": "NODATA cluster.local. 5",
    "us-west-2c.pin._zone.hdls.testns.svc.cluster.local. TXT": "NODATA cluster.local. 5",
    "us-west-2c.pin._zone.drained.testns.svc.cluster.local. A": "NODATA cluster.local. 5",
    "us-west-2a.prefer._zone.hdls.testns.svc.cluster.local. A": """
        us-west-2a.prefer._zone.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.1
        """,
    "none.prefer._zone.hdls.testns.svc.cluster.local. AAAA": """
        none.prefer._zone.hdls.testns.svc.cluster.local. 5 IN AAAA fd00::1
        """,
    "v6.prefer._zone.hdls.testns.svc.cluster.local. A": "NODATA cluster.local. 5",
    "us-west-2a.prefer._zone.hdls.testns.svc.cluster.local. TXT": "NODATA cluster.local. 5",
    "us-west-2b.pin._zone.hdls.testns.svc.cluster.local. SRV": """
        us-west-2b.pin._zone.hdls.testns.svc.cluster.local. 5 IN SRV 0 50 80 172-0-0-2.hdls.testns.svc.cluster.local.
        us-west-2b.pin._zone.hdls.testns.svc.cluster.local. 5 IN SRV 0 50 80 172-0-0-3.hdls.testns.svc.cluster.local.
        + 172-0-0-2.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.2
        + 172-0-0-3.hdls.testns.svc.cluster.local. 5 IN A 172.0.0.3
        """,
    "us-west-2a.pin._zone.ghost.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "us-west-2a.florp._zone.hdls.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "us-west-2a.pin._zone.clstr.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "us-west-2a.pin._zone.ext.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
}


@pytest.mark.parametrize(("question", "answer"), ZONAL.items(), ids=ZONAL.keys())
def test_zonal_answers_names_that_say_a_topology_zone(question: str, answer: str) -> None:
    assert ClusterDig(zones(), settings(zonal=True))(question) == expected(answer)


ABOVE_ZONES = {
    "_zone.hdls.testns.svc.cluster.local. A": "NODATA cluster.local. 5",
    "pin._zone.hdls.testns.svc.cluster.local. A": "NODATA cluster.local. 5",
    "prefer._zone.hdls.testns.svc.cluster.local. TXT": "NODATA cluster.local. 5",
    "zone.hdls.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "pin.zone.hdls.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "prefer.zone.hdls.testns.svc.cluster.local. SRV": "NXDOMAIN cluster.local. 5",
    "_pin._zone.hdls.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "_pin.zone.hdls.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "pin._zone.ghost.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
    "pin._zone.clstr.testns.svc.cluster.local. A": "NXDOMAIN cluster.local. 5",
}


@pytest.mark.parametrize(("question", "answer"), ABOVE_ZONES.items(), ids=ABOVE_ZONES.keys())
def test_the_labels_above_topology_zones_exist_in_the_spelling_of_names_below_them(question: str, answer: str) -> None:
    assert ClusterDig(zones(), settings(zonal=True))(question) == answer


def test_without_zonal_such_names_do_not_exist() -> None:
    dig = ClusterDig(zones(), settings())
    assert dig("us-west-2a.pin._zone.hdls.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
