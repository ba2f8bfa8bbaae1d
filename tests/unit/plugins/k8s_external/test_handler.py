"""`k8s_external example.com`, asked and answered as by dig."""

from collections.abc import Iterable, Sequence

import pytest

from tests.support.cluster_dig import PASSED, ClusterDig, expected, query_of, settings, transcript
from tests.support.deferred_results import at_once
from tests.support.model_builders import endpoint, endpoint_slice, namespace, packed, service
from tests.support.query_builders import client
from topodns.cluster.model import Alias, ClusterObject
from topodns.dependency import service_fact
from topodns.dns.message import Response, RRset
from topodns.dns.name import Name, parse_name
from topodns.dns.rrtype import RRType
from topodns.plugins.k8s_external.handler import ExternalZone
from topodns.plugins.k8s_external.settings import K8sExternal
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
SOA = "example.com. 5"
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


def soa(serial: int) -> str:
    numbers = f"{serial} 7200 1800 86400 5"
    return f"example.com. 5 IN SOA ns1.dns.example.com. hostmaster.dns.example.com. {numbers}"


SERVICES = {
    "A": ("svc1.testns.example.com. A", "svc1.testns.example.com. 5 IN A 1.2.3.4"),
    "AAAA": ("svc6.testns.example.com. AAAA", "svc6.testns.example.com. 5 IN AAAA 1:2::5"),
    "in the query's spelling": ("SVC1.testns.Example.com. A", "SVC1.testns.Example.com. 5 IN A 1.2.3.4"),
    "SRV": (
        "svc1.testns.example.com. SRV",
        """
        svc1.testns.example.com. 5 IN SRV 0 100 80 svc1.testns.example.com.
        + svc1.testns.example.com. 5 IN A 1.2.3.4
        """,
    ),
    "SRV of a port": (
        "_http._tcp.svc6.testns.example.com. SRV",
        """
        _http._tcp.svc6.testns.example.com. 5 IN SRV 0 100 80 svc6.testns.example.com.
        + svc6.testns.example.com. 5 IN AAAA 1:2::5
        """,
    ),
    "an address that it has twice": (
        "two.testns.example.com. A",
        "two.testns.example.com. 5 IN A 1.2.3.6\ntwo.testns.example.com. 5 IN A 1.2.3.7",
    ),
    "another port": ("_ftp._tcp.svc1.testns.example.com. SRV", f"NXDOMAIN {SOA}"),
    "another protocol": ("_http._udp.svc1.testns.example.com. SRV", f"NXDOMAIN {SOA}"),
    "a label in front": ("any.svc1.testns.example.com. A", "any.svc1.testns.example.com. 5 IN A 1.2.3.4"),
    "three labels in front": ("a.b.c.svc1.testns.example.com. A", f"NXDOMAIN {SOA}"),
    "the other family": ("svc1.testns.example.com. AAAA", f"NODATA {SOA}"),
    "another type": ("svc1.testns.example.com. TXT", f"NODATA {SOA}"),
    "PTR of a name that is there": ("svc1.testns.example.com. PTR", f"NODATA {SOA}"),
    "PTR of a name that is not": ("svc0.testns.example.com. PTR", f"NXDOMAIN {SOA}"),
    "a Service for the inside only": ("inside.testns.example.com. A", f"NXDOMAIN {SOA}"),
    "no such Service": ("svc0.testns.example.com. A", f"NXDOMAIN {SOA}"),
    "no such namespace": ("svc1.nowhere.example.com. A", f"NXDOMAIN {SOA}"),
    "a namespace that is not shown": ("secret.hidden.example.com. A", f"NXDOMAIN {SOA}"),
    "a namespace": ("testns.example.com. A", f"NODATA {SOA}"),
    "SOA of a namespace": ("testns.example.com. SOA", f"NODATA {SOA}"),
    "a name of others": ("example.org. A", PASSED),
    "a load balancer's name": (
        "balanced.testns.example.com. A",
        """
        balanced.testns.example.com. 5 IN CNAME lb.example.net.
        lb.example.net. 60 IN A 192.0.2.80
        """,
    ),
    "a load balancer's name, of which nobody knows more": (
        "balanced.testns.example.com. AAAA",
        "balanced.testns.example.com. 5 IN CNAME lb.example.net.",
    ),
    "CNAME": ("balanced.testns.example.com. CNAME", "balanced.testns.example.com. 5 IN CNAME lb.example.net."),
    "SRV of a load balancer's name": (
        "balanced.testns.example.com. SRV",
        "balanced.testns.example.com. 5 IN SRV 0 100 80 lb.example.net.",
    ),
    "an address": ("4.3.2.1.in-addr.arpa. PTR", "4.3.2.1.in-addr.arpa. 5 IN PTR svc1.testns.example.com."),
    "no one's address": ("5.3.2.1.in-addr.arpa. PTR", "NXDOMAIN in-addr.arpa. 5"),
    "an address of a Service that is not shown": ("9.3.2.1.in-addr.arpa. PTR", "NXDOMAIN in-addr.arpa. 5"),
    "a headless Service": ("headless.testns.example.com. A", f"NXDOMAIN {SOA}"),
    "a Service without ports": ("portless.testns.example.com. A", "portless.testns.example.com. 5 IN A 1.2.3.10"),
    "SRV of a Service without ports": ("portless.testns.example.com. SRV", f"NODATA {SOA}"),
    "a port of a Service without ports": ("_http._tcp.portless.testns.example.com. A", f"NXDOMAIN {SOA}"),
    "an ExternalName with an external address": (
        "alias.testns.example.com. A",
        "alias.testns.example.com. 5 IN A 1.2.3.11",
    ),
    "a port without a number": (
        "_http._tcp.any-port.testns.example.com. A",
        "_http._tcp.any-port.testns.example.com. 5 IN A 1.2.3.12",
    ),
    "SRV of a port without a number": ("_http._tcp.any-port.testns.example.com. SRV", f"NODATA {SOA}"),
    "an address of a Service without ports": (
        "10.3.2.1.in-addr.arpa. PTR",
        "10.3.2.1.in-addr.arpa. 5 IN PTR portless.testns.example.com.",
    ),
}
HEADLESS = {
    "A": (
        "headless.testns.example.com. A",
        "headless.testns.example.com. 5 IN A 1.2.3.4\nheadless.testns.example.com. 5 IN A 1.2.3.5",
    ),
    "AAAA": ("headless.testns.example.com. AAAA", f"NODATA {SOA}"),
    "SRV": (
        "_http._tcp.headless.testns.example.com. SRV",
        """
        _http._tcp.headless.testns.example.com. 5 IN SRV 0 50 80 endpoint-svc-0.headless.testns.example.com.
        _http._tcp.headless.testns.example.com. 5 IN SRV 0 50 80 endpoint-svc-1.headless.testns.example.com.
        + endpoint-svc-0.headless.testns.example.com. 5 IN A 1.2.3.4
        + endpoint-svc-1.headless.testns.example.com. 5 IN A 1.2.3.5
        """,
    ),
    "an endpoint": (
        "endpoint-svc-0.headless.testns.example.com. A",
        "endpoint-svc-0.headless.testns.example.com. 5 IN A 1.2.3.4",
    ),
    "an endpoint that is not ready": ("starting.headless.testns.example.com. A", f"NXDOMAIN {SOA}"),
    "an endpoint of a Service with a ClusterIP": (
        "ep.inside.testns.example.com. A",
        "ep.inside.testns.example.com. 5 IN A 1.2.3.3",
    ),
    "a Service with a ClusterIP, above its endpoints": ("inside.testns.example.com. A", f"NODATA {SOA}"),
    "a port of a Service with a ClusterIP": ("_http._tcp.inside.testns.example.com. A", f"NXDOMAIN {SOA}"),
    "a Service with a ClusterIP and no endpoint": ("empty.testns.example.com. A", f"NXDOMAIN {SOA}"),
    "an endpoint that is a host name": (
        "n0.named.testns.example.com. A",
        """
        n0.named.testns.example.com. 5 IN CNAME lb.example.net.
        lb.example.net. 60 IN A 192.0.2.80
        """,
    ),
    "a host name by its port": (
        "_http._tcp.named.testns.example.com. AAAA",
        "_http._tcp.named.testns.example.com. 5 IN CNAME lb.example.net.",
    ),
    "SRV of host names": ("named.testns.example.com. SRV", f"NODATA {SOA}"),
    "endpoints without ports": (
        "peers.testns.example.com. A",
        "peers.testns.example.com. 5 IN A 1.2.4.1\npeers.testns.example.com. 5 IN A 1.2.4.2",
    ),
    "an endpoint without ports": (
        "peer-0.peers.testns.example.com. A",
        "peer-0.peers.testns.example.com. 5 IN A 1.2.4.1",
    ),
    "endpoints without ports, the other family": ("peers.testns.example.com. AAAA", f"NODATA {SOA}"),
    "SRV of endpoints without ports": ("peers.testns.example.com. SRV", f"NODATA {SOA}"),
    "a port of endpoints without ports": ("_http._tcp.peers.testns.example.com. A", f"NXDOMAIN {SOA}"),
    "a port of endpoints without a number": (
        "_http._tcp.every.testns.example.com. A",
        "_http._tcp.every.testns.example.com. 5 IN A 1.2.4.3",
    ),
    "SRV of endpoints' port without a number": ("_http._tcp.every.testns.example.com. SRV", f"NODATA {SOA}"),
    "above endpoints' port without a number": ("_tcp.every.testns.example.com. A", f"NODATA {SOA}"),
    "a Service with external addresses": ("svc1.testns.example.com. A", "svc1.testns.example.com. 5 IN A 1.2.3.4"),
}
APEX = {
    "SOA": ("example.com. SOA", soa(1499347823)),
    "NS": (
        "example.com. NS",
        """
        example.com. 5 IN NS ns1.dns.example.com.
        + ns1.dns.example.com. 5 IN A 192.0.2.53
        + ns1.dns.example.com. 5 IN AAAA 2001:db8::53
        """,
    ),
    "another type": ("example.com. A", f"NODATA {SOA}"),
    "the server's address": ("ns1.dns.example.com. A", "ns1.dns.example.com. 5 IN A 192.0.2.53"),
    "the server's name, another type": ("ns1.dns.example.com. TXT", f"NODATA {SOA}"),
    "another server": ("ns2.dns.example.com. A", f"NXDOMAIN {SOA}"),
    "below the server": ("a.ns1.dns.example.com. A", f"NXDOMAIN {SOA}"),
    "above the server": ("dns.example.com. A", f"NODATA {SOA}"),
}


@pytest.mark.parametrize(("question", "answer"), SERVICES.values(), ids=SERVICES)
def test_services_have_the_addresses_at_which_the_outside_reaches_them(question: str, answer: str) -> None:
    assert Dig()(question) == expected(answer)


@pytest.mark.parametrize(("question", "answer"), HEADLESS.values(), ids=HEADLESS)
def test_with_headless_endpoints_are_answered_too(question: str, answer: str) -> None:
    assert Dig(headless=True)(question) == expected(answer)


@pytest.mark.parametrize(("question", "answer"), APEX.values(), ids=APEX)
def test_the_apex_names_the_services_in_front_of_this_server(question: str, answer: str) -> None:
    assert Dig((*OBJECTS, *DNS_SERVICE), own="10.1.0.1")(question) == expected(answer)


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
    assert dig("svc1.testns.example.com. TXT") == f"NODATA {SOA}"


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
