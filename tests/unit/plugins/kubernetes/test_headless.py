"""Headless Services under topology keys: which records each client gets, and how far an answer may be shared."""

from collections.abc import Iterator
from ipaddress import ip_network

import pytest

from tests.support.cluster_dig import ClusterDig, expected, query_of, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, node, node_locator, packed, service
from tests.support.query_builders import client
from topodns.cluster.endpoints import Pool
from topodns.cluster.model import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    ClusterObject,
    KeySource,
    Kind,
    NodeLocator,
    ObjectKey,
    Replaced,
    kind_of,
)
from topodns.dependency import EVERYTHING, namespace_fact, node_fact, service_fact
from topodns.dns.message import EdeCode, Edns, Flag, Option
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.answer import question_of
from topodns.plugins.kubernetes.headless import rule_of
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.plugin import Scope
from topodns.topology.client_locator import ClientLocator, Method
from topodns.topology.select import OnInvalid, Reason, UnknownClient

NS = "testns"
N1, N2, N3, N4, NOWHERE = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "192.0.2.1"
H, Z = HOSTNAME_LABEL, ZONE_LABEL
MISS = "NODATA cluster.local. 5"
TYPES = ("A", "AAAA", "SRV", "TXT", "MX", "HTTPS", "CNAME", "NS", "PTR", "ANY", "TYPE65280")


def cluster() -> list[ClusterObject]:
    """Nodes n1 and n2 in zone a, n3 in b, n4 in c with no endpoint; e1@n1 e2@n2 e3@n3, e1 and e3 of both families."""
    placed = {"n1": ("a", N1), "n2": ("a", N2), "n3": ("b", N3), "n4": ("c", N4)}
    nodes = [
        node(name, {H: name, Z: topology_zone}, addresses=[address])
        for name, (topology_zone, address) in placed.items()
    ]
    policies = {
        "none": None,
        "off": "none",
        "zone": Z,
        "soft": f"{Z},*",
        "host": H,
        "hostzone": f"{H},{Z}",
        "any": "*",
        "broken": "not a key!",
        "fresh": Z,
    }
    objects: list[ClusterObject] = [namespace(NS), *nodes]
    for name, keys in policies.items():
        objects += [
            service(name, NS, annotation=keys, ttl="60" if name == "fresh" else None),
            endpoint_slice(
                name,
                endpoint("172.0.0.1", node="n1", hostname="e1"),
                endpoint("172.0.0.2", node="n2", hostname="e2"),
                endpoint("172.0.0.3", node="n3", hostname="e3"),
                namespace=NS,
                ports=["http:80", "metrics:9000"],
            ),
            endpoint_slice(
                name,
                endpoint("fd00::1", node="n1", hostname="e1"),
                endpoint("fd00::3", node="n3", hostname="e3"),
                name=f"{name}-6",
                namespace=NS,
                ports=["http:80"],
            ),
        ]
    return objects


def server(
    topology: TopologySettings | None = None, kubernetes: KubernetesSettings | None = None, synced: bool = True
) -> ClusterDig:
    return ClusterDig(cluster(), kubernetes or settings(), topology or TopologySettings(), synced)


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return server()


def addresses(dig: ClusterDig, name: str, source: str, rtype: str = "A") -> list[str]:
    """The last word of each answer line: addresses, or targets of SRV; the word for none."""
    lines = dig(f"{name}.testns.svc.cluster.local. {rtype}", source).splitlines()
    if lines[0].startswith("NODATA"):
        return []
    return [line.split()[-1].split(".svc")[0] for line in lines if not line.startswith("+")]


