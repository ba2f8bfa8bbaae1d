"""Names that are no Service, and what every answer has in common: CoreDNS's frame."""

from collections.abc import Callable

import pytest

from tests.support.cluster_dig import PASSED, ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, pod, service
from topodns.cluster.model import ClusterObject, Deleted, Namespace
from topodns.dns.message import Flag
from topodns.query.plugin import Scope

NS = "testns"


Cases = dict[str, tuple[str, str]]


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


def _cases(table: Cases) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return pytest.mark.parametrize(("question", "answer"), table.values(), ids=table.keys())


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(cluster(), settings(), own_addresses=["10.1.2.3", "fd00::9"])


NODES: Cases = {
    "apex A": ("cluster.local. A", "NODATA cluster.local. 5"),
    "apex AAAA": ("cluster.local. AAAA", "NODATA cluster.local. 5"),
    "apex SRV": ("cluster.local. SRV", "NODATA cluster.local. 5"),
    "apex MX": ("cluster.local. MX", "NODATA cluster.local. 5"),
    "apex HINFO": ("cluster.local. HINFO", "NODATA cluster.local. 5"),
    "apex TXT, which CoreDNS denies": ("cluster.local. TXT", "NODATA cluster.local. 5"),
    "apex SOA": (
        "cluster.local. SOA",
        "cluster.local. 5 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 1499347823 7200 1800 86400 5",
    ),
    "apex NS, behind no Service": (
        "cluster.local. NS",
        """
        cluster.local. 5 IN NS ns.dns.cluster.local.
        + ns.dns.cluster.local. 5 IN A 10.1.2.3
        + ns.dns.cluster.local. 5 IN AAAA fd00::9
        """,
    ),
    "ns.dns A": ("ns.dns.cluster.local. A", "ns.dns.cluster.local. 5 IN A 10.1.2.3"),
    "ns.dns AAAA": ("ns.dns.cluster.local. AAAA", "ns.dns.cluster.local. 5 IN AAAA fd00::9"),
    "ns.dns SRV": ("ns.dns.cluster.local. SRV", "NODATA cluster.local. 5"),
    "dns, above ns.dns": ("dns.cluster.local. A", "NODATA cluster.local. 5"),
    "dns-version TXT": ("dns-version.cluster.local. TXT", 'dns-version.cluster.local. 28800 IN TXT "1.1.0"'),
    "dns-version A": ("dns-version.cluster.local. A", "NODATA cluster.local. 5"),
    "svc": ("svc.cluster.local. A", "NODATA cluster.local. 5"),
    "svc NS": ("svc.cluster.local. NS", "NODATA cluster.local. 5"),
    "ns.dns TXT, which CoreDNS denies": ("ns.dns.cluster.local. TXT", "NODATA cluster.local. 5"),
    "ns.dns PTR, which CoreDNS denies": ("ns.dns.cluster.local. PTR", "NODATA cluster.local. 5"),
    "ns.dns MX": ("ns.dns.cluster.local. MX", "NODATA cluster.local. 5"),
    "svc TXT, which CoreDNS denies": ("svc.cluster.local. TXT", "NODATA cluster.local. 5"),
    "pod": ("pod.cluster.local. A", "NODATA cluster.local. 5"),
    "a namespace": ("testns.svc.cluster.local. A", "NODATA cluster.local. 5"),
    "a namespace NS": ("testns.svc.cluster.local. NS", "NODATA cluster.local. 5"),
    "a namespace TXT, which CoreDNS denies": ("testns.svc.cluster.local. TXT", "NODATA cluster.local. 5"),
    "no such namespace": ("foo.svc.cluster.local. NS", "NXDOMAIN cluster.local. 5"),
    "anything else": ("foo.cluster.local. NS", "NXDOMAIN cluster.local. 5"),
}


