"""ClusterIP and headless Services, and the option `zonal`, asked with dig: the answers are CoreDNS's."""

import pytest

from tests.support.cluster_dig import ClusterDig, cases, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, service
from tests.unit.plugins.kubernetes.scene import NS, SERVICES, coredns_services
from topodns.cluster.model import ClusterObject
from topodns.query.plugin import Scope


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(coredns_services(), settings())


CLUSTER_IP = {
    "A is the ClusterIP": ("svc1 A", "A 10.0.0.1"),
    "AAAA of an IPv4 Service is NODATA": ("svc1 AAAA", "NODATA"),
    "AAAA is the IPv6 ClusterIP": ("svc6 AAAA", "AAAA 1234:abcd::1"),
    "A of an IPv6 Service is NODATA": ("svc6 A", "NODATA"),
    "dual-stack A": ("dual A", "A 10.0.0.3"),
    "dual-stack AAAA": ("dual AAAA", "AAAA 10::3"),
    "a Service without endpoints answers": ("svcempty A", "A 10.0.0.9"),
    "SRV points at the Service itself": ("_http._tcp.svc1 SRV", "SRV 0 100 80 svc1", "+ svc1 A 10.0.0.1"),
    "SRV of a dual-stack Service shares the weight between the families": (
        "dual SRV",
        "SRV 0 50 80 dual",
        "+ A 10.0.0.3",
        "+ AAAA 10::3",
    ),
    "SRV at the Service's name has every port, unnamed ones too": (
        "ports SRV",
        "SRV 0 25 80 ports",
        "SRV 0 25 443 ports",
        "SRV 0 25 53 ports",
        "SRV 0 25 9000 ports",
        "+ A 10.0.0.4",
    ),
    "the protocol selects": ("_dns._udp.ports SRV", "SRV 0 100 53 ports", "+ ports A 10.0.0.4"),
    "underscores are optional": ("dns.udp.ports SRV", "SRV 0 100 53 ports", "+ ports A 10.0.0.4"),
    "A at the name of a port is the ClusterIP": ("_http._tcp.svc1 A", "A 10.0.0.1"),
    "no such port": ("_nope._tcp.svc1 SRV", "NXDOMAIN"),
    "no such protocol": ("_http._udp.svc1 A", "NXDOMAIN"),
    "a protocol alone is above the names of ports": ("_tcp.svc1 SRV", "NODATA"),
    "a protocol of no port": ("_udp.svc1 SRV", "NXDOMAIN"),
    "A of a Service without ports": ("portless A", "A 10.0.0.5"),
    "A of a Service's port without a number": ("_http._tcp.cluster-anyport A", "A 10.0.0.6"),
    "SRV of a Service's port without a number is NODATA": ("_http._tcp.cluster-anyport SRV", "NODATA"),
    "SRV of a Service without ports is NODATA": ("portless SRV", "NODATA"),
    "an endpoint under a ClusterIP Service": ("ep1a.svc1 A", "A 172.0.0.1"),
    "SRV of an endpoint under a ClusterIP Service": ("ep1a.svc1 SRV", "SRV 0 100 80 ep1a.svc1", "+ A 172.0.0.1"),
    "no such Service": ("svc0 A", "NXDOMAIN"),
    "no such Service, AAAA": ("svc0 AAAA", "NXDOMAIN"),
    "no such namespace": ("svc0.svc-nons.svc.cluster.local. A", "NXDOMAIN"),
    "three labels left of a Service": ("a.b.c.svc1 A", "NXDOMAIN"),
}

HEADLESS = {
    "A is each ready endpoint, in slice order": ("hdls1 A", "A 172.0.0.2", "A 172.0.0.3", "A 172.0.0.4", "A 172.0.0.5"),
    "AAAA": ("hdls1 AAAA", "AAAA 5678:abcd::1", "AAAA 5678:abcd::2"),
    "ready endpoints of the other family only: NODATA": ("hdlsprtls AAAA", "NODATA"),
    "no ready endpoint": ("notready A", "NXDOMAIN"),
    "no ready endpoint, AAAA": ("notready AAAA", "NXDOMAIN"),
    "no slice at all": ("nobody A", "NXDOMAIN"),
    "SRV has one record per endpoint and port, of six shares": (
        "_http._tcp.hdls1 SRV",
        "SRV 0 16 80 172-0-0-2.hdls1",
        "SRV 0 16 80 172-0-0-3.hdls1",
        "SRV 0 16 80 dup-name.hdls1",
        "SRV 0 16 80 5678-abcd--1.hdls1",
        "SRV 0 16 80 5678-abcd--2.hdls1",
        "+ 172-0-0-2.hdls1 A 172.0.0.2",
        "+ 172-0-0-3.hdls1 A 172.0.0.3",
        "+ dup-name.hdls1 A 172.0.0.4",
        "+ dup-name.hdls1 A 172.0.0.5",
        "+ 5678-abcd--1.hdls1 AAAA 5678:abcd::1",
        "+ 5678-abcd--2.hdls1 AAAA 5678:abcd::2",
    ),
    "A at the name of a port": ("_http._tcp.hdls1 A", "A 172.0.0.2", "A 172.0.0.3", "A 172.0.0.4", "A 172.0.0.5"),
    "no such port": ("_nope._tcp.hdls1 SRV", "NXDOMAIN"),
    "A without ports": ("hdlsprtls A", "A 172.0.0.20"),
    "A of a port without a number": ("_http._tcp.anyport A", "A 172.0.0.21"),
    "SRV of a port without a number is NODATA": ("_http._tcp.anyport SRV", "NODATA"),
    "above a port without a number": ("_tcp.anyport A", "NODATA"),
    "a port without a number has no other protocol": ("_http._udp.anyport A", "NXDOMAIN"),
    "a port without a number counts in the weight of the others": (
        "anyport SRV",
        "SRV 0 50 53 172-0-0-21.anyport",
        "+ 172-0-0-21.anyport A 172.0.0.21",
    ),
    "SRV without ports is NODATA": ("hdlsprtls SRV", "NODATA"),
    "an endpoint by its dashed address": ("172-0-0-2.hdls1 A", "A 172.0.0.2"),
    "an IPv6 endpoint by its dashed address": ("5678-abcd--2.hdls1 AAAA", "AAAA 5678:abcd::2"),
    "an endpoint of the other family": ("5678-abcd--2.hdls1 A", "NODATA"),
    "a hostname that two endpoints share": ("dup-name.hdls1 A", "A 172.0.0.4", "A 172.0.0.5"),
    "an endpoint without ports": ("172-0-0-20.hdlsprtls A", "A 172.0.0.20"),
    "an endpoint that is not ready": ("172-0-0-6.hdls1 A", "NXDOMAIN"),
    "no such endpoint": ("bogus.hdls1 A", "NXDOMAIN"),
    "an endpoint of no Service": ("bogus.svc0 A", "NXDOMAIN"),
}


