"""Names of Pods in each mode, PTR records asked with `dig -x`, and name servers: CoreDNS's answers."""

import pytest

from tests.support.cluster_dig import PASSED, ClusterDig, ZoneText, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, packed, pod, service
from tests.unit.plugins.kubernetes.scene import few_services
from topodns.cluster.model import ClusterObject
from topodns.dependency import address_fact, namespace_fact, service_fact
from topodns.dns.name import name_text, reverse_name
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


NS = "testns"


def cluster() -> list[ClusterObject]:
    return [
        namespace(NS),
        service("svc1", NS, ["192.168.1.100", "fd00::100"], ["http:80"]),
        service("svc2", NS),
        endpoint_slice(
            "svc1",
            endpoint("10.0.0.100", hostname="ep1a"),
            endpoint("10.0.0.99", hostname="double-ep"),
            endpoint("10.0.0.98"),
            endpoint("10.0.0.97", ready=False),
            endpoint("192.168.1.100"),
            namespace=NS,
        ),
        endpoint_slice("svc2", endpoint("10.0.0.99", hostname="double-ep"), namespace=NS),
        endpoint_slice("svc1", endpoint("1234:abcd::1", hostname="ep1b"), name="svc1-6", namespace=NS),
        endpoint_slice("svc1", endpoint("fd77:3::a"), name="svc1-7", namespace=NS),
    ]


def reverse(address: str) -> str:
    return name_text(reverse_name(packed(address)))


ANSWERS = {
    "a ClusterIP": ("192.168.1.100", "PTR svc1.testns.svc.cluster.local."),
    "an IPv6 ClusterIP": ("fd00::100", "PTR svc1.testns.svc.cluster.local."),
    "an endpoint with a hostname": ("10.0.0.100", "PTR ep1a.svc1.testns.svc.cluster.local."),
    "an endpoint without a hostname": ("10.0.0.98", "PTR 10-0-0-98.svc1.testns.svc.cluster.local."),
    "an IPv6 endpoint": ("1234:abcd::1", "PTR ep1b.svc1.testns.svc.cluster.local."),
    "an IPv6 endpoint without a hostname": ("fd77:3::a", "PTR fd77-3--a.svc1.testns.svc.cluster.local."),
}


