"""Clusters that several tests ask, and the names and answers of their Services as in a zone file."""

from tests.support.cluster_dig import ZoneText
from tests.support.model_builders import endpoint, endpoint_slice, namespace, pod, service
from topodns.cluster.model import ClusterObject

NS = "testns"
SERVICES = ZoneText("testns.svc.cluster.local.", "cluster.local. 5")
API, TOPOLOGY = "endpoint http://127.0.0.1:9", "keys annotation field"
OWN_ADDRESSES = ("10.1.2.3", "fd00::9")


def few_services() -> list[ClusterObject]:
    """One Service of each kind, and a Pod."""
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


def coredns_services() -> list[ClusterObject]:
    """The Services of CoreDNS's own tests, and a few more."""
    return [
        namespace(NS),
        service("svc1", NS, ["10.0.0.1"], ["http:80"]),
        service("svcempty", NS, ["10.0.0.9"], ["http:80"]),
        service("svc6", NS, ["1234:abcd::1"], ["http:80"]),
        service("dual", NS, ["10.0.0.3", "10::3"], ["http:80"]),
        service("ports", NS, ["10.0.0.4"], ["http:80", "https:443", "dns:53/UDP", "9000"]),
        service("portless", NS, ["10.0.0.5"]),
        service("cluster-anyport", NS, ["10.0.0.6"], ["http:"]),
        *(service(name, NS) for name in ("hdls1", "hdlsprtls", "anyport", "notready", "nobody")),
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
            *(endpoint("172.0.0.2"), endpoint("172.0.0.3"), endpoint("172.0.0.6", ready=False)),
            *(endpoint(address, hostname="dup-name") for address in ("172.0.0.4", "172.0.0.5")),
            namespace=NS,
            ports=["http:80"],
        ),
        endpoint_slice(
            "hdls1",
            *(endpoint("5678:abcd::1"), endpoint("5678:abcd::2")),
            name="hdls1-v6",
            namespace=NS,
            ports=["http:80"],
        ),
        endpoint_slice("hdlsprtls", endpoint("172.0.0.20"), namespace=NS),
        endpoint_slice("anyport", endpoint("172.0.0.21"), namespace=NS, ports=["http:", "dns:53/UDP"]),
        endpoint_slice("notready", endpoint("172.0.0.30", ready=False), namespace=NS, ports=["http:80"]),
    ]


def corefile(kubernetes: str, topology: str | None = TOPOLOGY, more: str = "") -> str:
    """A block with these options of `kubernetes` and of `topology`, None for no such directive."""
    followed = f"topology {{\n{topology}\n}}" if topology is not None else ""
    return f". {{\n kubernetes cluster.local {{\n{kubernetes}\n}}\n{followed}\n{more}\n}}\n"
