"""ExternalName Services and slices of addressType FQDN, asked with dig: the answers are CoreDNS's."""

from collections.abc import Sequence

import pytest

from tests.support.cluster_dig import ClusterDig, cases, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, packed, service
from tests.unit.plugins.kubernetes.scene import NS, SERVICES, coredns_services
from topodns.cluster.model import Alias, ClusterObject, EndpointSlice
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.name import Name, name_text
from topodns.dns.rrtype import TYPE_NAMES, Rcode, RRType
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.cname import MAX_TARGETS, Chase
from topodns.query.plugin import Client, Resolution, Scope


@pytest.fixture(scope="module")
def coredns_dig() -> ClusterDig:
    return ClusterDig(coredns_services(), settings())


EXTERNAL_NAME = {
    "CNAME alone": ("external CNAME", "CNAME ext.interwebs.test."),
    "A, where the target cannot be resolved": ("external A", "CNAME ext.interwebs.test."),
    "a target in the same origin is resolved here": ("external-to-service A", "CNAME svc1", "svc1 A 10.0.0.1"),
    "a target here without such records takes the CNAME with it": ("external-to-service AAAA", "NODATA"),
    "a target here that does not exist takes the CNAME with it": ("external-to-nothing A", "NODATA"),
    "the CNAME to nothing can still be asked for": ("external-to-nothing CNAME", "CNAME svc0"),
    "a loop of one": ("external-to-itself A", "NODATA"),
    "a loop of two": ("external-a A", "NODATA"),
    "an address is no name": ("external-ip A", "NXDOMAIN"),
    "no name at all": ("external-long CNAME", "NXDOMAIN"),
    "SRV": ("external SRV", "NODATA"),
    "TXT": ("external TXT", "NODATA"),
    "MX": ("external MX", "NODATA"),
    "HTTPS": ("external HTTPS", "NODATA"),
    "an endpoint of it": ("endpoint.external CNAME", "NXDOMAIN"),
    "a port of it": ("_http._tcp.external SRV", "NXDOMAIN"),
}


@cases(EXTERNAL_NAME)
def test_external_names_are_answered_as_by_coredns(coredns_dig: ClusterDig, question: str, records: list[str]) -> None:
    assert coredns_dig(SERVICES.absolute(question)) == SERVICES.answer(question, *records)


def test_a_chain_of_eleven_external_names_is_followed_and_a_longer_one_is_nodata() -> None:
    links = [service(f"n{i}", NS, external_name=f"n{i + 1}.testns.svc.cluster.local") for i in range(12)]
    dig = ClusterDig([namespace(NS), *links, service("n12", NS, ["10.0.0.1"])], settings())
    assert dig("n1.testns.svc.cluster.local. A").count("CNAME") == 11
    assert dig("n0.testns.svc.cluster.local. A") == "NODATA cluster.local. 5"


def _listener(asked: list[str], response: Response | None) -> Chase:
    def chase(target: Name, qtype: int, _client: Client) -> Resolution | None:
        asked.append(f"{name_text(target)} {TYPE_NAMES[qtype]}")
        return None if response is None else Resolution(response, "forward")

    return chase


def test_a_target_elsewhere_is_asked_of_the_listener_and_only_for_addresses() -> None:
    asked: list[str] = []
    there = Response(Rcode.NOERROR, (RRset(b"", RRType.A, 30, (packed("1.2.3.4"),)),), flags=Flag.AA | Flag.TC)
    dig = ClusterDig(coredns_services(), settings(), chase=_listener(asked, there))
    assert dig("external.testns.svc.cluster.local. HTTPS") == "NODATA cluster.local. 5"
    assert asked == []
    assert dig("external.testns.svc.cluster.local. A") == expected(
        """
        external.testns.svc.cluster.local. 5 IN CNAME ext.interwebs.test.
        ext.interwebs.test. 30 IN A 1.2.3.4
        """
    )
    assert asked == ["ext.interwebs.test. A"]
    resolution = dig.resolve("external.testns.svc.cluster.local. A")
    assert resolution.response.flags & Flag.TC
    assert resolution.scope is Scope.CLIENT


