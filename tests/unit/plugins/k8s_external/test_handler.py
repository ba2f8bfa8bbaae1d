"""`k8s_external example.com`, asked and answered as by dig.

A name that has records of some type, or such a name below it, is NXDOMAIN for no type (RFC 2308, RFC 8020). A cache may
take one NXDOMAIN for all types, and for all names below. So each record that a cluster has is looked up by its name,
and then this name and every name above it, up to the origin, are asked for every type.
"""

from collections.abc import Callable, Iterable, Sequence

import pytest

from tests.support.cluster_dig import PASSED, ClusterDig, ZoneText, cases, query_of, settings, transcript
from tests.support.deferred_results import at_once
from tests.support.model_builders import endpoint, endpoint_slice, namespace, packed, pod, service
from tests.support.query_builders import client
from topodns.cluster.model import Alias, ClusterObject
from topodns.dependency import service_fact
from topodns.dns.message import Response, RRset
from topodns.dns.name import Name, parse_name
from topodns.dns.rrtype import RRType
from topodns.plugins.k8s_external.handler import ExternalZone
from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.kubernetes.settings import KubernetesSettings, PodMode
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import Answered, Client, FellThrough, Resolution, Scope, Stepped

OBJECTS = (
    namespace("testns"),
    namespace("hidden"),
    service("svc1", "testns", ["10.0.0.1"], ["http:80"], external_ips=["1.2.3.4"]),
    service("svc6", "testns", ["10.0.0.3"], ["http:80"], external_ips=["1:2::5"]),
    service("two", "testns", ["10.0.0.4"], ["http:80", "https:443"], external_ips=["1.2.3.6", "1.2.3.7", "1.2.3.6"]),
    service("balanced", "testns", ["10.0.0.5"], ["http:80"], external_hostnames=["LB.example.net"]),
    service("inside", "testns", ["10.0.0.6"], ["http:80"]),
    service("empty", "testns", ["10.0.0.8"], ["http:80"]),
    service("secret", "hidden", ["10.0.0.7"], ["http:80"], external_ips=["1.2.3.9"]),
    service("portless", "testns", external_ips=["1.2.3.10"]),
    service("alias", "testns", external_name="www.example.net", external_ips=["1.2.3.11"]),
    service("any-port", "testns", ["10.0.0.12"], ["http:"], external_ips=["1.2.3.12"]),
    service("peers", "testns"),
    endpoint_slice("peers", endpoint("1.2.4.1", hostname="peer-0"), endpoint("1.2.4.2"), namespace="testns"),
    service("every", "testns"),
    endpoint_slice("every", endpoint("1.2.4.3", hostname="ep"), namespace="testns", ports=["http:"]),
    service("named", "testns"),
    endpoint_slice("named", namespace="testns", ports=["http:80"], aliases=[Alias("lb.example.net", hostname="n0")]),
    service("headless", "testns", ports=["http:80"]),
    endpoint_slice(
        "headless",
        endpoint("1.2.3.4", hostname="endpoint-svc-0"),
        endpoint("1.2.3.5", hostname="endpoint-svc-1"),
        endpoint("1.2.3.8", hostname="starting", ready=False),
        namespace="testns",
        ports=["http:80"],
    ),
    endpoint_slice("inside", endpoint("1.2.3.3", hostname="ep"), namespace="testns", ports=["http:8080"]),
)
ORIGINS = ("example.com", "in-addr.arpa")
OUTSIDE = ZoneText("testns.example.com.", "example.com. 5")
DNS_SERVICE = (
    service("dns", "kube-system", ["10.0.0.10"], ["dns:53/UDP"], external_ips=["192.0.2.53", "2001:db8::53"]),
    endpoint_slice("dns", endpoint("10.1.0.1"), namespace="kube-system", ports=["dns:53/UDP"]),
)


def balancer(target: Name, qtype: int, client: Client) -> Answered | None:
    answer = RRset(b"", qtype, 60, (packed("192.0.2.80"),))
    return Resolution(Response(answer=(answer,)), "forward") if qtype == RRType.A else None


