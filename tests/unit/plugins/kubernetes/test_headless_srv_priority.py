"""SRV answers with the option `srv_priority`: every endpoint, with a priority by the first key it satisfies."""

from collections.abc import Mapping, Sequence

import pytest

from tests.support.cluster_dig import ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, service
from topodns.cluster.model import HOSTNAME_LABEL, ZONE_LABEL, ClusterObject, KeySource, Replaced, kind_of
from topodns.dependency import namespace_fact, node_fact, service_fact
from topodns.dns.message import Edns, Option
from topodns.dns.rrtype import Rcode
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import Scope
from topodns.topology.client_locator import Method
from topodns.topology.select import Reason, UnknownClient

NS = "testns"
N1, N2, N3, FAR, NOWHERE = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "192.0.2.1"
H, Z = HOSTNAME_LABEL, ZONE_LABEL
ON = TopologySettings(srv_priority=True)
OFF = TopologySettings()
PLACED = {"n1": ("a", N1), "n2": ("a", N2), "n3": ("b", N3), "far": ("c", FAR)}
POLICIES: Mapping[str, str | None] = {
    "soft": f"{H},{Z},*",
    "zone": f"{Z},*",
    "hard": f"{H},{Z}",
    "any": "*",
    "none": None,
    "broken": "not a key!,*",
}
TYPES = ("A", "AAAA", "TXT", "ANY")


def cluster() -> list[ClusterObject]:
    """Nodes n1 and n2 in zone a, n3 in b, far in c; e1@n1 e2@n2 e3@n3 of each Service, e1 of both families."""
    nodes = [node(name, {H: name, Z: zone}, addresses=[address]) for name, (zone, address) in PLACED.items()]
    objects: list[ClusterObject] = [namespace(NS), *nodes]
    for name, keys in POLICIES.items():
        endpoints = [endpoint(f"172.0.0.{number}", node=f"n{number}", hostname=f"e{number}") for number in (1, 2, 3)]
        ports = ["http:80"]
        objects += [
            service(name, NS, annotation=keys),
            endpoint_slice(name, *endpoints, namespace=NS, ports=ports),
            endpoint_slice(
                name, endpoint("fd00::1", node="n1", hostname="e1"), name=f"{name}-6", namespace=NS, ports=ports
            ),
        ]
    return objects


def server(topology: TopologySettings = ON) -> ClusterDig:
    return ClusterDig(cluster(), settings(), topology)


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return server()


def srv(dig: ClusterDig, name: str, source: str) -> list[str]:
    """`PRIORITY WEIGHT TARGET` of each record, in order; the target is its first label."""
    lines = [line.split() for line in dig(f"{name}.testns.svc.cluster.local. SRV", source).splitlines()]
    return [f"{words[4]} {words[5]} {words[7].split('.')[0]}" for words in lines if words[0] != "+"]


def test_every_endpoint_is_in_the_answer_with_its_addresses_the_nearest_first(dig: ClusterDig) -> None:
    assert dig("_http._tcp.soft.testns.svc.cluster.local. SRV", N2) == expected(
        """
        _http._tcp.soft.testns.svc.cluster.local. 5 IN SRV 0 100 80 e2.soft.testns.svc.cluster.local.
        _http._tcp.soft.testns.svc.cluster.local. 5 IN SRV 1 50 80 e1.soft.testns.svc.cluster.local.
        _http._tcp.soft.testns.svc.cluster.local. 5 IN SRV 2 100 80 e3.soft.testns.svc.cluster.local.
        + e2.soft.testns.svc.cluster.local. 5 IN A 172.0.0.2
        + e1.soft.testns.svc.cluster.local. 5 IN A 172.0.0.1
        + e1.soft.testns.svc.cluster.local. 5 IN AAAA fd00::1
        + e3.soft.testns.svc.cluster.local. 5 IN A 172.0.0.3
        """
    )


@pytest.mark.parametrize(
    ("name", "source", "records"),
    [
        ("soft", N1, ["0 50 e1", "1 100 e2", "2 100 e3"]),
        ("soft", N3, ["0 100 e3", "2 33 e1", "2 33 e2"]),
        ("soft", FAR, ["2 25 e1", "2 25 e2", "2 25 e3"]),
        ("zone", N3, ["0 100 e3", "1 33 e1", "1 33 e2"]),
        ("zone", N1, ["0 33 e1", "0 33 e2", "1 100 e3"]),
    ],
)
def test_a_client_gets_priorities_by_its_node_and_weights_within_each(
    dig: ClusterDig, name: str, source: str, records: Sequence[str]
) -> None:
    assert srv(dig, name, source) == records
    assert srv(dig, f"_http._tcp.{name}", source) == records