CHOICES = [
    # Service, client, A, AAAA
    ("none", N1, ["172.0.0.1", "172.0.0.2", "172.0.0.3"], ["fd00::1", "fd00::3"]),
    ("off", N1, ["172.0.0.1", "172.0.0.2", "172.0.0.3"], ["fd00::1", "fd00::3"]),
    ("any", NOWHERE, ["172.0.0.1", "172.0.0.2", "172.0.0.3"], ["fd00::1", "fd00::3"]),
    ("broken", N1, ["172.0.0.1", "172.0.0.2", "172.0.0.3"], ["fd00::1", "fd00::3"]),
    ("zone", N1, ["172.0.0.1", "172.0.0.2"], ["fd00::1"]),
    ("zone", N2, ["172.0.0.1", "172.0.0.2"], ["fd00::1"]),
    ("zone", N3, ["172.0.0.3"], ["fd00::3"]),
    ("zone", N4, [], []),
    ("zone", NOWHERE, [], []),
    ("soft", N3, ["172.0.0.3"], ["fd00::3"]),
    ("soft", N4, ["172.0.0.1", "172.0.0.2", "172.0.0.3"], ["fd00::1", "fd00::3"]),
    ("soft", NOWHERE, ["172.0.0.1", "172.0.0.2", "172.0.0.3"], ["fd00::1", "fd00::3"]),
    ("host", N2, ["172.0.0.2"], []),
    # each family chooses its own key: the node's own endpoint is IPv4 only
    ("hostzone", N2, ["172.0.0.2"], ["fd00::1"]),
]


@pytest.mark.parametrize(("name", "source", "ipv4", "ipv6"), CHOICES)
def test_each_client_gets_the_endpoints_that_its_topology_chooses(
    dig: ClusterDig, name: str, source: str, ipv4: list[str], ipv6: list[str]
) -> None:
    assert addresses(dig, name, source) == ipv4
    assert addresses(dig, name, source, "AAAA") == ipv6


def test_srv_is_chosen_per_family_and_port_with_glue_for_the_kept_ones_only(dig: ClusterDig) -> None:
    assert dig("_http._tcp.zone.testns.svc.cluster.local. SRV", N3) == expected(
        """
        _http._tcp.zone.testns.svc.cluster.local. 5 IN SRV 0 50 80 e3.zone.testns.svc.cluster.local.
        + e3.zone.testns.svc.cluster.local. 5 IN A 172.0.0.3
        + e3.zone.testns.svc.cluster.local. 5 IN AAAA fd00::3
        """
    )
    assert dig("hostzone.testns.svc.cluster.local. SRV", N2) == expected(
        """
        hostzone.testns.svc.cluster.local. 5 IN SRV 0 33 80 e2.hostzone.testns.svc.cluster.local.
        hostzone.testns.svc.cluster.local. 5 IN SRV 0 33 80 e1.hostzone.testns.svc.cluster.local.
        hostzone.testns.svc.cluster.local. 5 IN SRV 0 33 9000 e2.hostzone.testns.svc.cluster.local.
        + e2.hostzone.testns.svc.cluster.local. 5 IN A 172.0.0.2
        + e1.hostzone.testns.svc.cluster.local. 5 IN AAAA fd00::1
        """
    )
    assert dig("_http._tcp.zone.testns.svc.cluster.local. SRV", N4) == MISS


def test_the_key_is_chosen_among_the_endpoints_that_expose_the_port() -> None:
    dig = ClusterDig(
        [
            *cluster(),
            service("split", NS, annotation=f"{H},{Z}"),
            endpoint_slice("split", endpoint("172.0.0.1", node="n1"), namespace=NS, ports=["old:80"]),
            endpoint_slice("split", endpoint("172.0.0.2", node="n2"), name="s2", namespace=NS, ports=["new:80"]),
        ],
        settings(),
        TopologySettings(),
    )
    assert addresses(dig, "split", N1) == ["172.0.0.1"]
    assert addresses(dig, "_new._tcp.split", N1) == ["172.0.0.2"]
    assert dig("_gone._tcp.split.testns.svc.cluster.local. A", N1) == "NXDOMAIN cluster.local. 5"