class Dig:
    def __init__(
        self,
        objects: Iterable[ClusterObject] = OBJECTS,
        synced: bool = True,
        own: str = "",
        origins: Sequence[str] = ORIGINS,
        **options: object,
    ) -> None:
        kubernetes = settings(namespaces=frozenset({"testns", "kube-system"}))
        cluster = ClusterDig(objects, kubernetes, synced=synced)
        external = K8sExternal(tuple(map(parse_name, origins)), **options)  # type: ignore[arg-type]  # the fields' types
        own_addresses = (packed(own),) if own else ()
        self._step = ExternalZone(external, kubernetes, cluster.state, own_addresses, balancer)

    def resolve(self, question: str) -> Stepped:
        given = self._step(query_of(question), client())
        return given if given is None or isinstance(given, FellThrough) else at_once(given)

    def __call__(self, question: str) -> str:
        stepped = self.resolve(question)
        return transcript(stepped if isinstance(stepped, Resolution) else None, question.split()[0])


SERVICES = {
    "A": ("svc1 A", "A 1.2.3.4"),
    "AAAA": ("svc6 AAAA", "AAAA 1:2::5"),
    "in the query's spelling": ("SVC1.testns.Example.com. A", "A 1.2.3.4"),
    "SRV": ("svc1 SRV", "SRV 0 100 80 svc1", "+ A 1.2.3.4"),
    "SRV of a port": ("_http._tcp.svc6 SRV", "SRV 0 100 80 svc6", "+ svc6 AAAA 1:2::5"),
    "an address that it has twice": ("two A", "A 1.2.3.6", "A 1.2.3.7"),
    "another port": ("_ftp._tcp.svc1 SRV", "NXDOMAIN"),
    "another protocol": ("_http._udp.svc1 SRV", "NXDOMAIN"),
    "a label in front": ("any.svc1 A", "A 1.2.3.4"),
    "three labels in front": ("a.b.c.svc1 A", "NXDOMAIN"),
    "the other family": ("svc1 AAAA", "NODATA"),
    "another type": ("svc1 TXT", "NODATA"),
    "PTR of a name that is there": ("svc1 PTR", "NODATA"),
    "PTR of a name that is not": ("svc0 PTR", "NXDOMAIN"),
    "a Service for the inside only": ("inside A", "NXDOMAIN"),
    "no such Service": ("svc0 A", "NXDOMAIN"),
    "no such namespace": ("svc1.nowhere.example.com. A", "NXDOMAIN"),
    "a namespace that is not shown": ("secret.hidden.example.com. A", "NXDOMAIN"),
    "a namespace": ("@ A", "NODATA"),
    "SOA of a namespace": ("@ SOA", "NODATA"),
    "a name of others": ("example.org. A", PASSED),
    "a load balancer's name": ("balanced A", "CNAME lb.example.net.", "lb.example.net. 60 IN A 192.0.2.80"),
    "a load balancer's name, of which nobody knows more": ("balanced AAAA", "CNAME lb.example.net."),
    "CNAME": ("balanced CNAME", "CNAME lb.example.net."),
    "SRV of a load balancer's name": ("balanced SRV", "SRV 0 100 80 lb.example.net."),
    "an address": ("4.3.2.1.in-addr.arpa. PTR", "PTR svc1"),
    "no one's address": ("5.3.2.1.in-addr.arpa. PTR", "NXDOMAIN in-addr.arpa. 5"),
    "an address of a Service that is not shown": ("9.3.2.1.in-addr.arpa. PTR", "NXDOMAIN in-addr.arpa. 5"),
    "a headless Service": ("headless A", "NXDOMAIN"),
    "a Service without ports": ("portless A", "A 1.2.3.10"),
    "SRV of a Service without ports": ("portless SRV", "NODATA"),
    "a port of a Service without ports": ("_http._tcp.portless A", "NXDOMAIN"),
    "an ExternalName with an external address": ("alias A", "A 1.2.3.11"),
    "a port without a number": ("_http._tcp.any-port A", "A 1.2.3.12"),
    "SRV of a port without a number": ("_http._tcp.any-port SRV", "NODATA"),
    "an address of a Service without ports": ("10.3.2.1.in-addr.arpa. PTR", "PTR portless"),
}
HEADLESS = {
    "A": ("headless A", "A 1.2.3.4", "A 1.2.3.5"),
    "AAAA": ("headless AAAA", "NODATA"),
    "SRV": (
        "_http._tcp.headless SRV",
        "SRV 0 50 80 endpoint-svc-0.headless",
        "SRV 0 50 80 endpoint-svc-1.headless",
        "+ endpoint-svc-0.headless A 1.2.3.4",
        "+ endpoint-svc-1.headless A 1.2.3.5",
    ),
    "an endpoint": ("endpoint-svc-0.headless A", "A 1.2.3.4"),
    "an endpoint that is not ready": ("starting.headless A", "NXDOMAIN"),
    "an endpoint of a Service with a ClusterIP": ("ep.inside A", "A 1.2.3.3"),
    "a Service with a ClusterIP, above its endpoints": ("inside A", "NODATA"),
    "a port of a Service with a ClusterIP": ("_http._tcp.inside A", "NXDOMAIN"),
    "a Service with a ClusterIP and no endpoint": ("empty A", "NXDOMAIN"),
    "an endpoint that is a host name": ("n0.named A", "CNAME lb.example.net.", "lb.example.net. 60 IN A 192.0.2.80"),
    "a host name by its port": ("_http._tcp.named AAAA", "CNAME lb.example.net."),
    "SRV of host names": ("named SRV", "NODATA"),
    "endpoints without ports": ("peers A", "A 1.2.4.1", "A 1.2.4.2"),
    "an endpoint without ports": ("peer-0.peers A", "A 1.2.4.1"),
    "endpoints without ports, the other family": ("peers AAAA", "NODATA"),
    "SRV of endpoints without ports": ("peers SRV", "NODATA"),
    "a port of endpoints without ports": ("_http._tcp.peers A", "NXDOMAIN"),
    "a port of endpoints without a number": ("_http._tcp.every A", "A 1.2.4.3"),
    "SRV of endpoints' port without a number": ("_http._tcp.every SRV", "NODATA"),
    "above endpoints' port without a number": ("_tcp.every A", "NODATA"),
    "a Service with external addresses": ("svc1 A", "A 1.2.3.4"),
}
APEX = {
    "SOA": (
        "example.com. SOA",
        "example.com. 5 IN SOA ns1.dns.example.com. hostmaster.dns.example.com. 1499347823 7200 1800 86400 5",
    ),
    "NS": (
        "example.com. NS",
        "NS ns1.dns.example.com.",
        "+ ns1.dns.example.com. A 192.0.2.53",
        "+ ns1.dns.example.com. AAAA 2001:db8::53",
    ),
    "another type": ("example.com. A", "NODATA"),
    "the server's address": ("ns1.dns.example.com. A", "A 192.0.2.53"),
    "the server's name, another type": ("ns1.dns.example.com. TXT", "NODATA"),
    "another server": ("ns2.dns.example.com. A", "NXDOMAIN"),
    "below the server": ("a.ns1.dns.example.com. A", "NXDOMAIN"),
    "above the server": ("dns.example.com. A", "NODATA"),
}