@cases(CLUSTER_IP)
def test_cluster_ip_services_are_answered_as_by_coredns(dig: ClusterDig, question: str, records: list[str]) -> None:
    assert dig(SERVICES.absolute(question)) == SERVICES.answer(question, *records)


@cases(HEADLESS)
def test_headless_services_are_answered_as_by_coredns(dig: ClusterDig, question: str, records: list[str]) -> None:
    assert dig(SERVICES.absolute(question)) == SERVICES.answer(question, *records)


def test_answers_rest_on_the_namespace_and_on_every_service_looked_at(dig: ClusterDig) -> None:
    def rests_on(question: str) -> list[str]:
        resolution = dig.resolve(question)
        assert resolution.scope is Scope.EVERYONE
        return [f"{fact.kind} {fact.namespace}/{fact.name!s}" for fact in resolution.facts]

    assert rests_on("svc1.testns.svc.cluster.local. A") == ["namespace /testns", "service testns/svc1"]
    assert rests_on("svc0.testns.svc.cluster.local. A") == ["namespace /testns", "service testns/svc0"]
    assert rests_on("svc1.nons.svc.cluster.local. A") == ["namespace /nons"]
    assert rests_on("external-to-nothing.testns.svc.cluster.local. A") == [
        *("namespace /testns", "service testns/external-to-nothing"),
        *("namespace /testns", "service testns/svc0"),
    ]


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
    "us-west-2a.pin._zone.hdls A": ["A 172.0.0.1"],
    "us-west-2b.pin._zone.hdls A": ["A 172.0.0.2", "A 172.0.0.3"],
    "rack.7.pin._zone.hdls A": ["A 172.0.0.4"],
    "us-west-2c.pin._zone.hdls A": ["NODATA"],
    "us-west-2c.pin._zone.hdls TXT": ["NODATA"],
    "us-west-2c.pin._zone.drained A": ["NODATA"],
    "us-west-2a.prefer._zone.hdls A": ["A 172.0.0.1"],
    "none.prefer._zone.hdls AAAA": ["AAAA fd00::1"],
    "v6.prefer._zone.hdls A": ["NODATA"],
    "us-west-2a.prefer._zone.hdls TXT": ["NODATA"],
    "us-west-2b.pin._zone.hdls SRV": [
        "SRV 0 50 80 172-0-0-2.hdls",
        "SRV 0 50 80 172-0-0-3.hdls",
        "+ 172-0-0-2.hdls A 172.0.0.2",
        "+ 172-0-0-3.hdls A 172.0.0.3",
    ],
    "us-west-2a.pin._zone.ghost A": ["NXDOMAIN"],
    "us-west-2a.florp._zone.hdls A": ["NXDOMAIN"],
    "us-west-2a.pin._zone.clstr A": ["NXDOMAIN"],
    "us-west-2a.pin._zone.ext A": ["NXDOMAIN"],
}


@pytest.mark.parametrize(("question", "records"), ZONAL.items())
def test_zonal_answers_names_that_say_a_topology_zone(question: str, records: list[str]) -> None:
    assert ClusterDig(zones(), settings(zonal=True))(SERVICES.absolute(question)) == SERVICES.answer(question, *records)


ABOVE_ZONES = {
    "_zone.hdls A": ["NODATA"],
    "pin._zone.hdls A": ["NODATA"],
    "prefer._zone.hdls TXT": ["NODATA"],
    "zone.hdls A": ["NXDOMAIN"],
    "pin.zone.hdls A": ["NXDOMAIN"],
    "prefer.zone.hdls SRV": ["NXDOMAIN"],
    "_pin._zone.hdls A": ["NXDOMAIN"],
    "_pin.zone.hdls A": ["NXDOMAIN"],
    "pin._zone.ghost A": ["NXDOMAIN"],
    "pin._zone.clstr A": ["NXDOMAIN"],
}


@pytest.mark.parametrize(("question", "records"), ABOVE_ZONES.items())
def test_the_labels_above_topology_zones_exist_in_the_spelling_of_names_below_them(
    question: str, records: list[str]
) -> None:
    assert ClusterDig(zones(), settings(zonal=True))(SERVICES.absolute(question)) == SERVICES.answer(question, *records)


def test_without_zonal_such_names_do_not_exist() -> None:
    dig = ClusterDig(zones(), settings())
    assert dig("us-west-2a.pin._zone.hdls.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