UNFILTERED = {
    "an endpoint's hostname": ("e3.zone.testns.svc.cluster.local. A", "172.0.0.3"),
    "an endpoint's hostname, the other family": ("e3.zone.testns.svc.cluster.local. AAAA", "fd00::3"),
    "SRV of an endpoint": (
        "e3.zone.testns.svc.cluster.local. SRV",
        "+ e3.zone.testns.svc.cluster.local. 5 IN AAAA fd00::3",
    ),
}


@pytest.mark.parametrize(("question", "ending"), UNFILTERED.values(), ids=UNFILTERED.keys())
@pytest.mark.parametrize("source", [N1, N4, NOWHERE])
def test_endpoint_names_are_the_same_for_every_client(dig: ClusterDig, question: str, ending: str, source: str) -> None:
    assert dig(question, source).endswith(ending)
    assert dig.resolve(question, source).scope is Scope.EVERYONE


def test_ptr_is_the_same_for_every_client(dig: ClusterDig) -> None:
    answers = {dig("3.0.0.172.in-addr.arpa. PTR", source) for source in (N1, N3, NOWHERE)}
    assert len(answers) == 1
    assert "PTR e3.zone.testns.svc.cluster.local." in answers.pop()


def test_filter_hostnames_hides_endpoints_elsewhere_without_denying_their_names() -> None:
    dig = server(TopologySettings(filter_hostnames=True))
    assert addresses(dig, "e3.zone", N3) == ["172.0.0.3"]
    assert dig("e3.zone.testns.svc.cluster.local. A", N1) == MISS
    assert dig("e3.zone.testns.svc.cluster.local. SRV", N1) == MISS
    assert addresses(dig, "e3.soft", N1) == ["172.0.0.3"]
    assert addresses(dig, "e3.none", N1) == ["172.0.0.3"]
    assert dig("e9.zone.testns.svc.cluster.local. A", N1) == "NXDOMAIN cluster.local. 5"


def test_a_cluster_ip_is_the_same_for_every_client() -> None:
    dig = ClusterDig(
        [*cluster(), service("vip", NS, ["10.96.0.1"], ["http:80"], annotation=Z)], settings(), TopologySettings()
    )
    assert addresses(dig, "vip", N4) == ["10.96.0.1"]
    assert dig.resolve("vip.testns.svc.cluster.local. A", N4).scope is Scope.EVERYONE


@pytest.mark.parametrize("source", [N1, N4, NOWHERE])
@pytest.mark.parametrize("name", ["zone", "host", "hostzone", "soft", "none", "broken"])
@pytest.mark.parametrize(
    "topology",
    [
        TopologySettings(),
        TopologySettings(unknown_client=UnknownClient.REFUSE),
        TopologySettings(on_invalid=OnInvalid.DENY, filter_hostnames=True),
    ],
    ids=["defaults", "refuse", "deny"],
)
def test_all_types_of_a_name_have_one_rcode_for_one_client(topology: TopologySettings, name: str, source: str) -> None:
    dig = server(topology)
    for prefix in ("", "_http._tcp.", "e1."):
        owner = f"{prefix}{name}.testns.svc.cluster.local."
        rcodes = {dig.resolve(f"{owner} {rtype}", source).response.rcode for rtype in TYPES}
        assert len(rcodes) == 1


MISSES = {
    "known client": ("zone", N4, f"no endpoint matches topologyKeys {Z} for node n4"),
    "two keys": ("hostzone", N4, f"no endpoint matches topologyKeys {H}, {Z} for node n4"),
    "unknown client": ("zone", NOWHERE, "client location unknown"),
}


@pytest.mark.parametrize(("name", "source", "text"), MISSES.values(), ids=MISSES.keys())
def test_a_miss_is_nodata_with_the_reason_in_an_extended_error(
    dig: ClusterDig, name: str, source: str, text: str
) -> None:
    response = dig.resolve(f"{name}.testns.svc.cluster.local. A", source).response
    assert response.rcode == Rcode.NOERROR
    assert response.flags == Flag.AA
    assert response.ede is not None
    assert (response.ede.code, response.ede.text) == (EdeCode.OTHER, text)
    assert response.authority != ()