@cases(SERVICES)
def test_services_have_the_addresses_at_which_the_outside_reaches_them(question: str, records: list[str]) -> None:
    assert Dig()(OUTSIDE.absolute(question)) == OUTSIDE.answer(question, *records)


@cases(HEADLESS)
def test_with_headless_endpoints_are_answered_too(question: str, records: list[str]) -> None:
    assert Dig(headless=True)(OUTSIDE.absolute(question)) == OUTSIDE.answer(question, *records)


@cases(APEX)
def test_the_apex_names_the_services_in_front_of_this_server(question: str, records: list[str]) -> None:
    dig = Dig((*OBJECTS, *DNS_SERVICE), own="10.1.0.1")
    assert dig(OUTSIDE.absolute(question)) == OUTSIDE.answer(question, *records)


def test_without_a_service_the_server_has_its_own_address() -> None:
    assert Dig(own="10.1.0.9")("ns1.dns.example.com. A") == "ns1.dns.example.com. 5 IN A 10.1.0.9"


def test_the_apex_and_the_ttl_may_be_others() -> None:
    dig = Dig(apex="ns", ttl=60, own="10.1.0.9")
    assert dig("ns1.ns.example.com. A") == "ns1.ns.example.com. 60 IN A 10.1.0.9"
    assert dig("svc1.testns.example.com. A") == "svc1.testns.example.com. 60 IN A 1.2.3.4"
    assert dig("nowhere.testns.example.com. A") == "NXDOMAIN example.com. 60"