TYPES: Cases = {
    "TXT of a Service": ("svc1.testns.svc.cluster.local. TXT", "NODATA cluster.local. 5"),
    "TXT of no Service": ("svc0.testns.svc.cluster.local. TXT", "NXDOMAIN cluster.local. 5"),
    "MX of a Service": ("svc1.testns.svc.cluster.local. MX", "NODATA cluster.local. 5"),
    "CNAME of a Service": ("svc1.testns.svc.cluster.local. CNAME", "NODATA cluster.local. 5"),
    "CNAME of no Service": ("svc0.testns.svc.cluster.local. CNAME", "NXDOMAIN cluster.local. 5"),
    "PTR of a Service": ("svc1.testns.svc.cluster.local. PTR", "NODATA cluster.local. 5"),
    "PTR of no Service": ("example.org.cluster.local. PTR", "NXDOMAIN cluster.local. 5"),
    "PTR of an address that is not reversed": ("100.0.0.10.cluster.local. PTR", "NXDOMAIN cluster.local. 5"),
    "SOA of a Service": ("svc1.testns.svc.cluster.local. SOA", "NODATA cluster.local. 5"),
    "SOA of no Service, a quirk of CoreDNS": ("svc0.testns.svc.cluster.local. SOA", "NODATA cluster.local. 5"),
    "NS of a Service": ("svc1.testns.svc.cluster.local. NS", "NODATA cluster.local. 5"),
    "HTTPS of a Service": ("svc1.testns.svc.cluster.local. HTTPS", "NODATA cluster.local. 5"),
    "HTTPS of a headless Service": ("hdls1.testns.svc.cluster.local. HTTPS", "NODATA cluster.local. 5"),
    "HTTPS of an endpoint": ("172-0-0-2.hdls1.testns.svc.cluster.local. HTTPS", "NODATA cluster.local. 5"),
    "HTTPS of no Service": ("svc0.testns.svc.cluster.local. HTTPS", "NXDOMAIN cluster.local. 5"),
    "ANY of a Service": ("svc1.testns.svc.cluster.local. ANY", "NODATA cluster.local. 5"),
    "an unknown type of a Service": ("svc1.testns.svc.cluster.local. TYPE65280", "NODATA cluster.local. 5"),
    "an unknown type of no Service": ("svc0.testns.svc.cluster.local. TYPE65280", "NXDOMAIN cluster.local. 5"),
}


@_cases(NODES)
def test_the_nodes_of_the_schema_are_answered_as_by_coredns(dig: ClusterDig, question: str, answer: str) -> None:
    assert dig(question) == expected(answer)


@_cases(TYPES)
def test_types_without_records_are_answered_as_by_coredns(dig: ClusterDig, question: str, answer: str) -> None:
    assert dig(question) == expected(answer)


@pytest.mark.parametrize(("ttl", "soa_ttl"), [(0, 0), (5, 5), (30, 30), (300, 300), (3600, 300)])
def test_the_ttl_option_is_on_every_record_and_the_soa_s_own_is_at_most_300(ttl: int, soa_ttl: int) -> None:
    dig = ClusterDig(cluster(), settings(ttl=ttl))
    assert dig("svc1.testns.svc.cluster.local. A") == f"svc1.testns.svc.cluster.local. {ttl} IN A 10.0.0.1"
    assert dig("svc0.testns.svc.cluster.local. A") == f"NXDOMAIN cluster.local. {soa_ttl}"
    assert dig("cluster.local. SOA").endswith(f" 86400 {ttl}")
    assert dig("dns-version.cluster.local. TXT").split()[1] == "28800"


def test_the_serial_is_zero_before_any_change() -> None:
    dig = ClusterDig([], settings())
    assert " 0 7200 1800 86400 5" in dig("cluster.local. SOA")


def test_answers_are_authoritative_and_counted_for_the_kubernetes_plugin(dig: ClusterDig) -> None:
    for question in ("svc1.testns.svc.cluster.local. A", "svc0.testns.svc.cluster.local. A"):
        resolution = dig.resolve(question)
        assert resolution is not None
        assert resolution.response.flags == Flag.AA
        assert resolution.plugin == "kubernetes"
        assert resolution.scope is Scope.EVERYONE


def test_fallthrough_passes_on_names_that_do_not_exist_and_no_others() -> None:
    dig = ClusterDig(cluster(), settings(fallthrough=["in-addr.arpa", "testns.svc.cluster.local"]))
    assert dig("svc0.testns.svc.cluster.local. A") == PASSED
    assert dig("9.9.9.9.in-addr.arpa. PTR") == PASSED
    assert dig("svc0.other.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("svc1.testns.svc.cluster.local. AAAA") == "NODATA cluster.local. 5"
    everything = ClusterDig(cluster(), settings(fallthrough=["."]))
    assert everything("foo.cluster.local. A") == PASSED


def test_a_namespace_that_is_deleted_takes_its_names_with_it() -> None:
    dig = ClusterDig(cluster(), settings())
    dig.apply(Deleted("Namespace", Namespace(NS).key))
    assert dig("svc1.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
