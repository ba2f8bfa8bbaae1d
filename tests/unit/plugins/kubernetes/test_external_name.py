"""ExternalName Services, asked with dig: the answers are CoreDNS's."""

from collections.abc import Callable

import pytest

from tests.support.cluster_dig import ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, packed, service
from topodns.cluster.model import ClusterObject
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.name import Name, name_text
from topodns.dns.rrtype import TYPE_NAMES, Rcode, RRType
from topodns.query.cname import Chase
from topodns.query.plugin import Client, Resolution, Scope

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
        endpoint_slice("notready", endpoint("172.0.0.30", ready=False), namespace=NS, ports=["http:80"]),
    ]


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(cluster(), settings())


EXTERNAL_NAME = {
    "CNAME alone": (
        "external.testns.svc.cluster.local. CNAME",
        "external.testns.svc.cluster.local. 5 IN CNAME ext.interwebs.test.",
    ),
    "A, where nobody can resolve the target": (
        "external.testns.svc.cluster.local. A",
        "external.testns.svc.cluster.local. 5 IN CNAME ext.interwebs.test.",
    ),
    "a target in the same origin is resolved here": (
        "external-to-service.testns.svc.cluster.local. A",
        """
        external-to-service.testns.svc.cluster.local. 5 IN CNAME svc1.testns.svc.cluster.local.
        svc1.testns.svc.cluster.local. 5 IN A 10.0.0.1
        """,
    ),
    "a target here without such records takes the CNAME with it": (
        "external-to-service.testns.svc.cluster.local. AAAA",
        "NODATA cluster.local. 5",
    ),
    "a target here that does not exist takes the CNAME with it": (
        "external-to-nothing.testns.svc.cluster.local. A",
        "NODATA cluster.local. 5",
    ),
    "the CNAME to nothing can still be asked for": (
        "external-to-nothing.testns.svc.cluster.local. CNAME",
        "external-to-nothing.testns.svc.cluster.local. 5 IN CNAME svc0.testns.svc.cluster.local.",
    ),
    "a loop of one": ("external-to-itself.testns.svc.cluster.local. A", "NODATA cluster.local. 5"),
    "a loop of two": ("external-a.testns.svc.cluster.local. A", "NODATA cluster.local. 5"),
    "an address is no name": ("external-ip.testns.svc.cluster.local. A", "NXDOMAIN cluster.local. 5"),
    "no name at all": ("external-long.testns.svc.cluster.local. CNAME", "NXDOMAIN cluster.local. 5"),
    "SRV": ("external.testns.svc.cluster.local. SRV", "NODATA cluster.local. 5"),
    "TXT": ("external.testns.svc.cluster.local. TXT", "NODATA cluster.local. 5"),
    "MX": ("external.testns.svc.cluster.local. MX", "NODATA cluster.local. 5"),
    "HTTPS": ("external.testns.svc.cluster.local. HTTPS", "NODATA cluster.local. 5"),
    "an endpoint of it": ("endpoint.external.testns.svc.cluster.local. CNAME", "NXDOMAIN cluster.local. 5"),
    "a port of it": ("_http._tcp.external.testns.svc.cluster.local. SRV", "NXDOMAIN cluster.local. 5"),
}


def _cases(table: dict[str, tuple[str, str]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return pytest.mark.parametrize(("question", "answer"), table.values(), ids=table.keys())


@_cases(EXTERNAL_NAME)
def test_external_names_are_answered_as_by_coredns(dig: ClusterDig, question: str, answer: str) -> None:
    assert dig(question) == expected(answer)


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
    dig = ClusterDig(cluster(), settings(), chase=_listener(asked, there))
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
    assert resolution is not None
    assert resolution.response.flags & Flag.TC
    assert resolution.scope is Scope.CLIENT


@pytest.mark.parametrize("there", [Response(Rcode.NXDOMAIN), Response(Rcode.SERVFAIL), None])
def test_a_target_elsewhere_that_fails_leaves_the_cname_alone(there: Response | None) -> None:
    dig = ClusterDig(cluster(), settings(), chase=_listener([], there))
    assert dig("external.testns.svc.cluster.local. A") == (
        "external.testns.svc.cluster.local. 5 IN CNAME ext.interwebs.test."
    )
