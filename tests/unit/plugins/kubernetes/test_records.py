"""Records of endpoints: their number and their weight."""

import pytest

from tests.support.cluster_dig import ClusterDig, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.model import ClusterObject

NS = "testns"


def cluster() -> list[ClusterObject]:
    """The Services of CoreDNS's own tests, and a few more."""
    return [
        namespace(NS),
        service("svc1", NS, ["10.0.0.1"], ["http:80"]),
        service("svcempty", NS, ["10.0.0.9"], ["http:80"]),
        service("svc6", NS, ["1234:abcd::1"], ["http:80"]),
        service("dual", NS, ["10.0.0.3", "10::3"], ["http:80"]),
        service("ports", NS, ["10.0.0.4"], ["http:80", "https:443", "dns:53/UDP", "9000"]),
        service("portless", NS, ["10.0.0.5"]),
        service("hdls1", NS),
        service("hdlsprtls", NS),
        service("notready", NS),
        service("nobody", NS),
        service("external", NS, external_name="ext.interwebs.test"),
        service("external-to-service", NS, external_name="svc1.testns.svc.cluster.local"),
        service("external-to-nothing", NS, external_name="svc0.testns.svc.cluster.local"),
        service("external-to-itself", NS, external_name="external-to-itself.testns.svc.cluster.local"),
        service("external-a", NS, external_name="external-b.testns.svc.cluster.local"),
        service("external-b", NS, external_name="external-a.testns.svc.cluster.local"),
        service("external-ip", NS, external_name="1.2.3.4"),
        service("external-long", NS, external_name="x" * 64),
        endpoint_slice("svc1", endpoint("172.0.0.1", hostname="ep1a"), namespace=NS, ports=["http:80"]),
        endpoint_slice(
            "hdls1",
            endpoint("172.0.0.2"),
            endpoint("172.0.0.3"),
            endpoint("172.0.0.4", hostname="dup-name"),
            endpoint("172.0.0.5", hostname="dup-name"),
            endpoint("172.0.0.6", ready=False),
            namespace=NS,
            ports=["http:80"],
        ),
        endpoint_slice(
            "hdls1",
            endpoint("5678:abcd::1"),
            endpoint("5678:abcd::2"),
            name="hdls1-v6",
            namespace=NS,
            ports=["http:80"],
        ),
        endpoint_slice("hdlsprtls", endpoint("172.0.0.20"), namespace=NS),
        endpoint_slice("notready", endpoint("172.0.0.30", ready=False), namespace=NS, ports=["http:80"]),
    ]


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(cluster(), settings())


def test_a_weight_is_never_less_than_one() -> None:
    endpoints = [endpoint(f"172.1.{i // 200}.{i % 200}") for i in range(300)]
    dig = ClusterDig(
        [namespace(NS), service("big", NS), endpoint_slice("big", *endpoints, namespace=NS, ports=["80"])], settings()
    )
    assert " SRV 0 1 80 172-1-0-0.big." in dig("big.testns.svc.cluster.local. SRV")


def test_an_endpoint_of_two_slices_is_one_record() -> None:
    dig = ClusterDig(
        [
            namespace(NS),
            service("moving", NS),
            endpoint_slice("moving", endpoint("172.0.0.1"), namespace=NS, ports=["http:80"]),
            endpoint_slice("moving", endpoint("172.0.0.1"), name="moving-2", namespace=NS, ports=["http:80"]),
        ],
        settings(),
    )
    assert dig("moving.testns.svc.cluster.local. A") == "moving.testns.svc.cluster.local. 5 IN A 172.0.0.1"
    assert dig("moving.testns.svc.cluster.local. SRV").count(" SRV 0 100 80 ") == 1