def test_the_soa_of_a_miss_is_forgotten_within_five_seconds() -> None:
    dig = server(kubernetes=settings(ttl=30))
    assert dig("zone.testns.svc.cluster.local. A", N4) == MISS
    soa = dig.resolve("zone.testns.svc.cluster.local. A", N4).response.authority[0]
    assert (soa.ttl, soa.rdatas[0][-4:]) == (5, (5).to_bytes(4, "big"))
    assert dig("svc0.testns.svc.cluster.local. A", N4) == "NXDOMAIN cluster.local. 30"
    assert server(kubernetes=settings(ttl=2))("zone.testns.svc.cluster.local. A", N4) == "NODATA cluster.local. 2"


def test_a_family_without_ready_endpoints_is_no_miss() -> None:
    dig = ClusterDig(
        [
            *cluster(),
            service("four", NS, annotation=Z),
            endpoint_slice("four", endpoint("172.0.0.1", node="n1"), namespace=NS),
        ],
        settings(ttl=30),
        TopologySettings(),
    )
    resolution = dig.resolve("four.testns.svc.cluster.local. AAAA", N4)
    assert resolution.response.ede is None
    assert resolution.scope is Scope.EVERYONE
    assert dig("four.testns.svc.cluster.local. AAAA", N4) == "NODATA cluster.local. 30"


TTLS = [
    # kubernetes ttl, topology ttl, Service, TTL of the answer
    (30, None, "none", 30),
    (30, None, "broken", 30),
    (30, None, "zone", 5),
    (30, None, "soft", 5),
    (3, None, "zone", 3),
    (30, 10, "zone", 10),
    (30, 0, "zone", 0),
    (30, 10, "fresh", 60),
]


@pytest.mark.parametrize(("ttl", "chosen", "name", "answer"), TTLS)
def test_answers_that_a_policy_chose_have_a_ttl_of_their_own(
    ttl: int, chosen: int | None, name: str, answer: int
) -> None:
    dig = server(TopologySettings(ttl=chosen), settings(ttl=ttl))
    assert dig(f"{name}.testns.svc.cluster.local. A", N1).split()[1] == str(answer)


def test_unknown_client_all_gives_all_endpoints_to_an_unlocated_client() -> None:
    dig = server(TopologySettings(unknown_client=UnknownClient.ALL))
    assert len(addresses(dig, "zone", NOWHERE)) == 3
    assert addresses(dig, "zone", N3) == ["172.0.0.3"]
    assert addresses(dig, "zone", N4) == []


def test_unknown_client_refuse_refuses_it_where_the_policy_does_not_end_in_any() -> None:
    dig = server(TopologySettings(unknown_client=UnknownClient.REFUSE))
    refused = dig.resolve("zone.testns.svc.cluster.local. A", NOWHERE)
    assert refused.response.rcode == Rcode.REFUSED
    assert refused.response.authority == ()
    assert refused.response.flags == 0
    assert refused.scope is Scope.NODE
    assert refused.selection is not None
    assert refused.selection.reason is Reason.UNKNOWN_CLIENT
    assert len(addresses(dig, "soft", NOWHERE)) == 3
    assert len(addresses(dig, "none", NOWHERE)) == 3
    assert addresses(dig, "zone", N4) == []
    assert dig.resolve("zone.testns.svc.cluster.local. TXT", N4).scope is Scope.NODE


def without(denied: Kind, topology: TopologySettings) -> ClusterDig:
    """A server that may not read this kind."""
    dig = ClusterDig((), settings(), topology, synced=False)
    for kind in sorted(dig.state.needed - {denied}):
        dig.apply(listed(kind))
    dig.state.do_without(denied)
    return dig


def listed(kind: Kind) -> Replaced:
    return Replaced(kind, tuple(each for each in cluster() if kind_of(each) == kind))