@pytest.mark.parametrize("unknown_client", UnknownClient)
def test_for_an_unlocated_client_all_endpoints_have_the_index_of_any(unknown_client: UnknownClient) -> None:
    dig = server(TopologySettings(srv_priority=True, unknown_client=unknown_client))
    assert srv(dig, "soft", NOWHERE) == ["2 25 e1", "2 25 e2", "2 25 e3"]
    resolution = dig.resolve("soft.testns.svc.cluster.local. SRV", NOWHERE)
    assert resolution.prefix == "192.0.2.0/24"
    assert resolution.selection is not None
    assert resolution.selection.reason is Reason.UNKNOWN_CLIENT_ALL


@pytest.mark.parametrize("source", [N1, N3, FAR, NOWHERE])
@pytest.mark.parametrize("rtype", TYPES)
@pytest.mark.parametrize("name", POLICIES)
def test_other_types_are_as_without_the_option(dig: ClusterDig, name: str, rtype: str, source: str) -> None:
    for prefix in ("", "_http._tcp.", "e2."):
        question = f"{prefix}{name}.testns.svc.cluster.local. {rtype}"
        assert dig(question, source) == server(OFF)(question, source)


@pytest.mark.parametrize("source", [N1, N3, FAR, NOWHERE])
@pytest.mark.parametrize("name", ["hard", "any", "none", "broken"])
def test_lists_that_are_not_ranked_are_as_without_the_option(dig: ClusterDig, name: str, source: str) -> None:
    question = f"{name}.testns.svc.cluster.local. SRV"
    assert dig(question, source) == server(OFF)(question, source)
    assert dig.resolve(question, source).selection == server(OFF).resolve(question, source).selection


def test_hints_are_followed_as_without_the_option() -> None:
    objects = [
        *cluster(),
        service("hinted", NS),
        endpoint_slice(
            "hinted",
            endpoint("172.0.0.1", hostname="e1", zone_hints=["a"]),
            endpoint("172.0.0.3", hostname="e3", zone_hints=["b"]),
            namespace=NS,
            ports=["http:80"],
        ),
    ]
    dig = ClusterDig(objects, settings(), TopologySettings(srv_priority=True, keys=(KeySource.HINTS,)))
    assert srv(dig, "hinted", N1) == ["0 100 e1"]


def test_traffic_distribution_is_ranked_like_an_annotation() -> None:
    objects = [
        *cluster(),
        service("spread", NS, traffic_distribution="PreferSameNode"),
        endpoint_slice(
            "spread",
            *(endpoint(f"172.0.0.{number}", node=f"n{number}", hostname=f"e{number}") for number in (1, 2, 3)),
            namespace=NS,
            ports=["http:80"],
        ),
    ]
    dig = ClusterDig(objects, settings(), TopologySettings(srv_priority=True, keys=(KeySource.TRAFFIC_DISTRIBUTION,)))
    assert srv(dig, "spread", N2) == ["0 100 e2", "1 100 e1", "2 100 e3"]


@pytest.mark.parametrize("filter_hostnames", [False, True])
def test_names_of_endpoints_are_as_without_the_option(filter_hostnames: bool) -> None:
    objects = [
        *cluster(),
        service("twins", NS, annotation=f"{H},{Z},*"),
        endpoint_slice(
            "twins",
            *(endpoint(f"172.0.0.{number}", node=f"n{number}", hostname="twin") for number in (1, 3)),
            endpoint("172.0.0.2", node="n2", hostname="other"),
            namespace=NS,
            ports=["http:80", "admin:90"],
        ),
    ]
    without, dig = (
        ClusterDig(objects, settings(), TopologySettings(srv_priority=on, filter_hostnames=filter_hostnames))
        for on in (False, True)
    )
    for source in (N1, N2, N3, NOWHERE):
        question = "twin.twins.testns.svc.cluster.local. SRV"
        assert dig(question, source) == without(question, source)
        assert {record.split()[0] for record in srv(dig, "twin.twins", source)} == {"0"}


def test_a_target_that_endpoints_share_has_the_priority_of_the_nearest_and_all_their_addresses() -> None:
    objects = [
        *cluster(),
        service("shared", NS, annotation=f"{H},{Z},*"),
        endpoint_slice(
            "shared",
            *(endpoint(f"172.0.0.{number}", node=f"n{number}", hostname="twin") for number in (1, 3)),
            namespace=NS,
            ports=["http:80"],
        ),
    ]
    assert ClusterDig(objects, settings(), ON)("shared.testns.svc.cluster.local. SRV", N3) == expected(
        """
        shared.testns.svc.cluster.local. 5 IN SRV 0 100 80 twin.shared.testns.svc.cluster.local.
        + twin.shared.testns.svc.cluster.local. 5 IN A 172.0.0.1
        + twin.shared.testns.svc.cluster.local. 5 IN A 172.0.0.3
        """
    )