@pytest.mark.parametrize(("address", "answer"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_address_is_its_service_s_or_its_endpoint_s(address: str, answer: str) -> None:
    assert ClusterDig(cluster(), settings())(f"{reverse(address)} PTR") == f"{reverse(address)} 5 IN {answer}"


def test_each_name_at_an_address_has_a_record() -> None:
    """Two Pods in their node's network, in one slice or in two."""
    shared: list[ClusterObject] = [
        namespace(NS),
        service("db", NS),
        endpoint_slice(
            "db",
            endpoint("10.0.0.7", hostname="db-0"),
            endpoint("10.0.0.7", "n1", pod="db-x"),
            endpoint("10.0.0.7", hostname="db-2", ready=False),
            namespace=NS,
        ),
        endpoint_slice("db", endpoint("10.0.0.7", hostname="db-1"), name="db-2", namespace=NS),
    ]
    for pod_names, label in ((False, "10-0-0-7"), (True, "db-x")):
        dig = ClusterDig(shared, settings(endpoint_pod_names=pod_names))
        assert dig("7.0.0.10.in-addr.arpa. PTR") == expected(
            f"""
            7.0.0.10.in-addr.arpa. 5 IN PTR db-0.db.testns.svc.cluster.local.
            7.0.0.10.in-addr.arpa. 5 IN PTR {label}.db.testns.svc.cluster.local.
            7.0.0.10.in-addr.arpa. 5 IN PTR db-1.db.testns.svc.cluster.local.
            """
        )


def test_an_endpoint_of_two_services_has_a_record_for_each() -> None:
    assert ClusterDig(cluster(), settings())("99.0.0.10.in-addr.arpa. PTR") == expected(
        """
        99.0.0.10.in-addr.arpa. 5 IN PTR double-ep.svc1.testns.svc.cluster.local.
        99.0.0.10.in-addr.arpa. 5 IN PTR double-ep.svc2.testns.svc.cluster.local.
        """
    )


NEGATIVE = {
    "nobody's address": ("101.0.0.10.in-addr.arpa. PTR", "NXDOMAIN in-addr.arpa. 5"),
    "an endpoint that is not ready": ("97.0.0.10.in-addr.arpa. PTR", "NXDOMAIN in-addr.arpa. 5"),
    "A of an address that has a PTR": ("100.0.0.10.in-addr.arpa. A", "NODATA in-addr.arpa. 5"),
    "TXT of an address that has a PTR": ("100.0.0.10.in-addr.arpa. TXT", "NODATA in-addr.arpa. 5"),
    "a part of an address": ("0.0.10.in-addr.arpa. PTR", "NODATA in-addr.arpa. 5"),
    "a part of an IPv6 address": ("d.c.b.a.4.3.2.1.ip6.arpa. PTR", "NODATA ip6.arpa. 5"),
    "more than an address": ("1.100.0.0.10.in-addr.arpa. PTR", "NXDOMAIN in-addr.arpa. 5"),
    "no address": ("x.0.0.10.in-addr.arpa. PTR", "NXDOMAIN in-addr.arpa. 5"),
    "no octet": ("256.0.0.10.in-addr.arpa. PTR", "NXDOMAIN in-addr.arpa. 5"),
    "the apex": ("in-addr.arpa. PTR", "NODATA in-addr.arpa. 5"),
    "the apex A": ("ip6.arpa. A", "NODATA ip6.arpa. 5"),
    "a Service of the other kind of origin": ("svc1.testns.svc.in-addr.arpa. A", "NXDOMAIN in-addr.arpa. 5"),
}


@pytest.mark.parametrize(("question", "answer"), NEGATIVE.values(), ids=NEGATIVE.keys())
def test_the_reverse_origin_denies_addresses_without_an_owner_and_nothing_else(question: str, answer: str) -> None:
    assert ClusterDig(cluster(), settings())(question) == answer


def test_the_soa_of_a_reverse_origin_is_its_own() -> None:
    dig = ClusterDig(cluster(), settings("cluster.local", "0.10.in-addr.arpa"))
    assert dig("0.10.in-addr.arpa. SOA") == (
        "0.10.in-addr.arpa. 5 IN SOA ns.dns.0.10.in-addr.arpa. hostmaster.0.10.in-addr.arpa."
        " 1499347823 7200 1800 86400 5"
    )
    assert dig("101.0.0.10.in-addr.arpa. PTR") == "NXDOMAIN 0.10.in-addr.arpa. 5"
    assert dig("100.1.168.192.in-addr.arpa. PTR") == PASSED


def test_targets_are_under_the_first_forward_origin_as_configured() -> None:
    dig = ClusterDig(cluster(), settings("in-addr.arpa", "example.org", "cluster.local"))
    assert dig("100.1.168.192.IN-ADDR.arpa. PTR") == (
        "100.1.168.192.IN-ADDR.arpa. 5 IN PTR svc1.testns.svc.example.org."
    )


def test_fallthrough_passes_on_addresses_that_are_not_ours() -> None:
    dig = ClusterDig(cluster(), settings(fallthrough=["in-addr.arpa", "ip6.arpa"]))
    assert dig("101.0.0.10.in-addr.arpa. PTR") == PASSED
    assert dig("0.0.10.in-addr.arpa. PTR") == PASSED
    assert dig(f"{reverse('fd00::1')} PTR") == PASSED
    assert dig(f"{reverse('fd00::100')} PTR").endswith("svc1.testns.svc.cluster.local.")
    assert dig("svc0.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"


def test_without_a_reverse_origin_nothing_is_answered() -> None:
    assert ClusterDig(cluster(), settings("cluster.local"))("100.1.168.192.in-addr.arpa. PTR") == PASSED


def test_a_ptr_answer_rests_on_the_address_and_on_its_owner() -> None:
    dig = ClusterDig(cluster(), settings())
    there = dig.resolve("99.0.0.10.in-addr.arpa. PTR")
    assert set(there.facts) == {
        address_fact(packed("10.0.0.99")),
        namespace_fact(NS),
        service_fact(NS, "svc1"),
        service_fact(NS, "svc2"),
    }
    nobody = dig.resolve("101.0.0.10.in-addr.arpa. PTR")
    assert nobody.facts == (address_fact(packed("10.0.0.101")),)


def test_the_apex_names_the_services_that_this_server_is_behind() -> None:
    dns: list[ClusterObject] = [
        service("kube-dns", "kube-system", ["10.96.0.10", "fd00::a"], ["dns:53/UDP"]),
        service("dns-headless", "kube-system"),
        endpoint_slice("kube-dns", endpoint("10.1.2.3"), endpoint("10.1.2.4"), namespace="kube-system"),
        endpoint_slice("dns-headless", endpoint("10.1.2.3"), endpoint("10.1.2.4"), namespace="kube-system"),
        service("elsewhere", "kube-system", ["10.96.0.11"]),
        endpoint_slice("elsewhere", endpoint("10.9.9.9"), namespace="kube-system"),
    ]
    dig = ClusterDig([namespace("kube-system"), *dns], settings(), own_addresses=["10.1.2.3"])
    assert dig("cluster.local. NS") == expected(
        """
        cluster.local. 5 IN NS 10-1-2-3.dns-headless.kube-system.svc.cluster.local.
        cluster.local. 5 IN NS 10-1-2-4.dns-headless.kube-system.svc.cluster.local.
        cluster.local. 5 IN NS kube-dns.kube-system.svc.cluster.local.
        + 10-1-2-3.dns-headless.kube-system.svc.cluster.local. 5 IN A 10.1.2.3
        + 10-1-2-4.dns-headless.kube-system.svc.cluster.local. 5 IN A 10.1.2.4
        + kube-dns.kube-system.svc.cluster.local. 5 IN A 10.96.0.10
        + kube-dns.kube-system.svc.cluster.local. 5 IN AAAA fd00::a
        """
    )
    assert dig("ns.dns.cluster.local. AAAA") == "ns.dns.cluster.local. 5 IN AAAA fd00::a"
    assert dig("cluster.local. NS") == dig("CLUSTER.local. NS").replace("CLUSTER", "cluster")


def test_without_any_address_of_its_own_the_apex_has_no_name_servers() -> None:
    assert ClusterDig(few_services(), settings())("cluster.local. NS") == "NODATA cluster.local. 5"


def zone_of(octets: int) -> str:
    """A zone whose name has so many octets in a message."""
    labels = ["a" * 61, "b" * 61, "c" * 61]
    return ".".join([*labels, "d" * (octets - sum(len(label) + 1 for label in labels) - 2)]) + "."


@pytest.mark.parametrize(("octets", "primary", "mailbox"), [(244, True, True), (245, True, False), (249, False, False)])
def test_a_name_that_does_not_fit_before_a_long_zone_is_left_out(octets: int, primary: bool, mailbox: bool) -> None:
    zone, own = zone_of(octets), "10.1.2.3"
    dig = ClusterDig(few_services(), settings(zone), own_addresses=[own])
    found = dig(f"{zone} SOA").split()[4:6]
    assert found == [f"ns.dns.{zone}" if primary else zone, f"hostmaster.{zone}" if mailbox else zone]
    server = f"{zone} 5 IN NS ns.dns.{zone}\n+ ns.dns.{zone} 5 IN A {own}"
    assert dig(f"{zone} NS") == (server if primary else f"NODATA {zone} 5")


def test_a_service_in_front_of_this_server_whose_name_is_too_long_is_no_name_server() -> None:
    long, short = "s" * 63, "dns"
    objects: list[ClusterObject] = [namespace("kube-system")]
    for name, address in ((long, "10.96.0.10"), (short, "10.96.0.11")):
        objects += [
            service(name, "kube-system", [address], ["dns:53/UDP"]),
            endpoint_slice(name, endpoint("10.1.2.3"), namespace="kube-system"),
        ]
    zone = zone_of(200)
    dig = ClusterDig(objects, settings(zone), own_addresses=["10.1.2.3"])
    server = f"{short}.kube-system.svc.{zone}"
    assert dig(f"{zone} NS") == f"{zone} 5 IN NS {server}\n+ {server} 5 IN A 10.96.0.11"