DENIALS: dict[str, tuple[Kind, str, str, list[int]]] = {
    "Pods: whom no other method finds": ("Pod", "zone", NOWHERE, [1, 2, 3]),
    "Pods: whom another method finds": ("Pod", "zone", N3, [3]),
    "Pods: and who has nothing near": ("Pod", "zone", N4, []),
    "NodeLocators: whom no other method finds": ("NodeLocator", "zone", NOWHERE, [1, 2, 3]),
    "NodeLocators: whom another method finds": ("NodeLocator", "zone", N3, [3]),
    "PodLocators: whom no other method finds": ("PodLocator", "zone", NOWHERE, [1, 2, 3]),
    "PodLocators: and who has nothing near": ("PodLocator", "zone", N4, []),
    "Nodes: a label decides": ("Node", "zone", "172.0.0.3", [1, 2, 3]),
    "Nodes: whom no other method finds": ("Node", "host", N3, [1, 2, 3]),
    "Nodes: whom a slice finds, and the node's name decides": ("Node", "host", "172.0.0.3", [3]),
    "Nodes: or would have": ("Node", "hostzone", "172.0.0.3", [3]),
}


@pytest.mark.parametrize("unknown_client", UnknownClient)
@pytest.mark.parametrize(("denied", "name", "source", "got"), DENIALS.values(), ids=DENIALS)
def test_a_client_that_a_denied_kind_would_locate_is_not_left_without_endpoints(
    denied: Kind, name: str, source: str, got: list[int], unknown_client: UnknownClient
) -> None:
    every_method = (Method.NODES, Method.PODS, Method.SLICES, Method.NODELOCATOR, Method.PODLOCATOR)
    dig = without(denied, TopologySettings(locate=every_method, unknown_client=unknown_client))
    assert addresses(dig, name, source) == [f"172.0.0.{each}" for each in got]


def test_pods_that_no_method_asks_for_may_be_denied() -> None:
    dig = without("Pod", TopologySettings(locate=(Method.NODES,)))
    assert addresses(dig, "zone", NOWHERE) == []


# Node locators


P1, P3, P4 = "10.7.1.1", "10.7.3.1", "10.7.4.1"  # Pods on n1, n3 and n4
PLACED = {"n1": ("a", P1), "n2": ("a", "10.7.2.1"), "n3": ("b", P3), "n4": ("c", P4)}
LOCATORS = tuple(node_locator(name, [ip], labels={H: name, Z: zone}) for name, (zone, ip) in PLACED.items())
BY_LOCATORS = TopologySettings(locate=(Method.NODELOCATOR,))


def with_locators(topology: TopologySettings = BY_LOCATORS, *locators: NodeLocator) -> ClusterDig:
    """A server that may read no Nodes, and knows these NodeLocators."""
    dig = ClusterDig((), settings(), topology, synced=False)
    for kind in sorted(dig.state.needed - {"Node", "NodeLocator"}):
        dig.apply(listed(kind))
    if "Node" in dig.state.needed:
        dig.state.do_without("Node")
    dig.apply(Replaced("NodeLocator", locators))
    return dig


@pytest.mark.parametrize("methods", ["nodelocator", "nodes nodelocator"], ids=["not needed", "denied"])
def test_node_locators_give_clients_and_endpoints_the_labels_of_nodes_that_cannot_be_read(methods: str) -> None:
    dig = with_locators(TopologySettings(locate=tuple(map(Method, methods.split()))), *LOCATORS)
    assert addresses(dig, "zone", P1) == ["172.0.0.1", "172.0.0.2"]
    assert addresses(dig, "host", P3) == ["172.0.0.3"]
    assert addresses(dig, "zone", P4) == []
    assert addresses(dig, "soft", P4) == ["172.0.0.1", "172.0.0.2", "172.0.0.3"]


