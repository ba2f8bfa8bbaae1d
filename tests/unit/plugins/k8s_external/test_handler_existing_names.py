"""A name that has records of some type, or such a name below it, is NXDOMAIN for no type (RFC 2308, RFC 8020).

A cache may take one NXDOMAIN for all types, and for all names below. So each record that a cluster has is looked up by
its name, and then this name and every name above it, up to the origin, are asked for every type.
"""

from collections.abc import Callable, Iterable

import pytest

from tests.support.cluster_dig import ClusterDig, query_of, settings, transcript
from tests.support.deferred_results import at_once
from tests.support.model_builders import endpoint, endpoint_slice, namespace, packed, pod, service
from tests.support.query_builders import client
from topodns.cluster.model import ClusterObject
from topodns.dns.name import parse_name
from topodns.plugins.k8s_external.handler import ExternalZone
from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import Resolution

TYPES = ("A", "AAAA", "SRV", "TXT", "MX", "HTTPS", "CNAME", "NS", "PTR", "SOA", "ANY", "TYPE65280")
CLUSTER: tuple[ClusterObject, ...] = (
    namespace("shop"),
    namespace("bare"),
    service("web", "shop", ["10.96.0.1", "fd00::96"], ["http:80", "dns:53/UDP"], external_ips=["192.0.2.7"]),
    service("outside", "shop", external_name="example.org"),
    service("db", "shop"),
    endpoint_slice(
        "db",
        endpoint("10.0.0.1", hostname="db-0", topology_zone="a"),
        endpoint("10.0.0.2", topology_zone="rack.7"),
        namespace="shop",
        ports=["sql:5432"],
    ),
    endpoint_slice("db", endpoint("fd00::1", hostname="db-0"), name="db-6", namespace="shop", ports=["sql:5432"]),
    service("near", "shop", annotation="kubernetes.io/hostname"),
    endpoint_slice("near", endpoint("10.0.0.3", hostname="near-0"), namespace="shop", ports=["http:80"]),
    service("shared", "shop", imported=True),
    endpoint_slice(
        "shared",
        endpoint("10.3.0.1", hostname="s-0"),
        name="east",
        namespace="shop",
        ports=["http:80"],
        imported=True,
        cluster_id="east",
    ),
    endpoint_slice(
        "shared",
        endpoint("10.3.0.2", hostname="s-1"),
        name="eu",
        namespace="shop",
        ports=["http:80"],
        imported=True,
        cluster_id="C1.eu.example",
    ),
    pod("db-0", ["10.0.0.1"], "shop"),
)
IN_CLUSTER = {
    "cluster.local": [
        *("cluster.local", "ns.dns.cluster.local", "dns-version.cluster.local"),
        *(
            "web.shop.svc.cluster.local",
            "_http._tcp.web.shop.svc.cluster.local",
            "_dns._udp.web.shop.svc.cluster.local",
        ),
        *("db.shop.svc.cluster.local", "_sql._tcp.db.shop.svc.cluster.local", "db-0.db.shop.svc.cluster.local"),
        *("10-0-0-2.db.shop.svc.cluster.local", "outside.shop.svc.cluster.local"),
        *("a.pin._zone.db.shop.svc.cluster.local", "rack.7.prefer._zone.db.shop.svc.cluster.local"),
        *("10-0-0-1.shop.pod.cluster.local", "near-0.near.shop.svc.cluster.local"),
    ],
    "clusterset.local": [
        *("shared.shop.svc.clusterset.local", "_http._tcp.shared.shop.svc.clusterset.local"),
        *("s-0.east.shared.shop.svc.clusterset.local", "s-1.c1.eu.example.shared.shop.svc.clusterset.local"),
    ],
    "in-addr.arpa": ["1.0.96.10.in-addr.arpa", "1.0.0.10.in-addr.arpa", "3.0.0.10.in-addr.arpa"],
    "0.10.in-addr.arpa": ["2.0.0.10.in-addr.arpa"],
    "ip6.arpa": [".".join("1" + "0" * 29 + "df") + ".ip6.arpa"],
    ".": ["db.shop.svc", "1.0.0.10.in-addr.arpa"],
}
OUTSIDE = {
    "example.com": [
        *("example.com", "ns1.dns.example.com", "web.shop.example.com", "_http._tcp.web.shop.example.com"),
        *("db.shop.example.com", "_sql._tcp.db.shop.example.com", "db-0.db.shop.example.com"),
    ],
    "in-addr.arpa": ["7.2.0.192.in-addr.arpa"],
}