def test_names_that_do_not_exist_fall_through_where_they_may() -> None:
    dig = Dig(fallthrough=(parse_name("example.com"),))
    assert isinstance(dig.resolve("svc0.testns.example.com. A"), FellThrough)
    assert dig("5.3.2.1.in-addr.arpa. PTR") == "NXDOMAIN in-addr.arpa. 5"
    assert dig("svc1.testns.example.com. TXT") == "NODATA example.com. 5"


def test_while_the_state_is_incomplete_no_name_is_denied() -> None:
    dig = Dig(synced=False, fallthrough=((),))
    assert dig("svc0.testns.example.com. A").startswith("SERVFAIL")
    assert dig("svc1.testns.example.com. A") == "svc1.testns.example.com. 5 IN A 1.2.3.4"


def test_answers_are_everyone_s_until_the_service_changes() -> None:
    resolution = Dig().resolve("svc1.testns.example.com. A")
    assert isinstance(resolution, Resolution)
    assert (resolution.plugin, resolution.scope) == ("k8s_external", Scope.EVERYONE)
    assert service_fact("testns", "svc1") in resolution.facts


def test_the_serial_is_not_kept() -> None:
    resolution = Dig().resolve("example.com. SOA")
    assert isinstance(resolution, Resolution)
    assert resolution.scope is Scope.CLIENT


def test_before_a_zone_as_long_as_a_name_may_be_there_is_no_name_server_and_no_pointer() -> None:
    zone = ".".join(letter * 60 for letter in "abcd") + ".example."
    dig = Dig(own="10.1.0.9", origins=(zone, "in-addr.arpa"))
    assert dig(f"{zone} NS") == f"NODATA {zone} 5"
    assert dig(f"{zone} SOA").split()[4:6] == [zone, zone]
    assert dig("4.3.2.1.in-addr.arpa. PTR") == "NXDOMAIN in-addr.arpa. 5"


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
NAMES_OUTSIDE = {
    "example.com": [
        *("example.com", "ns1.dns.example.com", "web.shop.example.com", "_http._tcp.web.shop.example.com"),
        *("db.shop.example.com", "_sql._tcp.db.shop.example.com", "db-0.db.shop.example.com"),
    ],
    "in-addr.arpa": ["7.2.0.192.in-addr.arpa"],
}

Asked = Callable[[str], str]


def cluster_under(origin: str) -> Asked:
    multicluster = [origin] if origin.startswith("clusterset") else []
    origins = dict.fromkeys((origin, "cluster.local" if origin != "." else origin))
    there = settings(*origins, multicluster=multicluster, zonal=True, pods=PodMode.VERIFIED)
    return ClusterDig(CLUSTER, there, TopologySettings(), own_addresses=["10.1.2.3"])


def outside_under(origin: str) -> Asked:
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
CASES += [(outside_under, origin, name) for origin, names in NAMES_OUTSIDE.items() for name in names]


@pytest.mark.parametrize(
    ("under", "origin", "name"), CASES, ids=[f"{name} under {origin}" for _, origin, name in CASES]
)
def test_neither_a_name_that_exists_nor_one_above_it_is_denied_for_any_type(
    under: Callable[[str], Asked], origin: str, name: str
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
    assert dig("0.0.10.in-addr.arpa NS") == PASSED
    assert dig("9.9.9.10.in-addr.arpa A") == PASSED
    assert dig("1.0.0.10.in-addr.arpa A") == "NODATA in-addr.arpa. 5"