def test_a_client_in_no_node_locator_is_unknown_not_nowhere() -> None:
    dig = with_locators(BY_LOCATORS, *LOCATORS)
    assert addresses(dig, "zone", NOWHERE) == []
    assert addresses(dig, "soft", NOWHERE) == ["172.0.0.1", "172.0.0.2", "172.0.0.3"]
    assert addresses(with_locators(), "soft", P1) == ["172.0.0.1", "172.0.0.2", "172.0.0.3"]


def test_while_nodes_are_denied_a_client_whose_node_has_no_locator_gets_every_endpoint() -> None:
    dig = with_locators(TopologySettings(locate=(Method.NODES, Method.NODELOCATOR, Method.SLICES)), *LOCATORS[1:])
    assert addresses(dig, "zone", "172.0.0.1") == ["172.0.0.1", "172.0.0.2", "172.0.0.3"]
    assert addresses(dig, "zone", P3) == ["172.0.0.3"]


def test_an_address_that_moves_to_another_node_is_there_in_the_next_answer() -> None:
    dig = with_locators(BY_LOCATORS, *LOCATORS)
    assert addresses(dig, "zone", P1) == ["172.0.0.1", "172.0.0.2"]
    dig.apply(node_locator("n1", labels={H: "n1", Z: "a"}))
    assert addresses(dig, "zone", P1) == []
    dig.apply(node_locator("n3", [P3, P1], labels={H: "n3", Z: "b"}))
    assert addresses(dig, "zone", P1) == ["172.0.0.3"]


def test_a_label_that_changes_in_a_node_locator_is_in_the_next_answer() -> None:
    dig = with_locators(BY_LOCATORS, *LOCATORS)
    assert addresses(dig, "zone", P4) == []
    dig.apply(node_locator("n3", [P3], labels={H: "n3", Z: "c"}))
    assert addresses(dig, "zone", P4) == ["172.0.0.3"]


@pytest.mark.parametrize("denied", ["Node", "Pod", "NodeLocator", "PodLocator"])
def test_when_the_permission_comes_no_answer_from_before_is_kept(denied: Kind) -> None:
    methods = (Method.NODES, Method.PODS, Method.NODELOCATOR, Method.PODLOCATOR)
    dig = without(denied, TopologySettings(locate=methods))
    resolution = dig.resolve("zone.testns.svc.cluster.local. A", NOWHERE)
    assert resolution.selection is not None
    assert resolution.selection.reason is Reason.NOT_PERMITTED
    assert dig.state.apply(listed(denied), 0) == {EVERYTHING}
    assert addresses(dig, "zone", NOWHERE) == []
    assert addresses(dig, "zone", N3) == ["172.0.0.3"]


def test_on_invalid_deny_gives_no_endpoints_to_any_client() -> None:
    dig = server(TopologySettings(on_invalid=OnInvalid.DENY))
    resolution = dig.resolve("broken.testns.svc.cluster.local. A", N1)
    assert resolution.response.answer == ()
    assert resolution.response.rcode == Rcode.NOERROR
    assert resolution.response.ede is not None
    assert resolution.response.ede.text.startswith("invalid topology keys: ")
    assert resolution.scope is Scope.EVERYONE


NAMED = {
    "a miss": ("zone", N4, UnknownClient.STRICT, "testns/zone", ""),
    "an unknown client": ("zone", NOWHERE, UnknownClient.STRICT, "testns/zone", "192.0.2.0/24"),
    "one that is refused": ("zone", NOWHERE, UnknownClient.REFUSE, "testns/zone", "192.0.2.0/24"),
    "one that gets everyone": ("soft", NOWHERE, UnknownClient.STRICT, "", "192.0.2.0/24"),
    "a match": ("zone", N1, UnknownClient.STRICT, "", ""),
    "no policy": ("none", NOWHERE, UnknownClient.STRICT, "", ""),
}


@pytest.mark.parametrize(("name", "source", "unknown", "missed", "prefix"), NAMED.values(), ids=NAMED.keys())
def test_a_miss_names_its_service_and_an_unknown_client_where_it_is(
    name: str, source: str, unknown: UnknownClient, missed: str, prefix: str
) -> None:
    dig = server(TopologySettings(unknown_client=unknown))
    resolution = dig.resolve(f"{name}.testns.svc.cluster.local. A", source)
    assert (resolution.missed, resolution.prefix) == (missed, prefix)