Dig = Callable[[str], str]


def cluster_under(origin: str) -> Dig:
    multicluster = [origin] if origin.startswith("clusterset") else []
    origins = dict.fromkeys((origin, "cluster.local" if origin != "." else origin))
    there = settings(*origins, multicluster=multicluster, zonal=True, pods=PodMode.VERIFIED)
    return ClusterDig(CLUSTER, there, TopologySettings(), own_addresses=["10.1.2.3"])


def outside_under(origin: str) -> Dig:
    kubernetes = KubernetesSettings((parse_name("cluster.local"),))
    state = ClusterDig(CLUSTER, kubernetes).state
    zone = ExternalZone(K8sExternal((parse_name(origin),), headless=True), kubernetes, state, (packed("10.1.2.3"),))

    def dig(question: str) -> str:
        resolution = at_once(zone(query_of(question), client()))
        assert isinstance(resolution, Resolution)
        return transcript(resolution, question.split()[0])

    return dig


def name_and_above(name: str, origin: str) -> Iterable[str]:
    """The name and every one above it, down to the origin."""
    labels = name.split(".")
    depth = len([label for label in origin.split(".") if label])
    return (".".join(labels[start:]) or "." for start in range(len(labels) - depth + 1))


CASES = [(cluster_under, origin, name) for origin, names in IN_CLUSTER.items() for name in names]
CASES += [(outside_under, origin, name) for origin, names in OUTSIDE.items() for name in names]


@pytest.mark.parametrize(
    ("under", "origin", "name"), CASES, ids=[f"{name} under {origin}" for _, origin, name in CASES]
)
def test_neither_a_name_that_exists_nor_one_above_it_is_denied_for_any_type(
    under: Callable[[str], Dig], origin: str, name: str
) -> None:
    dig = under(origin)
    answers = {qtype: dig(f"{name} {qtype}") for qtype in TYPES}
    assert any(" IN " in answer for answer in answers.values()) or name.startswith("near-0"), answers
    questions = [f"{each} {qtype}" for each in name_and_above(name, origin) for qtype in TYPES]
    assert [question for question in questions if dig(question).startswith("NXDOMAIN")] == []


ABSENT = ["nobody.cluster.local", "x.dns.cluster.local", "no.shop.svc.cluster.local", "_udp.db.shop.svc.cluster.local"]
ABSENT += ["no-such-pod.db.shop.svc.cluster.local", "pin.db.shop.svc.cluster.local", "_tcp.no.shop.svc.cluster.local"]


@pytest.mark.parametrize("name", ABSENT)
def test_a_name_that_does_not_exist_is_denied_for_all_types(name: str) -> None:
    """But for SOA, which CoreDNS never denies: a cache takes that for this type alone."""
    dig = cluster_under("cluster.local")
    assert {dig(f"{name} {qtype}") for qtype in TYPES if qtype != "SOA"} == {"NXDOMAIN cluster.local. 5"}


def test_an_address_without_a_service_is_denied_for_all_types() -> None:
    dig = cluster_under("in-addr.arpa")
    denied = {dig(f"9.9.9.10.in-addr.arpa {qtype}") for qtype in TYPES if qtype != "SOA"}
    assert denied == {"NXDOMAIN in-addr.arpa. 5"}


def test_networks_fall_through_where_the_next_server_may_know_them() -> None:
    """As their addresses that no object here has."""
    dig = ClusterDig(CLUSTER, settings("cluster.local", "in-addr.arpa", fallthrough=["in-addr.arpa"]))
    assert dig.resolve("0.0.10.in-addr.arpa NS") is None
    assert dig.resolve("9.9.9.10.in-addr.arpa A") is None
    assert dig("1.0.0.10.in-addr.arpa A") == "NODATA in-addr.arpa. 5"