@pytest.mark.parametrize("there", [Response(Rcode.NXDOMAIN), Response(Rcode.SERVFAIL), None])
def test_a_target_elsewhere_that_fails_leaves_the_cname_alone(there: Response | None) -> None:
    dig = ClusterDig(coredns_services(), settings(), chase=_listener([], there))
    assert dig("external.testns.svc.cluster.local. A") == (
        "external.testns.svc.cluster.local. 5 IN CNAME ext.interwebs.test."
    )


ZONE = f"{NS}.svc.cluster.local."
WWW, MAIL = Alias("www.example.org"), Alias("Mail.example.org", hostname="m0", topology_zone="EU-1")


def fqdn(name: str, *aliases: Alias, suffix: str = "fqdn", ports: Sequence[str] = ("http:80",)) -> EndpointSlice:
    return endpoint_slice(
        name, name=f"{name}-{suffix}", namespace=NS, address_type="FQDN", aliases=aliases, ports=ports
    )


def cluster() -> list[ClusterObject]:
    return [
        namespace(NS),
        service("one", NS),
        fqdn("one", WWW, ports=("http:80", "dns:53/UDP")),
        service("several", NS),
        fqdn("several", WWW, MAIL, Alias("asleep.example.org", ready=False)),
        fqdn("several", WWW, suffix="more", ports=()),
        service("mixed", NS),
        fqdn("mixed", WWW),
        endpoint_slice("mixed", endpoint("10.0.0.1", hostname="x0"), namespace=NS, ports=["http:80"]),
        service("asleep", NS),
        fqdn("asleep", Alias("www.example.org", ready=False)),
        service("virtual", NS, ["10.96.0.1"], ["http:80"]),
        fqdn("virtual", WWW),
        service("inside", NS),
        fqdn("inside", Alias(f"mixed.{ZONE}"), WWW),
        service("nowhere", NS),
        fqdn("nowhere", Alias(f"no-such.{ZONE}")),
        service("itself", NS),
        fqdn("itself", Alias(f"itself.{ZONE}")),
        service("circle", NS),
        fqdn("circle", Alias(f"circle-2.{ZONE}"), MAIL),
        service("circle-2", NS),
        fqdn("circle-2", Alias(f"circle.{ZONE}")),
        service("broken", NS),
        fqdn("broken", Alias("no..name"), Alias("10.0.0.9"), Alias("x" * 64)),
    ]


ANSWERS = {
    "A": ("one A", "CNAME www.example.org."),
    "AAAA": ("one AAAA", "CNAME www.example.org."),
    "CNAME": ("one CNAME", "CNAME www.example.org."),
    "SRV": ("one SRV", "NODATA"),
    "TXT": ("one TXT", "NODATA"),
    "a port": ("_dns._udp.one A", "CNAME www.example.org."),
    "a port of another protocol": ("_dns._tcp.one A", "NXDOMAIN"),
    "above a port": ("_udp.one A", "NODATA"),
    "above no port": ("_sctp.one A", "NXDOMAIN"),
    "an endpoint": ("www-example-org.one A", "CNAME www.example.org."),
    "SRV of an endpoint": ("www-example-org.one SRV", "NODATA"),
    "no endpoint": ("mail-example-org.one A", "NXDOMAIN"),
    "several": ("several A", "CNAME www.example.org.", "CNAME mail.example.org."),
    "CNAME of several": ("several CNAME", "CNAME www.example.org."),
    "a port of some": ("_http._tcp.several A", "CNAME www.example.org.", "CNAME mail.example.org."),
    "an endpoint with a hostname": ("M0.several A", "CNAME mail.example.org."),
    "an endpoint that is not ready": ("asleep-example-org.several A", "NXDOMAIN"),
    "beside addresses": ("mixed A", "A 10.0.0.1", "CNAME www.example.org."),
    "beside addresses of the other family": ("mixed AAAA", "CNAME www.example.org."),
    "SRV beside addresses": ("mixed SRV", "SRV 0 100 80 x0.mixed", "+ x0.mixed A 10.0.0.1"),
    "none that is ready": ("asleep A", "NXDOMAIN"),
    "a Service with a ClusterIP": ("virtual A", "A 10.96.0.1"),
    "an endpoint of a Service with a ClusterIP": ("www-example-org.virtual A", "CNAME www.example.org."),
    "a target in the same zone": (
        "inside A",
        "CNAME mixed",
        "CNAME www.example.org.",
        "mixed A 10.0.0.1",
        "mixed CNAME www.example.org.",
    ),
    "a target in the same zone that does not exist": ("nowhere A", "NODATA"),
    "a target at the name itself": ("itself A", "NODATA"),
    "targets in a circle": ("circle A", "CNAME mail.example.org."),
    "what is no host name": ("broken A", "NODATA"),
    "a zone": ("eu-1.pin._zone.several A", "CNAME mail.example.org."),
    "another zone": ("eu-2.pin._zone.several A", "NODATA"),
    "another zone, preferred": ("eu-2.prefer._zone.mixed A", "A 10.0.0.1", "CNAME www.example.org."),
}


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(cluster(), settings(zonal=True))