SCOPES = {
    "no policy": ("none", N1, Scope.EVERYONE, Reason.UNFILTERED),
    "an invalid policy": ("broken", N1, Scope.EVERYONE, Reason.INVALID),
    "any alone": ("any", NOWHERE, Scope.EVERYONE, Reason.ANY),
    "a match": ("zone", N1, Scope.NODE, Reason.MATCHED),
    "a miss": ("zone", N4, Scope.NODE, Reason.NO_MATCH),
    "an unknown client": ("zone", NOWHERE, Scope.NODE, Reason.UNKNOWN_CLIENT),
}


@pytest.mark.parametrize(("name", "source", "scope", "reason"), SCOPES.values(), ids=SCOPES.keys())
def test_an_answer_is_shared_as_far_as_it_is_the_same(
    dig: ClusterDig, name: str, source: str, scope: Scope, reason: Reason
) -> None:
    resolution = dig.resolve(f"{name}.testns.svc.cluster.local. A", source)
    assert resolution.scope is scope
    assert resolution.selection is not None
    assert resolution.selection.reason is reason
    assert (resolution.location is not None) == (scope is Scope.NODE)


def test_an_answer_for_a_node_rests_on_that_node(dig: ClusterDig) -> None:
    own = (namespace_fact(NS), service_fact(NS, "zone"))
    assert dig.resolve("zone.testns.svc.cluster.local. A", N1).facts == (*own, node_fact("n1"))
    assert dig.resolve("zone.testns.svc.cluster.local. A", NOWHERE).facts == own


def test_without_the_topology_directive_policies_do_not_count() -> None:
    dig = ClusterDig(cluster(), settings())
    resolution = dig.resolve("zone.testns.svc.cluster.local. A", N4)
    assert len(resolution.response.answer[0].rdatas) == 3
    assert resolution.selection is None
    assert resolution.scope is Scope.EVERYONE


def _identity(name: str) -> Edns:
    return Edns(1232, 0, False, ((Option.NODE_IDENTITY, name.encode()),))