def test_ports_that_not_every_endpoint_has_are_ranked_among_their_own() -> None:
    objects = [
        *cluster(),
        service("split", NS, annotation=f"{H},{Z},*"),
        endpoint_slice(
            "split", endpoint("172.0.0.1", node="n1", hostname="e1"), namespace=NS, ports=["old:80", "new:90"]
        ),
        endpoint_slice(
            "split", endpoint("172.0.0.3", node="n3", hostname="e3"), name="s2", namespace=NS, ports=["new:90"]
        ),
    ]
    dig = ClusterDig(objects, settings(), ON)
    assert srv(dig, "_old._tcp.split", N3) == ["2 100 e1"]
    assert srv(dig, "_new._tcp.split", N3) == ["0 100 e3", "2 100 e1"]
    assert dig("split.testns.svc.cluster.local. SRV", N3).splitlines()[:3] == [
        "split.testns.svc.cluster.local. 5 IN SRV 0 100 90 e3.split.testns.svc.cluster.local.",
        "split.testns.svc.cluster.local. 5 IN SRV 2 50 90 e1.split.testns.svc.cluster.local.",
        "split.testns.svc.cluster.local. 5 IN SRV 2 50 80 e1.split.testns.svc.cluster.local.",
    ]


def test_a_service_without_ready_endpoints_does_not_exist_and_one_of_the_other_family_has_its_own() -> None:
    objects = [
        *cluster(),
        service("empty", NS, annotation=f"{Z},*"),
        endpoint_slice("empty", endpoint("172.0.0.1", node="n1", ready=False), namespace=NS, ports=["http:80"]),
        service("six", NS, annotation=f"{Z},*"),
        endpoint_slice("six", endpoint("fd00::3", node="n3", hostname="e3"), namespace=NS, ports=["http:80"]),
    ]
    dig = ClusterDig(objects, settings(), ON)
    assert dig.resolve("empty.testns.svc.cluster.local. SRV", N1).response.rcode == Rcode.NXDOMAIN
    assert srv(dig, "six", N3) == ["0 100 e3"]
    assert srv(dig, "six", N1) == ["1 100 e3"]


def test_the_answer_is_for_the_clients_of_one_node_and_depends_on_that_node_and_the_service(dig: ClusterDig) -> None:
    resolution = dig.resolve("soft.testns.svc.cluster.local. SRV", N1)
    assert resolution.scope is Scope.NODE
    assert resolution.facts == (namespace_fact(NS), service_fact(NS, "soft"), node_fact("n1"))
    assert resolution.selection is not None
    assert (resolution.selection.reason, resolution.selection.key) == (Reason.RANKED, "")
    assert resolution.selection.tried == ((H, 1), (Z, 2), ("*", 3))
    assert resolution.missed == ""


def test_an_answer_to_a_claim_is_for_that_query_only(dig: ClusterDig) -> None:
    claim = Edns(1232, 0, False, ((Option.NODE_IDENTITY, b"n1"),))
    assert dig.resolve("soft.testns.svc.cluster.local. SRV", N1, claim).scope is Scope.CLIENT


def test_a_changed_label_of_any_endpoints_node_touches_the_service(dig: ClusterDig) -> None:
    dig = server()
    assert srv(dig, "soft", N1)[-1] == "2 100 e3"
    dig.apply(node("n3", {H: "n3", Z: "a"}, addresses=[N3]))
    assert srv(dig, "soft", N1) == ["0 50 e1", "1 50 e2", "1 50 e3"]


def test_while_nodes_are_denied_the_own_node_is_first_and_the_others_are_equal() -> None:
    topology = TopologySettings(srv_priority=True, locate=(Method.NODES, Method.SLICES))
    dig = ClusterDig((), settings(), topology, synced=False)
    for kind in sorted(dig.state.needed - {"Node"}):
        dig.apply(Replaced(kind, tuple(each for each in cluster() if kind_of(each) == kind)))
    dig.state.do_without("Node")
    assert srv(dig, "soft", "172.0.0.1") == ["0 50 e1", "2 50 e2", "2 50 e3"]
    assert srv(dig, "zone", "172.0.0.1") == ["1 25 e1", "1 25 e2", "1 25 e3"]
    assert srv(dig, "soft", NOWHERE) == ["2 25 e1", "2 25 e2", "2 25 e3"]
    resolution = dig.resolve("zone.testns.svc.cluster.local. SRV", "172.0.0.1")
    assert resolution.selection is not None
    assert resolution.selection.reason is Reason.NOT_PERMITTED


def test_until_the_state_is_complete_the_answer_is_servfail() -> None:
    dig = ClusterDig(cluster(), settings(), ON, synced=False)
    assert dig.resolve("soft.testns.svc.cluster.local. SRV", N1).response.rcode == Rcode.SERVFAIL
