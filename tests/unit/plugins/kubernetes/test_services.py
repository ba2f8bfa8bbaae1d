"""ClusterIP and headless Services, asked with dig: the answers are CoreDNS's."""

from collections.abc import Callable

import pytest

from tests.support.cluster_dig import ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from topodns.cluster.model import ClusterObject
from topodns.query.plugin import Scope

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
        service("anyport", NS),
        endpoint_slice("anyport", endpoint("172.0.0.21"), namespace=NS, ports=["http:", "dns:53/UDP"]),
        service("cluster-anyport", NS, ["10.0.0.6"], ["http:"]),
        endpoint_slice("notready", endpoint("172.0.0.30", ready=False), namespace=NS, ports=["http:80"]),
    ]


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(cluster(), settings())


CLUSTER_IP = {
    "A is the ClusterIP": (
        "svc1.testns.svc.cluster.local. A",
        "svc1.testns.svc.cluster.local. 5 IN A 10.0.0.1",
    ),
    "AAAA of an IPv4 Service is NODATA": ("svc1.testns.svc.cluster.local. AAAA", "NODATA cluster.local. 5"),
    "AAAA is the IPv6 ClusterIP": (
        "svc6.testns.svc.cluster.local. AAAA",
        "svc6.testns.svc.cluster.local. 5 IN AAAA 1234:abcd::1",
    ),
    "A of an IPv6 Service is NODATA": ("svc6.testns.svc.cluster.local. A", "NODATA cluster.local. 5"),
    "dual-stack A": ("dual.testns.svc.cluster.local. A", "dual.testns.svc.cluster.local. 5 IN A 10.0.0.3"),
    "dual-stack AAAA": ("dual.testns.svc.cluster.local. AAAA", "dual.testns.svc.cluster.local. 5 IN AAAA 10::3"),
    "a Service without endpoints answers": (
        "svcempty.testns.svc.cluster.local. A",
        "svcempty.testns.svc.cluster.local. 5 IN A 10.0.0.9",
    ),
    "SRV points at the Service itself": (
        "_http._tcp.svc1.testns.svc.cluster.local. SRV",
        """
        _http._tcp.svc1.testns.svc.cluster.local. 5 IN SRV 0 100 80 svc1.testns.svc.cluster.local.
        + svc1.testns.svc.cluster.local. 5 IN A 10.0.0.1
        """,
    ),
    "SRV of a dual-stack Service shares the weight between the families": (
        "dual.testns.svc.cluster.local. SRV",
        """
        dual.testns.svc.cluster.local. 5 IN SRV 0 50 80 dual.testns.svc.cluster.local.
        + dual.testns.svc.cluster.local. 5 IN A 10.0.0.3
        + dual.testns.svc.cluster.local. 5 IN AAAA 10::3
        """,
    ),
    "SRV at the Service's name has every port, unnamed ones too": (
        "ports.testns.svc.cluster.local. SRV",
        """
        ports.testns.svc.cluster.local. 5 IN SRV 0 25 80 ports.testns.svc.cluster.local.
        ports.testns.svc.cluster.local. 5 IN SRV 0 25 443 ports.testns.svc.cluster.local.
        ports.testns.svc.cluster.local. 5 IN SRV 0 25 53 ports.testns.svc.cluster.local.
        ports.testns.svc.cluster.local. 5 IN SRV 0 25 9000 ports.testns.svc.cluster.local.
        + ports.testns.svc.cluster.local. 5 IN A 10.0.0.4
        """,
    ),
    "the protocol selects": (
        "_dns._udp.ports.testns.svc.cluster.local. SRV",
        """
        _dns._udp.ports.testns.svc.cluster.local. 5 IN SRV 0 100 53 ports.testns.svc.cluster.local.
        + ports.testns.svc.cluster.local. 5 IN A 10.0.0.4
        """,
    ),
    "underscores are optional": (
        "dns.udp.ports.testns.svc.cluster.local. SRV",
        """
        dns.udp.ports.testns.svc.cluster.local. 5 IN SRV 0 100 53 ports.testns.svc.cluster.local.
        + ports.testns.svc.cluster.local. 5 IN A 10.0.0.4
        """,
    ),
    "A at the name of a port is the ClusterIP": (
        "_http._tcp.svc1.testns.svc.cluster.local. A",
        "_http._tcp.svc1.testns.svc.cluster.local. 5 IN A 10.0.0.1",
    ),
    "no such port": ("_nope._tcp.svc1.testns.svc.cluster.local. SRV", "NXDOMAIN cluster.local. 5"),
    "no such protocol": ("_http._udp.svc1.testns.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
    "a protocol alone is above the names of ports": (
        "_tcp.svc1.testns.svc.cluster.local. SRV",
        "NODATA cluster.local. 5",
    ),
    "a protocol of no port": ("_udp.svc1.testns.svc.cluster.local. SRV", "NXDOMAIN cluster.local. 5"),
    "A of a Service without ports": (
        "portless.testns.svc.cluster.local. A",
        "portless.testns.svc.cluster.local. 5 IN A 10.0.0.5",
    ),
    "A of a Service's port without a number": (
        "_http._tcp.cluster-anyport.testns.svc.cluster.local. A",
        "_http._tcp.cluster-anyport.testns.svc.cluster.local. 5 IN A 10.0.0.6",
    ),
    "SRV of a Service's port without a number is NODATA": (
        "_http._tcp.cluster-anyport.testns.svc.cluster.local. SRV",
        "NODATA cluster.local. 5",
    ),
    "SRV of a Service without ports is NODATA": ("portless.testns.svc.cluster.local. SRV", "NODATA cluster.local. 5"),
    "an endpoint under a ClusterIP Service": (
        "ep1a.svc1.testns.svc.cluster.local. A",
        "ep1a.svc1.testns.svc.cluster.local. 5 IN A 172.0.0.1",
    ),
    "SRV of an endpoint under a ClusterIP Service": (
        "ep1a.svc1.testns.svc.cluster.local. SRV",
        """
        ep1a.svc1.testns.svc.cluster.local. 5 IN SRV 0 100 80 ep1a.svc1.testns.svc.cluster.local.
        + ep1a.svc1.testns.svc.cluster.local. 5 IN A 172.0.0.1
        """,
    ),
    "no such Service": ("svc0.testns.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
    "no such Service, AAAA": ("svc0.testns.svc.cluster.local. AAAA", "NXDOMAIN cluster.local. 5"),
    "no such namespace": ("svc0.svc-nons.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
    "three labels left of a Service": ("a.b.c.svc1.testns.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
}


HEADLESS = {
    "A is each ready endpoint, in slice order": (
        "hdls1.testns.svc.cluster.local. A",
        """
        hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.2
        hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.3
        hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.4
        hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.5
        """,
    ),
    "AAAA": (
        "hdls1.testns.svc.cluster.local. AAAA",
        """
        hdls1.testns.svc.cluster.local. 5 IN AAAA 5678:abcd::1
        hdls1.testns.svc.cluster.local. 5 IN AAAA 5678:abcd::2
        """,
    ),
    "ready endpoints of the other family only: NODATA": (
        "hdlsprtls.testns.svc.cluster.local. AAAA",
        "NODATA cluster.local. 5",
    ),
    "no ready endpoint": ("notready.testns.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
    "no ready endpoint, AAAA": ("notready.testns.svc.cluster.local. AAAA", "NXDOMAIN cluster.local. 5"),
    "no slice at all": ("nobody.testns.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
    "SRV has one record per endpoint and port, of six shares": (
        "_http._tcp.hdls1.testns.svc.cluster.local. SRV",
        """
        _http._tcp.hdls1.testns.svc.cluster.local. 5 IN SRV 0 16 80 172-0-0-2.hdls1.testns.svc.cluster.local.
        _http._tcp.hdls1.testns.svc.cluster.local. 5 IN SRV 0 16 80 172-0-0-3.hdls1.testns.svc.cluster.local.
        _http._tcp.hdls1.testns.svc.cluster.local. 5 IN SRV 0 16 80 dup-name.hdls1.testns.svc.cluster.local.
        _http._tcp.hdls1.testns.svc.cluster.local. 5 IN SRV 0 16 80 5678-abcd--1.hdls1.testns.svc.cluster.local.
        _http._tcp.hdls1.testns.svc.cluster.local. 5 IN SRV 0 16 80 5678-abcd--2.hdls1.testns.svc.cluster.local.
        + 172-0-0-2.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.2
        + 172-0-0-3.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.3
        + dup-name.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.4
        + dup-name.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.5
        + 5678-abcd--1.hdls1.testns.svc.cluster.local. 5 IN AAAA 5678:abcd::1
        + 5678-abcd--2.hdls1.testns.svc.cluster.local. 5 IN AAAA 5678:abcd::2
        """,
    ),
    "A at the name of a port": (
        "_http._tcp.hdls1.testns.svc.cluster.local. A",
        """
        _http._tcp.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.2
        _http._tcp.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.3
        _http._tcp.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.4
        _http._tcp.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.5
        """,
    ),
    "no such port": ("_nope._tcp.hdls1.testns.svc.cluster.local. SRV", "NXDOMAIN cluster.local. 5"),
    "A without ports": (
        "hdlsprtls.testns.svc.cluster.local. A",
        "hdlsprtls.testns.svc.cluster.local. 5 IN A 172.0.0.20",
    ),
    "A of a port without a number": (
        "_http._tcp.anyport.testns.svc.cluster.local. A",
        "_http._tcp.anyport.testns.svc.cluster.local. 5 IN A 172.0.0.21",
    ),
    "SRV of a port without a number is NODATA": (
        "_http._tcp.anyport.testns.svc.cluster.local. SRV",
        "NODATA cluster.local. 5",
    ),
    "above a port without a number": ("_tcp.anyport.testns.svc.cluster.local. A", "NODATA cluster.local. 5"),
    "a port without a number has no other protocol": (
        "_http._udp.anyport.testns.svc.cluster.local. A",
        "NXDOMAIN cluster.local. 5",
    ),
    "a port without a number counts in the weight of the others": (
        "anyport.testns.svc.cluster.local. SRV",
        """
        anyport.testns.svc.cluster.local. 5 IN SRV 0 50 53 172-0-0-21.anyport.testns.svc.cluster.local.
        + 172-0-0-21.anyport.testns.svc.cluster.local. 5 IN A 172.0.0.21
        """,
    ),
    "SRV without ports is NODATA": ("hdlsprtls.testns.svc.cluster.local. SRV", "NODATA cluster.local. 5"),
    "an endpoint by its dashed address": (
        "172-0-0-2.hdls1.testns.svc.cluster.local. A",
        "172-0-0-2.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.2",
    ),
    "an IPv6 endpoint by its dashed address": (
        "5678-abcd--2.hdls1.testns.svc.cluster.local. AAAA",
        "5678-abcd--2.hdls1.testns.svc.cluster.local. 5 IN AAAA 5678:abcd::2",
    ),
    "an endpoint of the other family": ("5678-abcd--2.hdls1.testns.svc.cluster.local. A", "NODATA cluster.local. 5"),
    "a hostname that two endpoints share": (
        "dup-name.hdls1.testns.svc.cluster.local. A",
        """
        dup-name.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.4
        dup-name.hdls1.testns.svc.cluster.local. 5 IN A 172.0.0.5
        """,
    ),
    "an endpoint without ports": (
        "172-0-0-20.hdlsprtls.testns.svc.cluster.local. A",
        "172-0-0-20.hdlsprtls.testns.svc.cluster.local. 5 IN A 172.0.0.20",
    ),
    "an endpoint that is not ready": ("172-0-0-6.hdls1.testns.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
    "no such endpoint": ("bogus.hdls1.testns.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
    "an endpoint of no Service": ("bogus.svc0.testns.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
}


def _cases(table: dict[str, tuple[str, str]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return pytest.mark.parametrize(("question", "answer"), table.values(), ids=table.keys())


@_cases(CLUSTER_IP)
def test_cluster_ip_services_are_answered_as_by_coredns(dig: ClusterDig, question: str, answer: str) -> None:
    assert dig(question) == expected(answer)


@_cases(HEADLESS)
def test_headless_services_are_answered_as_by_coredns(dig: ClusterDig, question: str, answer: str) -> None:
    assert dig(question) == expected(answer)


def test_answers_rest_on_the_namespace_and_on_every_service_looked_at(dig: ClusterDig) -> None:
    def rests_on(question: str) -> list[str]:
        resolution = dig.resolve(question)
        assert resolution is not None
        assert resolution.scope is Scope.EVERYONE
        return [f"{fact.kind} {fact.namespace}/{fact.name!s}" for fact in resolution.facts]

    assert rests_on("svc1.testns.svc.cluster.local. A") == ["namespace /testns", "service testns/svc1"]
    assert rests_on("svc0.testns.svc.cluster.local. A") == ["namespace /testns", "service testns/svc0"]
    assert rests_on("svc1.nons.svc.cluster.local. A") == ["namespace /nons"]
    assert rests_on("external-to-nothing.testns.svc.cluster.local. A") == [
        *("namespace /testns", "service testns/external-to-nothing"),
        *("namespace /testns", "service testns/svc0"),
    ]
