"""ExternalName Services, asked with dig: the answers are CoreDNS's."""

import pytest

from tests.support.cluster_dig import ClusterDig, cases, expected, settings
from tests.support.model_builders import namespace, packed, service
from tests.unit.plugins.kubernetes.scene import NS, SERVICES, coredns_services
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.name import Name, name_text
from topodns.dns.rrtype import TYPE_NAMES, Rcode, RRType
from topodns.query.cname import Chase
from topodns.query.plugin import Client, Resolution, Scope


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(coredns_services(), settings())


EXTERNAL_NAME = {
    "CNAME alone": ("external CNAME", "CNAME ext.interwebs.test."),
    "A, where nobody can resolve the target": ("external A", "CNAME ext.interwebs.test."),
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
def test_external_names_are_answered_as_by_coredns(dig: ClusterDig, question: str, records: list[str]) -> None:
    assert dig(SERVICES.absolute(question)) == SERVICES.answer(question, *records)


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
