"""Names that are no Service, what every answer has in common, and the options that change answers: as CoreDNS's.

Each name that an answer is made of is one that a message can have, and leads to its address, in any cluster: a reply
with a name of more than 255 octets cannot be read at all (RFC 1035 section 2.3.4), and a target of SRV or PTR that is
denied is of no use.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from dnslib import DNSRecord
from hypothesis import HealthCheck, given
from hypothesis import settings as tries
from hypothesis import strategies as st

from tests.support.cluster_dig import PASSED, ClusterDig, ZoneText, cases, settings
from tests.support.dns_messages import query
from tests.support.fast_path_sockets import Socket
from tests.support.model_builders import endpoint, endpoint_slice, namespace, packed, service
from tests.support.rrset_text import lines
from tests.unit.plugins.kubernetes.scene import NS, OWN_ADDRESSES, SERVICES, few_services
from topodns.cluster.model import Alias, ClusterObject, Deleted, Endpoint, Kind, Namespace, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dependency import node_fact, service_fact
from topodns.dns.message import Flag
from topodns.dns.name import name_text, parse_name, reverse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes.handler import resolution_of
from topodns.plugins.kubernetes.question import NAME_ERRORS, Answer, Missing
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.query.plugin import Scope
from topodns.topology.select import Location


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(few_services(), settings(), own_addresses=OWN_ADDRESSES)


NODES = {
    "apex A": ("cluster.local. A", "NODATA"),
    "apex AAAA": ("cluster.local. AAAA", "NODATA"),
    "apex SRV": ("cluster.local. SRV", "NODATA"),
    "apex MX": ("cluster.local. MX", "NODATA"),
    "apex HINFO": ("cluster.local. HINFO", "NODATA"),
    "apex TXT, which CoreDNS denies": ("cluster.local. TXT", "NODATA"),
    "apex SOA": (
        "cluster.local. SOA",
        "SOA ns.dns.cluster.local. hostmaster.cluster.local. 1499347823 7200 1800 86400 5",
    ),
    "apex NS, behind no Service": (
        "cluster.local. NS",
        "NS ns.dns.cluster.local.",
        "+ ns.dns.cluster.local. A 10.1.2.3",
        "+ ns.dns.cluster.local. AAAA fd00::9",
    ),
    "ns.dns A": ("ns.dns.cluster.local. A", "A 10.1.2.3"),
    "ns.dns AAAA": ("ns.dns.cluster.local. AAAA", "AAAA fd00::9"),
    "ns.dns SRV": ("ns.dns.cluster.local. SRV", "NODATA"),
    "dns, above ns.dns": ("dns.cluster.local. A", "NODATA"),
    "dns-version A": ("dns-version.cluster.local. A", "NODATA"),
    "svc": ("svc.cluster.local. A", "NODATA"),
    "svc NS": ("svc.cluster.local. NS", "NODATA"),
    "ns.dns TXT, which CoreDNS denies": ("ns.dns.cluster.local. TXT", "NODATA"),
    "ns.dns PTR, which CoreDNS denies": ("ns.dns.cluster.local. PTR", "NODATA"),
    "ns.dns MX": ("ns.dns.cluster.local. MX", "NODATA"),
    "svc TXT, which CoreDNS denies": ("svc.cluster.local. TXT", "NODATA"),
    "pod": ("pod.cluster.local. A", "NODATA"),
    "a namespace": ("testns.svc.cluster.local. A", "NODATA"),
    "a namespace NS": ("testns.svc.cluster.local. NS", "NODATA"),
    "a namespace TXT, which CoreDNS denies": ("testns.svc.cluster.local. TXT", "NODATA"),
    "no such namespace": ("foo.svc.cluster.local. NS", "NXDOMAIN"),
    "anything else": ("foo.cluster.local. NS", "NXDOMAIN"),
}

TYPES = {
    "TXT of a Service": ("svc1 TXT", "NODATA"),
    "TXT of no Service": ("svc0 TXT", "NXDOMAIN"),
    "MX of a Service": ("svc1 MX", "NODATA"),
    "CNAME of a Service": ("svc1 CNAME", "NODATA"),
    "CNAME of no Service": ("svc0 CNAME", "NXDOMAIN"),
    "PTR of a Service": ("svc1 PTR", "NODATA"),
    "PTR of no Service": ("example.org.cluster.local. PTR", "NXDOMAIN"),
    "PTR of an address that is not reversed": ("100.0.0.10.cluster.local. PTR", "NXDOMAIN"),
    "SOA of a Service": ("svc1 SOA", "NODATA"),
    "SOA of no Service, a quirk of CoreDNS": ("svc0 SOA", "NODATA"),
    "NS of a Service": ("svc1 NS", "NODATA"),
    "HTTPS of a Service": ("svc1 HTTPS", "NODATA"),
    "HTTPS of a headless Service": ("hdls1 HTTPS", "NODATA"),
    "HTTPS of an endpoint": ("172-0-0-2.hdls1 HTTPS", "NODATA"),
    "HTTPS of no Service": ("svc0 HTTPS", "NXDOMAIN"),
    "ANY of a Service": ("svc1 ANY", "NODATA"),
    "an unknown type of a Service": ("svc1 TYPE65280", "NODATA"),
    "an unknown type of no Service": ("svc0 TYPE65280", "NXDOMAIN"),
}


@cases(NODES)
def test_the_nodes_of_the_schema_are_answered_as_by_coredns(dig: ClusterDig, question: str, records: list[str]) -> None:
    assert dig(SERVICES.absolute(question)) == SERVICES.answer(question, *records)


@cases(TYPES)
def test_types_without_records_are_answered_as_by_coredns(dig: ClusterDig, question: str, records: list[str]) -> None:
    assert dig(SERVICES.absolute(question)) == SERVICES.answer(question, *records)


@pytest.mark.parametrize(("ttl", "soa_ttl"), [(0, 0), (5, 5), (30, 30), (300, 300), (3600, 300)])
def test_the_ttl_option_is_on_every_record_and_the_soa_s_own_is_at_most_300(ttl: int, soa_ttl: int) -> None:
    dig = ClusterDig(few_services(), settings(ttl=ttl))
    assert dig("svc1.testns.svc.cluster.local. A") == f"svc1.testns.svc.cluster.local. {ttl} IN A 10.0.0.1"
    assert dig("svc0.testns.svc.cluster.local. A") == f"NXDOMAIN cluster.local. {soa_ttl}"
    assert dig("cluster.local. SOA").endswith(f" 86400 {ttl}")
    assert dig("dns-version.cluster.local. TXT") == 'dns-version.cluster.local. 28800 IN TXT "1.1.0"'


def test_the_serial_is_zero_before_any_change() -> None:
    dig = ClusterDig([], settings())
    assert " 0 7200 1800 86400 5" in dig("cluster.local. SOA")


def test_answers_are_authoritative_and_counted_for_the_kubernetes_plugin(dig: ClusterDig) -> None:
    for question in ("svc1.testns.svc.cluster.local. A", "svc0.testns.svc.cluster.local. A"):
        resolution = dig.resolve(question)
        assert resolution.response.flags == Flag.AA
        assert resolution.plugin == "kubernetes"
        assert resolution.scope is Scope.EVERYONE


def test_fallthrough_passes_on_names_that_do_not_exist_and_no_others() -> None:
    dig = ClusterDig(few_services(), settings(fallthrough=["in-addr.arpa", "testns.svc.cluster.local"]))
    assert dig("svc0.testns.svc.cluster.local. A") == PASSED
    assert dig("9.9.9.9.in-addr.arpa. PTR") == PASSED
    assert dig("svc0.other.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("svc1.testns.svc.cluster.local. AAAA") == "NODATA cluster.local. 5"
    everything = ClusterDig(few_services(), settings(fallthrough=["."]))
    assert everything("foo.cluster.local. A") == PASSED


def test_a_namespace_that_is_deleted_takes_its_names_with_it() -> None:
    dig = ClusterDig(few_services(), settings())
    dig.apply(Deleted("Namespace", Namespace(NS).key))
    assert dig("svc1.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"


def half_empty() -> list[ClusterObject]:
    return [
        namespace(NS),
        service("empty", NS, ["10.0.0.1"], ["http:80"]),
        service("starting", NS, ["10.0.0.2"], ["http:80"]),
        service("full", NS, ["10.0.0.3"], ["http:80"]),
        service("hdls", NS),
        service("external", NS, external_name="example.org"),
        endpoint_slice("starting", endpoint("172.0.0.2", ready=False), namespace=NS, ports=["http:80"]),
        endpoint_slice("full", endpoint("172.0.0.3"), namespace=NS, ports=["http:80"]),
        endpoint_slice("hdls", endpoint("172.0.0.4"), namespace=NS, ports=["http:80"]),
    ]


def test_ignore_empty_service_denies_cluster_ips_without_ready_endpoints() -> None:
    dig = ClusterDig(half_empty(), settings(ignore_empty_service=True))
    assert dig("empty.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("empty.testns.svc.cluster.local. AAAA") == "NXDOMAIN cluster.local. 5"
    assert dig("starting.testns.svc.cluster.local. SRV") == "NXDOMAIN cluster.local. 5"
    assert dig("full.testns.svc.cluster.local. A").endswith("10.0.0.3")
    assert dig("external.testns.svc.cluster.local. CNAME").endswith("example.org.")


def test_noendpoints_leaves_cluster_ips_and_external_names() -> None:
    dig = ClusterDig(half_empty(), settings(noendpoints=True))
    assert dig("full.testns.svc.cluster.local. A").endswith("10.0.0.3")
    assert dig("external.testns.svc.cluster.local. CNAME").endswith("example.org.")
    assert dig("hdls.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("172-0-0-3.full.testns.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("3.0.0.172.in-addr.arpa. PTR") == "NXDOMAIN in-addr.arpa. 5"
    assert dig("3.0.0.10.in-addr.arpa. PTR").endswith("PTR full.testns.svc.cluster.local.")


def imports() -> list[ClusterObject]:
    return [
        namespace(NS),
        service("vip", NS, ["10.9.0.1"], ["http:80"], imported=True),
        service("db", NS, imported=True),
        service("local-only", NS, ["10.0.0.1"], ["http:80"]),
        endpoint_slice(
            "db", endpoint("172.0.0.2"), name="e", namespace=NS, ports=["http:80"], imported=True, cluster_id="east"
        ),
        endpoint_slice(
            "db",
            endpoint("172.0.0.3", hostname="db-0"),
            name="w",
            namespace=NS,
            ports=["http:80"],
            imported=True,
            cluster_id="west",
        ),
        service("deep", NS, imported=True),
        *(
            endpoint_slice(
                "deep",
                endpoint(f"172.0.1.{at}", hostname="db-0"),
                name=f"deep-{at}",
                namespace=NS,
                ports=["http:80"],
                imported=True,
                cluster_id=cluster,
            )
            for at, cluster in enumerate(("C1.eu", "c1.EU", "eu", "a.b.c"))
        ),
    ]


CLUSTERSET = ZoneText("testns.svc.clusterset.local.", "clusterset.local. 5")
IMPORTED = {
    "vip A": ["A 10.9.0.1"],
    "vip.testns.svc.cluster.local. A": ["NXDOMAIN cluster.local. 5"],
    "local-only A": ["NXDOMAIN"],
    "local-only.testns.svc.cluster.local. A": ["A 10.0.0.1"],
    "db A": ["A 172.0.0.2", "A 172.0.0.3"],
    "db-0.west.db A": ["A 172.0.0.3"],
    "db-0.east.db A": ["NXDOMAIN"],
    "db-0.db A": ["NXDOMAIN"],
    "_http._tcp.db SRV": [
        "SRV 0 50 80 172-0-0-2.east.db",
        "SRV 0 50 80 db-0.west.db",
        "+ 172-0-0-2.east.db A 172.0.0.2",
        "+ db-0.west.db A 172.0.0.3",
    ],
    "deep SRV": [
        "SRV 0 25 80 db-0.C1.eu.deep",
        "SRV 0 25 80 db-0.eu.deep",
        "SRV 0 25 80 db-0.a.b.c.deep",
        "+ db-0.C1.eu.deep A 172.0.1.0",
        "+ db-0.C1.eu.deep A 172.0.1.1",
        "+ db-0.eu.deep A 172.0.1.2",
        "+ db-0.a.b.c.deep A 172.0.1.3",
    ],
    "db-0.c1.eu.deep SRV": [
        "SRV 0 50 80 db-0.C1.eu.deep",
        "+ db-0.C1.eu.deep A 172.0.1.0",
        "+ db-0.C1.eu.deep A 172.0.1.1",
    ],
    "db-0.C1.EU.deep A": ["A 172.0.1.0", "A 172.0.1.1"],
    r"db-0.c1\.eu.deep A": ["NXDOMAIN"],
    "c1.eu.deep A": ["NODATA"],
    r"c1\.eu.deep A": ["NXDOMAIN"],
    "eu.deep A": ["NODATA"],
    "a.b.c.deep A": ["NODATA"],
    "b.c.deep AAAA": ["NODATA"],
    "c.deep TXT": ["NODATA"],
    "b.deep A": ["NXDOMAIN"],
    "d.b.c.deep A": ["NXDOMAIN"],
    "_tcp.db A": ["NODATA"],
    "tcp.west.db A": ["NXDOMAIN"],
    "_tcp._http._tcp.db A": ["NXDOMAIN"],
    "db-0.west.db SRV": ["SRV 0 100 80 db-0.west.db", "+ A 172.0.0.3"],
}


@pytest.mark.parametrize(("question", "records"), IMPORTED.items())
def test_a_multicluster_origin_serves_service_imports(question: str, records: list[str]) -> None:
    origins = ("cluster.local", "clusterset.local")
    dig = ClusterDig(imports(), settings(*origins, multicluster=["clusterset.local"], zonal=True))
    assert dig(CLUSTERSET.absolute(question)) == CLUSTERSET.answer(question, *records)


KINDS: frozenset[Kind] = frozenset(("Namespace", "Service", "ServiceImport", "EndpointSlice"))
CLIENT = packed("10.240.0.1")
MAX_NAME = 255

LONG = "l" * 63
ORIGINS = st.sampled_from(
    (
        "cluster.local.",
        "C.local.",
        f"{'o' * 50}.{'p' * 40}.example.",
        f"{LONG}.{LONG}.example.",
        f"{LONG}.{LONG}.{'m' * 52}.example.",
        f"{LONG}.{LONG}.{LONG}.{'n' * 50}.example.",
        f"{LONG}.{LONG}.{LONG}.{'n' * 61}.",
    )
)
NAMES = st.sampled_from(("a", "db", "s" * 63, "t" * 30))
HOSTNAMES = st.sampled_from(("", "", "h0", "H1", "h" * 63, "h.0"))
TARGETS = st.sampled_from(("", "", "pod-a", "static-a.example", "p" * 63, "p" * 64))
CLUSTERS = st.sampled_from(("east", "East", "c1.eu", "C1.EU", "c" * 63, ".".join("abcdefgh"), ""))
PORTS = st.sampled_from((("http:80",), ("http:80", "dns:53/UDP"), ("http:",), ("http:80", "all:"), ()))


@dataclass
class World:
    """A Service of one name in the cluster and in the cluster set, with these endpoints."""

    kubernetes: KubernetesSettings
    objects: Sequence[ClusterObject]
    addresses: set[bytes]
    below: str

    def questions(self) -> Iterator[str]:
        for origin in map(name_text, self.kubernetes.origins):
            for left in ("", "_http._tcp.", "_all._tcp.", "_tcp.", "www-example-org."):
                yield from (f"{left}{self.below}{origin} {qtype}" for qtype in ("SRV", "A", "AAAA"))
            yield from (f"{left}{origin} {qtype}" for left in ("", "no.such.") for qtype in ("SOA", "A"))
        yield from (f"{name_text(reverse_name(address))} PTR" for address in self.addresses)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    space, name = draw(NAMES), draw(NAMES)
    endpoints: list[Endpoint] = []
    for at in range(draw(st.integers(1, 24))):
        target = draw(TARGETS)
        pod = draw(st.booleans())
        labels: dict[str, Any] = {
            "hostname": draw(HOSTNAMES),
            "pod": target if pod else "",
            "target": "" if pod else target,
        }
        endpoints.append(endpoint(f"10.0.0.{at}" if draw(st.booleans()) else f"fd00::{at + 1:x}", **labels))
    cut = draw(st.integers(0, len(endpoints)))
    objects: list[ClusterObject] = [namespace(space), service(name, space), service(name, space, imported=True)]
    for number, some in enumerate((endpoints[:cut], endpoints[cut:])):
        there: dict[str, Any] = {"name": f"local-{number}", "namespace": space, "ports": draw(PORTS)}
        aliases = [Alias("www.example.org")] if draw(st.integers(0, 4)) == 0 else []
        objects.append(endpoint_slice(name, *some, aliases=aliases, **there))
        there |= {"name": f"far-{number}", "imported": True, "cluster_id": draw(CLUSTERS)}
        objects.append(endpoint_slice(name, *some, **there))
    zone, clusterset = draw(ORIGINS), "set." + draw(ORIGINS.filter(lambda text: len(text) < 240))
    origins = (zone, clusterset, "in-addr.arpa.", "ip6.arpa.")
    kubernetes = settings(*origins, multicluster=[clusterset], endpoint_pod_names=draw(st.booleans()))
    return World(kubernetes, objects, {each.address for each in endpoints}, f"{name}.{space}.svc.")


def fits(question: str) -> bool:
    labels = question.split()[0].rstrip(".").split(".")
    return sum(len(label) + 1 for label in labels) < MAX_NAME


def names_in(message: DNSRecord) -> Iterator[Any]:
    for record in (*message.rr, *message.auth, *message.ar):
        yield record.rname
        yield from (
            getattr(record.rdata, field) for field in ("target", "label", "mname", "rname") if _has(record, field)
        )


def _has(record: Any, field: str) -> bool:
    return getattr(record.rdata, field, None) is not None


def octets(name: Any) -> int:
    return sum(len(label) + 1 for label in name.label) + 1


@tries(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(worlds(), st.booleans())
def test_every_name_has_at_most_255_octets_and_every_target_leads_to_its_address(world: World, udp: bool) -> None:
    state = ClusterState(KINDS, None, False, world.kubernetes.endpoint_pod_names)
    for kind in KINDS:
        state.apply(Replaced(kind, ()), 0)
    for each in world.objects:
        state.apply(Upserted(each), 0)
    fast, chain = (Socket(way, state, world.kubernetes, None, udp) for way in (True, False))

    def ask(question: str) -> DNSRecord:
        data = query(question, ident=7)
        wire = fast.ask(data, CLIENT)
        assert wire is not None
        assert wire == chain.ask(data, CLIENT), question
        message = DNSRecord.parse(wire)
        assert [name for name in names_in(message) if octets(name) > MAX_NAME] == [], question
        return message

    targets: dict[str, set[str]] = {}
    for question in filter(fits, world.questions()):
        message = ask(question)
        assert message.header.rcode in (0, 3), question
        for record in message.ar:
            if record.rtype in (1, 28):
                targets.setdefault(f"{record.rname} {'A' if record.rtype == 1 else 'AAAA'}", set()).add(
                    str(record.rdata)
                )
        if question.endswith(" PTR"):
            for record in message.rr:
                targets.setdefault(f"{record.rdata.label} A", set())
    for question, addresses in targets.items():
        message = ask(question)
        found = {str(record.rdata) for record in message.rr}
        assert message.header.rcode == 0, question
        assert addresses <= found or message.header.tc, question


def test_records_have_the_type_queried_and_cnames_to_targets_follow_them() -> None:
    answer = Answer(rdatas=(bytes((10, 0, 0, 1)),), ttl=5, targets=(parse_name("www.example."),))
    resolution = resolution_of(answer, RRType.A, 30)
    assert lines(resolution.response.answer, "web.") == ["web. 5 IN A 10.0.0.1", "web. 30 IN CNAME www.example."]
    assert resolution.chase == (parse_name("www.example."),)


@pytest.mark.parametrize("missing", Missing)
def test_a_name_error_is_authoritative_and_has_no_records(missing: Missing) -> None:
    response = resolution_of(NAME_ERRORS[missing], RRType.A, 30).response
    assert (response.rcode, response.answer, response.flags) == (Rcode.NXDOMAIN, (), Flag.AA)


def test_a_refusal_is_not_authoritative() -> None:
    assert resolution_of(Answer(Rcode.REFUSED), RRType.A, 30).response.flags == 0


@pytest.mark.parametrize(
    ("location", "claimed", "scope", "facts"),
    [
        (None, False, Scope.EVERYONE, ()),
        (Location("n1"), False, Scope.NODE, (node_fact("n1"),)),
        (Location("n1"), True, Scope.CLIENT, (node_fact("n1"),)),
        (Location(), False, Scope.NODE, ()),
    ],
)
def test_an_answer_is_for_the_clients_whose_location_it_rests_on(
    location: Location | None, claimed: bool, scope: Scope, facts: tuple[object, ...]
) -> None:
    own = service_fact("a", "web")
    resolution = resolution_of(Answer(location=location, claimed=claimed, facts=(own,)), RRType.A, 30)
    assert (resolution.scope, resolution.facts) == (scope, (own, *facts))