def _subnet(address: str, prefix_length: int) -> Edns:
    octets = packed(address)[: (prefix_length + 7) // 8]
    return Edns(1232, 0, False, ((Option.CLIENT_SUBNET, b"\0\1" + bytes((prefix_length, 0)) + octets),))


TRUSTING = TopologySettings(trust=(ip_network("192.0.2.0/24"),))


def test_a_trusted_claim_of_a_node_decides_for_this_query_only() -> None:
    dig = server(TRUSTING)
    resolution = dig.resolve("zone.testns.svc.cluster.local. A", NOWHERE, _identity("n3"))
    assert resolution.response.answer[0].rdatas == (packed("172.0.0.3"),)
    assert resolution.location is not None
    assert resolution.location.method == "identity"
    assert resolution.scope is Scope.CLIENT


def test_an_untrusted_claim_is_ignored_and_its_answer_is_not_cached() -> None:
    resolution = server().resolve("zone.testns.svc.cluster.local. A", NOWHERE, _identity("n3"))
    assert resolution.response.answer == ()
    assert resolution.scope is Scope.CLIENT


def test_the_subnet_that_decided_is_echoed_with_its_scope() -> None:
    resolution = server(TRUSTING).resolve("zone.testns.svc.cluster.local. A", NOWHERE, _subnet(N3, 32))
    assert resolution.response.answer[0].rdatas == (packed("172.0.0.3"),)
    assert resolution.response.options == ((8, b"\0\1" + bytes((32, 32)) + packed(N3)),)
    assert resolution.scope is Scope.CLIENT


def test_a_subnet_from_an_untrusted_source_is_not_echoed() -> None:
    resolution = server().resolve("zone.testns.svc.cluster.local. A", N1, _subnet(N3, 32))
    assert resolution.response.options == ()


@pytest.mark.parametrize("name", ["none.testns", "nonexistent.testns", "svc-of.nowhere"])
def test_a_believed_subnet_that_did_not_decide_is_echoed_with_scope_0(name: str) -> None:
    resolution = server(TRUSTING).resolve(f"{name}.svc.cluster.local. A", NOWHERE, _subnet(N3, 32))
    assert resolution.response.options == ((8, b"\0\1" + bytes((32, 0)) + packed(N3)),)


def test_a_policy_waits_for_the_watches_and_the_rest_does_not() -> None:
    dig = server(synced=False)
    for rtype in ("A", "SRV", "TXT"):
        response = dig.resolve(f"zone.testns.svc.cluster.local. {rtype}", N1).response
        assert response.rcode == Rcode.SERVFAIL
        assert response.ede is not None
        assert response.ede.code == EdeCode.NOT_READY
    assert len(addresses(dig, "none", N1)) == 3
    assert len(addresses(dig, "any", N1)) == 3


def test_a_new_label_of_the_client_s_node_is_in_the_next_answer() -> None:
    dig = server()
    assert addresses(dig, "zone", N4) == []
    dig.apply(node("n4", {H: "n4", Z: "b"}, addresses=[N4]))
    assert addresses(dig, "zone", N4) == ["172.0.0.3"]


def test_an_external_name_to_a_service_under_a_policy_is_the_client_s() -> None:
    alias = service("alias", NS, external_name="zone.testns.svc.cluster.local")
    dig = ClusterDig([*cluster(), alias], settings(), TopologySettings())
    resolution = dig.resolve("alias.testns.svc.cluster.local. A", N3)
    assert [len(rrset.rdatas) for rrset in resolution.response.answer] == [1, 1]
    assert resolution.scope is Scope.NODE
    assert node_fact("n3") in resolution.facts
    assert dig("alias.testns.svc.cluster.local. A", N4) == MISS


def test_hints_are_followed_where_the_operator_turns_them_on() -> None:
    objects = [
        *cluster(),
        service("hinted", NS),
        endpoint_slice(
            "hinted",
            endpoint("172.0.0.1", node="n1", zone_hints=["a"]),
            endpoint("172.0.0.3", node="n3", zone_hints=["b"]),
            namespace=NS,
        ),
    ]
    dig = ClusterDig(objects, settings(), TopologySettings(keys=(KeySource.HINTS,)))
    assert addresses(dig, "hinted", N3) == ["172.0.0.3"]
    assert addresses(dig, "hinted", NOWHERE) == ["172.0.0.1", "172.0.0.3"]
    assert dig.resolve("hinted.testns.svc.cluster.local. A", N3).scope is Scope.NODE


@pytest.mark.parametrize(("name", "asked_of"), [("zone", ["first"]), ("host", ["first", "second"])])
def test_the_decision_asks_for_no_pool_behind_the_first_with_endpoints_for_the_client(
    dig: ClusterDig, name: str, asked_of: list[str]
) -> None:
    """n2 has an endpoint of IPv4 alone: where `zone` finds one of IPv6 in n1, `host` goes on to IPv4."""
    topology = TopologySettings()
    kubernetes = KubernetesZone(settings(), topology, dig.state, ClientLocator(dig.state, topology.locate))
    backends = dig.state.backends(ObjectKey(NS, name))
    made: list[str] = []

    def pools() -> Iterator[Pool]:
        for word, family in (("first", 6), ("second", 4), ("third", 4)):
            made.append(word)
            yield backends.pools[family]

    origin = kubernetes.origins.primary
    question = question_of(query_of(f"{name}.testns.svc.cluster.local. SRV"), client(N2), origin)
    selection, _ = rule_of(kubernetes, ObjectKey(NS, name), question).first(pools())
    assert selection is not None
    assert (made, len(selection.group.endpoints)) == (asked_of, 1)