@cases(ANSWERS)
def test_slices_of_host_names_are_answered_as_by_coredns(dig: ClusterDig, question: str, records: list[str]) -> None:
    assert dig(SERVICES.absolute(question)) == SERVICES.answer(question, *records)


def test_each_target_elsewhere_is_asked_of_the_listener_and_a_limited_number() -> None:
    asked: list[str] = []

    def chase(target: Name, qtype: int, _client: Client) -> Resolution:
        asked.append(name_text(target))
        return Resolution(Response(Rcode.NOERROR, (RRset(b"", RRType.A, 30, (packed("192.0.2.1"),)),)), "forward")

    many = [Alias(f"h{at}.example.org") for at in range(MAX_TARGETS + 5)]
    dig = ClusterDig([namespace(NS), service("many", NS), fqdn("many", *many)], settings(), chase=chase)
    lines = dig(f"many.{ZONE} A").splitlines()
    assert [line for line in lines if " A " in line] == [f"{name} 30 IN A 192.0.2.1" for name in asked]
    assert asked == [f"h{at}.example.org." for at in range(MAX_TARGETS)]
    assert len(lines) == 2 * MAX_TARGETS


def test_topology_keys_choose_the_addresses_and_leave_the_cnames() -> None:
    objects: list[ClusterObject] = [
        *(namespace(NS), node("n1", addresses=["10.240.0.1"]), node("n2", addresses=["10.240.0.2"])),
        service("near", NS, annotation="kubernetes.io/hostname"),
        endpoint_slice("near", endpoint("10.0.0.1", "n1"), namespace=NS),
        fqdn("near", WWW),
    ]
    dig = ClusterDig(objects, settings(), TopologySettings())
    cname = f"near.{ZONE} 5 IN CNAME www.example.org."
    assert dig(f"near.{ZONE} A", "10.240.0.1") == f"near.{ZONE} 5 IN A 10.0.0.1\n{cname}"
    assert dig(f"near.{ZONE} A", "10.240.0.2").startswith(cname)


def test_with_noendpoints_there_are_none() -> None:
    dig = ClusterDig(cluster(), settings(noendpoints=True))
    assert dig(f"one.{ZONE} A") == "NXDOMAIN cluster.local. 5"


def test_a_service_whose_only_endpoints_are_host_names_is_not_empty() -> None:
    dig = ClusterDig(cluster(), settings(ignore_empty_service=True))
    assert dig(f"virtual.{ZONE} A") == f"virtual.{ZONE} 5 IN A 10.96.0.1"


def test_services_that_are_aliases_of_each_other_cost_a_chain_for_each_of_the_first_ones_targets() -> None:
    """Of twelve the whole tree would have 11 ^ 11 names, and take the server as long as anybody waits."""
    objects: list[ClusterObject] = [namespace(NS)]
    names = [f"s{at}" for at in range(12)]
    for name in names:
        objects += [
            service(name, NS),
            fqdn(name, *(Alias(f"{other}.{ZONE}") for other in names if other != name)),
            endpoint_slice(name, endpoint("10.0.0.1"), namespace=NS, ports=["http:80"]),
        ]
    lines = ClusterDig(objects, settings())(f"s0.{ZONE} A").splitlines()
    assert lines[0] == f"s0.{ZONE} 5 IN A 10.0.0.1"
    owners = [line.split()[0] for line in lines if " A " in line]
    assert set(owners) == {f"{name}.{ZONE}" for name in names}
    assert len(owners) <= MAX_TARGETS * len(names)
