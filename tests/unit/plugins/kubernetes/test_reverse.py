"""PTR records, asked with `dig -x`: CoreDNS's answers."""

import pytest

from tests.support.cluster_dig import PASSED, ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, packed, service
from topodns.cluster.model import ClusterObject
from topodns.dependency import address_fact, namespace_fact, service_fact
from topodns.dns.name import name_text, reverse_name

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
