"""A client's location: methods, their order, the claims that are believed, and unknown locations."""

from collections.abc import Sequence
from functools import cache
from ipaddress import ip_network
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import forged_slices
from tests.support.model_builders import (
    endpoint,
    endpoint_slice,
    listed_state,
    node,
    node_locator,
    packed,
    packed_cidr,
    pod,
    pod_locator,
    state_of,
)
from topodns.cluster.model import ClusterObject, Deleted, Kind, ObjectKey, Pod, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dns.addresses import NetworkList
from topodns.plugins.topology.settings import TopologySettings
from topodns.topology.claims import Claim
from topodns.topology.client_locator import ClientLocator, Method, missing_locators
from topodns.topology.select import Location

DEFAULT_METHODS = TopologySettings().locate
ALL_METHODS = (*DEFAULT_METHODS, Method.PODCIDR_UNVERIFIED)

N1 = node("n1", {"rack": "1"}, ["192.0.2.1", "2001:db8::1"], ["10.9.1.1"], ["10.1.0.0/16", "fd00:1::/64"])
N2 = node("n2", {"rack": "2"}, ["192.0.2.2", "2001:db8::2"], ["10.9.2.1"], ["10.2.0.0/16", "fd00:2::/64"])


def many_endpoints(count: int) -> ClusterObject:
    """A slice with so many endpoints, high in n1's pod CIDR, on n1."""
    return endpoint_slice("many", *(endpoint(f"10.1.{200 + at // 250}.{at % 250}", "n1") for at in range(count)))


@cache
def whole_cluster() -> ClusterState:
    """Two nodes with verified pod CIDRs, and a few endpoints outside of them, which are too few to matter."""
    outside = endpoint("172.16.0.5", "n2"), endpoint("172.16.0.6", "n2", ready=False), endpoint("172.16.0.7")
    return state_of(
        N1,
        N2,
        many_endpoints(3000),
        endpoint_slice("web", *outside),
        endpoint_slice("web", endpoint("fd99::5", "n2"), name="web-6"),
    )


def locator(
    *objects: ClusterObject,
    methods: Sequence[Method] = DEFAULT_METHODS,
    trust: Sequence[str] = (),
    own_node: str = "",
    own_addresses: Sequence[str] = (),
) -> ClientLocator:
    networks = NetworkList(map(ip_network, trust))
    return ClientLocator(state_of(*objects), methods, networks, own_node, frozenset(map(packed, own_addresses)))


UNKNOWN = ("", "unknown")


def found(location: Location) -> tuple[str, str]:
    return location.node_name, location.method


@pytest.mark.parametrize("listed", [(), (pod("p", ["10.1.0.9"], "apps", "n1"),)], ids=["empty", "with a Pod"])
def test_the_first_list_of_pods_ends_locations_that_only_slices_gave(listed: tuple[Pod, ...]) -> None:
    """Also those found between the steps of the list: afterwards no Pod is known to have the address."""
    state = ClusterState(frozenset({"Pod"}), all_pods=True)
    state.apply(Upserted(endpoint_slice("web", endpoint("10.1.0.5", "n1"))), 0)
    located = ClientLocator(state, [Method.SLICES])
    assert found(located.locate(packed("10.1.0.5"))) == ("n1", "slices")
    for _ in state.replace_steps(Replaced("Pod", listed), 1):
        if not state.synced:
            assert found(located.locate(packed("10.1.0.5"))) == ("n1", "slices")
    assert found(located.locate(packed("10.1.0.5"))) == UNKNOWN


# By source address


class Found(NamedTuple):
    source: str
    node_name: str
    method: str


SOURCES = [
    Found("192.0.2.1", "n1", "nodes"),
    Found("2001:db8::2", "n2", "nodes"),
    Found("10.9.2.1", "n2", "nodes"),  # a tunnel end
    Found("10.2.3.4", "n2", "podcidr"),
    Found("10.2.0.0", "n2", "podcidr"),  # flannel's tunnel end
    Found("fd00:1::9", "n1", "podcidr"),
    Found("172.16.0.5", "n2", "slices"),
    Found("172.16.0.6", "n2", "slices"),  # not ready
    Found("fd99::5", "n2", "slices"),
    Found("172.16.0.7", "", "unknown"),  # its endpoint is on no node
    Found("172.16.0.9", "", "unknown"),
    Found("127.0.0.1", "", "unknown"),
    Found("::1", "", "unknown"),
]


@pytest.mark.parametrize("case", SOURCES, ids=lambda case: case.source)
def test_a_client_is_found_by_its_source_address(case: Found) -> None:
    located = ClientLocator(whole_cluster(), DEFAULT_METHODS).locate(packed(case.source))
    assert found(located) == (case.node_name, case.method)
    assert located.node == {"n1": N1, "n2": N2}.get(case.node_name)
    assert located.prefix_length == 0


def test_methods_that_are_switched_off_find_nothing() -> None:
    nobody = ClientLocator(whole_cluster(), methods=())
    assert {found(nobody.locate(packed(case.source))) for case in SOURCES} == {UNKNOWN}


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (ALL_METHODS, ("n3", "pods")),  # a Pod goes before a podCIDR, however well proven
        ((Method.PODCIDR_UNVERIFIED, Method.PODS), ("n1", "podcidr-unverified")),
        ((Method.PODS, Method.SLICES), ("n3", "pods")),
        ((Method.SLICES, Method.NODES), UNKNOWN),
    ],
)
def test_the_first_method_that_knows_decides(methods: Sequence[Method], expected: tuple[str, str]) -> None:
    contradictory = locator(
        N1,
        many_endpoints(1000),
        endpoint_slice("web", endpoint("10.1.99.1", "n2")),
        pod("p", ["10.1.99.1"], node="n3"),
        methods=methods,
    )
    assert found(contradictory.locate(packed("10.1.99.1"))) == expected


def test_a_node_name_without_node_object_is_a_location_all_the_same() -> None:
    located = locator(endpoint_slice("web", endpoint("172.16.0.5", "gone"))).locate(packed("172.16.0.5"))
    assert located == Location("gone", None, "slices")


def test_labels_come_live_from_the_node_object() -> None:
    state = state_of(N1)
    alive = ClientLocator(state, DEFAULT_METHODS)
    assert alive.locate(packed("192.0.2.1")).node == N1
    relabelled = node("n1", {"rack": "7"}, ["192.0.2.1"])
    state.apply(Upserted(relabelled), wall_seconds=0)
    assert alive.locate(packed("192.0.2.1")).node == relabelled
    state.apply(Deleted("Node", ObjectKey("", "n1")), wall_seconds=0)
    assert found(alive.locate(packed("192.0.2.1"))) == UNKNOWN


# Pod CIDRs


def test_pod_cidrs_locate_from_the_200th_agreeing_endpoint_on() -> None:
    client = packed("10.1.3.4")
    assert found(locator(N1, N2, many_endpoints(199)).locate(client)) == UNKNOWN
    assert found(locator(N1, N2, many_endpoints(200)).locate(client)) == ("n1", "podcidr")


def test_pod_cidrs_are_dropped_while_endpoints_contradict_them() -> None:
    state = state_of(N1, N2, many_endpoints(200))
    watching = ClientLocator(state, DEFAULT_METHODS)
    state.apply(Upserted(endpoint_slice("web", endpoint("10.1.3.3", "n2"))), wall_seconds=0)
    assert found(watching.locate(packed("10.1.3.4"))) == UNKNOWN
    assert found(watching.locate(packed("10.1.3.3"))) == ("n2", "slices")
    state.apply(Deleted("EndpointSlice", ObjectKey("default", "web-1")), wall_seconds=0)
    assert found(watching.locate(packed("10.1.3.4"))) == ("n1", "podcidr")


def test_an_operator_may_have_pod_cidrs_unverified() -> None:
    sure = locator(N1, methods=(Method.NODES, Method.PODCIDR, Method.PODCIDR_UNVERIFIED))
    assert found(sure.locate(packed("10.1.3.4"))) == ("n1", "podcidr-unverified")
    assert found(sure.locate(packed("fd00:1::4"))) == ("n1", "podcidr-unverified")
    assert found(sure.locate(packed("10.2.3.4"))) == UNKNOWN


# Several claimants of one address


class Claimants(NamedTuple):
    objects: tuple[ClusterObject, ...]
    node_name: str


ADDRESS = "172.16.0.5"
OLDER, NEWER = "2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z"


def slices(*nodes: str, terminating: str = "nobody") -> tuple[ClusterObject, ...]:
    """One Service per node name, each with an endpoint at ADDRESS there; the one on `terminating` is going away."""
    return tuple(
        endpoint_slice(f"s{number}", endpoint(ADDRESS, name, terminating=name == terminating))
        for number, name in enumerate(nodes)
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Claimants(slices("n1", "n1"), "n1"), id="two Services of one pod"),
        pytest.param(Claimants(slices("n1", "n2"), ""), id="two nodes"),
        pytest.param(Claimants(slices("n1", "n2", "n1"), ""), id="a majority is no proof"),
        pytest.param(Claimants(slices("", "n2"), "n2"), id="one says no node"),
        pytest.param(Claimants(slices("n1", "n2", terminating="n1"), "n2"), id="one terminating"),
        pytest.param(Claimants(slices("n1", terminating="n1"), "n1"), id="only a terminating one"),
    ],
)
def test_an_address_in_slices_is_on_the_one_node_they_agree_on(case: Claimants) -> None:
    assert locator(*case.objects).locate(packed(ADDRESS)).node_name == case.node_name


def claiming(
    name: str, node: str, terminating: bool = False, started: str = OLDER, host_network: bool = False
) -> ClusterObject:
    return pod(name, [ADDRESS], node=node, terminating=terminating, started=started, host_network=host_network)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Claimants((), ""), id="none"),
        pytest.param(Claimants((claiming("a", "n1"),), "n1"), id="one"),
        pytest.param(Claimants((claiming("a", "n1", terminating=True),), "n1"), id="one, terminating"),
        pytest.param(
            Claimants((claiming("a", "n1", terminating=True, started=NEWER), claiming("b", "n2")), "n2"),
            id="one that stays before one that terminates",
        ),
        pytest.param(
            Claimants((claiming("a", "n1", started=OLDER), claiming("b", "n2", started=NEWER)), ""),
            id="two that stay on different nodes",
        ),
        pytest.param(
            Claimants((claiming("a", "n1", host_network=True), claiming("b", "n1", host_network=True)), "n1"),
            id="hostNetwork pods of one node",
        ),
        pytest.param(
            Claimants(
                (claiming("a", "n1", True, started=NEWER), claiming("b", "n2", True, started=OLDER)),
                "n1",
            ),
            id="of two that terminate the one started last",
        ),
        pytest.param(
            Claimants((claiming("a", "n1", True), claiming("b", "n2", True)), ""),
            id="two that terminate and started together",
        ),
    ],
)
def test_an_address_of_pods_is_on_the_node_of_the_one_that_stays(case: Claimants) -> None:
    assert locator(*case.objects, methods=(Method.PODS,)).locate(packed(ADDRESS)).node_name == case.node_name


def test_pods_are_found_by_each_of_their_addresses() -> None:
    dual = locator(pod("p", ["172.16.0.5", "fd99::5"], node="n1"), methods=(Method.PODS,))
    assert [found(dual.locate(packed(ip))) for ip in ("172.16.0.5", "fd99::5")] == [("n1", "pods")] * 2


def test_of_slices_that_contradict_each_other_a_pod_says_which_is_right() -> None:
    asked = locator(*slices("n1", "n2"), claiming("a", "n2"), methods=(Method.SLICES,))
    assert found(asked.locate(packed(ADDRESS))) == ("n2", "slices")


# Our own node


@pytest.mark.parametrize("source", ["127.0.0.1", "127.1.2.3", "::1", "172.16.0.99"])
def test_loopback_and_our_own_addresses_are_on_our_own_node(source: str) -> None:
    at_home = locator(N1, own_node="n1", own_addresses=["172.16.0.99"])
    assert at_home.locate(packed(source)) == Location("n1", N1, "own")


def test_a_loopback_address_that_a_method_knows_is_where_the_method_says() -> None:
    demo = locator(N1, N2, endpoint_slice("web", endpoint("127.0.2.1", "n2")), own_node="n1")
    assert found(demo.locate(packed("127.0.2.1"))) == ("n2", "slices")


def test_other_addresses_are_not_our_own() -> None:
    at_home = locator(N1, own_node="n1", own_addresses=["172.16.0.99"])
    assert {found(at_home.locate(packed(ip))) for ip in ("172.16.0.98", "128.0.0.1", "::2")} == {UNKNOWN}


# Node identity


class Claimed(NamedTuple):
    source: str
    node_name: str
    expected: tuple[str, str]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Claimed("203.0.113.9", "n2", ("n2", "identity")), id="from a trusted prefix"),
        pytest.param(Claimed("2001:db8:1::9", "n2", ("n2", "identity")), id="from a trusted IPv6 prefix"),
        pytest.param(Claimed("203.0.114.9", "n2", UNKNOWN), id="from beside the trusted prefix"),
        pytest.param(Claimed("192.0.2.1", "n1", ("n1", "identity")), id="from the node itself"),
        pytest.param(Claimed("192.0.2.1", "n2", ("n1", "nodes")), id="from another node's address"),
        pytest.param(Claimed("10.9.1.1", "n1", ("n1", "identity")), id="from a tunnel address"),
        pytest.param(Claimed("10.1.0.1", "n1", ("n1", "identity")), id="from the gateway of its pod CIDR"),
        pytest.param(Claimed("10.1.0.0", "n1", ("n1", "identity")), id="from the .0 of its pod CIDR"),
        pytest.param(Claimed("fd00:1::1", "n1", ("n1", "identity")), id="from the gateway of its IPv6 pod CIDR"),
        pytest.param(Claimed("10.1.0.1", "n2", UNKNOWN), id="from another node's gateway"),
        pytest.param(Claimed("10.1.0.2", "n1", UNKNOWN), id="from a pod of the node"),
        pytest.param(Claimed("172.16.0.5", "n1", ("n2", "slices")), id="from a pod, against its slice"),
        pytest.param(Claimed("127.0.0.1", "n2", UNKNOWN), id="from loopback"),
    ],
)
def test_a_node_identity_is_believed_only_from_trusted_addresses(case: Claimed) -> None:
    asked = locator(
        N1,
        N2,
        endpoint_slice("web", endpoint("172.16.0.5", "n2")),
        trust=["203.0.113.0/24", "2001:db8:1::/48"],
    )
    assert found(asked.locate(packed(case.source), Claim(node_name=case.node_name))) == case.expected


def test_by_default_no_prefix_is_trusted() -> None:
    assert not locator().claims.trusts(packed("127.0.0.1"))
    assert found(locator(N1).locate(packed("203.0.113.9"), Claim(node_name="n1"))) == UNKNOWN


def test_a_claim_of_an_unknown_node_locates_no_client() -> None:
    located = locator(N1, trust=["0.0.0.0/0"]).locate(packed("192.0.2.1"), Claim(node_name="new"))
    assert located == Location("n1", N1, "nodes")


def test_a_claim_may_name_a_node_whose_endpoints_outlive_its_object() -> None:
    lingering = locator(endpoint_slice("web", endpoint("172.16.0.5", "gone")), trust=["0.0.0.0/0"])
    located = lingering.locate(packed("203.0.113.9"), Claim(node_name="gone"))
    assert located == Location("gone", None, "identity")


def test_identity_goes_before_everything_else() -> None:
    everywhere = locator(N1, N2, endpoint_slice("web", endpoint("172.16.0.5", "n2")), trust=["172.16.0.0/12"])
    claim = Claim(node_name="n1", subnet=(packed("172.16.0.5"), 32))
    assert everywhere.locate(packed("172.16.0.5"), claim) == Location("n1", N1, "identity")


# EDNS Client Subnet


class Subnet(NamedTuple):
    subnet: str
    node_name: str


SUBNETS = [
    Subnet("192.0.2.2/32", "n2"),
    Subnet("2001:db8::2/128", "n2"),
    Subnet("10.9.2.1/32", "n2"),
    Subnet("10.2.3.4/32", "n2"),
    Subnet("172.16.0.5/32", "n2"),
    Subnet("10.2.3.0/24", "n2"),
    Subnet("10.2.0.0/16", "n2"),
    Subnet("fd00:2::/64", "n2"),
    Subnet("10.2.0.0/15", ""),  # more than one node's
    Subnet("172.16.0.0/24", ""),
    Subnet("172.16.0.9/32", ""),
]


@pytest.mark.parametrize("case", SUBNETS, ids=lambda case: case.subnet)
def test_a_trusted_subnet_is_mapped_as_a_source_address_would_be(case: Subnet) -> None:
    asked = ClientLocator(whole_cluster(), DEFAULT_METHODS, NetworkList([ip_network("203.0.113.0/24")]))
    located = asked.locate(packed("203.0.113.9"), Claim(subnet=packed_cidr(case.subnet)))
    expected = Location("n2", N2, "ecs", packed_cidr(case.subnet)[1]) if case.node_name else Location()
    assert located == expected


@pytest.mark.parametrize(
    ("methods", "node_name"),
    [(DEFAULT_METHODS, ""), ((Method.PODCIDR_UNVERIFIED,), "n2")],
)
def test_a_subnet_of_several_addresses_needs_pod_cidrs_that_are_believed(
    methods: Sequence[Method], node_name: str
) -> None:
    asked = locator(N1, N2, methods=methods, trust=["203.0.113.0/24"])
    assert asked.locate(packed("203.0.113.9"), Claim(subnet=packed_cidr("10.2.3.0/24"))).node_name == node_name


def test_a_subnet_of_several_addresses_is_unknown_where_pod_cidrs_are_switched_off() -> None:
    asked = ClientLocator(whole_cluster(), (Method.NODES, Method.SLICES), NetworkList([ip_network("203.0.113.0/24")]))
    assert found(asked.locate(packed("203.0.113.9"), Claim(subnet=packed_cidr("10.2.3.0/24")))) == UNKNOWN


@pytest.mark.parametrize("source", ["192.0.2.1", "10.9.1.1", "10.1.0.1", "172.16.0.5", "203.0.114.9"])
def test_a_subnet_from_anyone_else_is_ignored_from_nodes_too(source: str) -> None:
    asked = locator(N1, N2, endpoint_slice("web", endpoint("172.16.0.5", "n1")), trust=["203.0.113.0/24"])
    unclaimed = asked.locate(packed(source))
    assert asked.locate(packed(source), Claim(subnet=(packed("192.0.2.2"), 32))) == unclaimed
    assert unclaimed.node_name != "n2"


def test_a_subnet_that_no_method_maps_leaves_it_to_the_source_address() -> None:
    asked = locator(N1, trust=["192.0.2.0/24"])
    located = asked.locate(packed("192.0.2.1"), Claim(subnet=(packed("172.16.0.9"), 32)))
    assert located == Location("n1", N1, "nodes")


def test_a_loopback_subnet_is_not_our_own_node() -> None:
    asked = locator(N1, trust=["203.0.113.0/24"], own_node="n1")
    assert found(asked.locate(packed("203.0.113.9"), Claim(subnet=(packed("127.0.0.1"), 32)))) == UNKNOWN


# What is remembered


def test_where_a_client_is_follows_every_change() -> None:
    state = state_of(N1, endpoint_slice("web", endpoint("172.16.0.5", "n1")))
    asked = ClientLocator(state, DEFAULT_METHODS)
    client = packed("172.16.0.5")
    changes = (
        Upserted(node("n1", {"rack": "9"})),
        Upserted(endpoint_slice("web", endpoint("172.16.0.5", "n2"))),
        Upserted(N2),
        Upserted(node("n3", addresses=["172.16.0.5"])),
        Deleted("Node", ObjectKey("", "n3")),
        Deleted("EndpointSlice", ObjectKey("default", "web-1")),
    )
    for change in changes:
        asked.locate(client)
        state.apply(change, wall_seconds=0)
        assert asked.locate(client) == ClientLocator(state, DEFAULT_METHODS).locate(client)
    assert found(asked.locate(client)) == UNKNOWN


def test_of_more_clients_than_are_remembered_the_one_remembered_first_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("topodns.topology.client_locator.MAX_KNOWN", 2)
    searched: list[bytes] = []
    search = ClientLocator._located_by_methods

    def counted(asked: ClientLocator, source: bytes) -> Location:
        searched.append(source)
        return search(asked, source)

    monkeypatch.setattr(ClientLocator, "_located_by_methods", counted)
    asked = locator(N1, N2)
    one, two, unknown = (packed(address) for address in ("192.0.2.1", "192.0.2.2", "198.51.100.1"))
    sources = [one, two, one, unknown, one, unknown, two]
    assert [asked.locate(source).node_name for source in sources] == ["n1", "n2", "n1", "", "n1", "", "n2"]
    assert searched == [one, two, unknown, one, two]


# For any claim

anywhere = st.ip_addresses().map(lambda address: address.packed)
claims = st.builds(
    Claim,
    st.none() | st.sampled_from(("n1", "n2", "new")),
    st.none() | anywhere.flatmap(lambda address: st.tuples(st.just(address), st.integers(1, len(address) * 8))),
)
UNTRUSTING = locator(N1, N2, endpoint_slice("web", endpoint("172.16.0.5", "n2")), trust=["203.0.113.0/24"])


@given(st.sampled_from(("10.1.3.4", "172.16.0.5", "198.51.100.1", "fd00:1::9", "127.0.0.1")).map(packed), claims)
def test_no_claim_of_an_untrusted_source_changes_where_it_is(source: bytes, claim: Claim) -> None:
    assert UNTRUSTING.locate(source, claim) == UNTRUSTING.locate(source)


# Which locators a server waits for before it replaces another one.

BY_NODES = (Method.NODES, Method.PODCIDR, Method.NODELOCATOR, Method.SLICES)
KINDS: tuple[Kind, ...] = ("Node", "NodeLocator", "PodLocator")


@pytest.mark.parametrize(
    ("listed", "missing"),
    [
        pytest.param((forged_slices.N1, forged_slices.N2), "NodeLocators: 2 of 2 Nodes have none", id="none yet"),
        pytest.param(
            (forged_slices.N1, forged_slices.N2, node_locator("n2")),
            "NodeLocators: 1 of 2 Nodes have none",
            id="not all yet",
        ),
        pytest.param(
            (forged_slices.N1, forged_slices.N2, node_locator("n3")),
            "NodeLocators: 2 of 2 Nodes have none",
            id="of another Node",
        ),
        pytest.param((forged_slices.N1, forged_slices.N2, node_locator("n1"), node_locator("n2")), "", id="all"),
    ],
)
def test_each_node_needs_a_node_locator(listed: Sequence[ClusterObject], missing: str) -> None:
    assert missing_locators(listed_state(KINDS, *listed), BY_NODES) == missing


def test_where_nodes_are_not_watched_one_node_locator_is_enough() -> None:
    methods = (Method.NODELOCATOR, Method.SLICES)
    assert missing_locators(listed_state(KINDS), methods) == "NodeLocators: there is none"
    assert missing_locators(listed_state(KINDS, node_locator("n1")), methods) == ""


def test_of_pod_locators_one_is_enough() -> None:
    methods = (Method.NODES, Method.PODLOCATOR)
    there = pod_locator("p", ["10.1.1.1"], "n1")
    assert (
        missing_locators(listed_state(KINDS, forged_slices.N1, forged_slices.N2), methods)
        == "PodLocators: there is none"
    )
    assert missing_locators(listed_state(KINDS, forged_slices.N1, forged_slices.N2, there), methods) == ""
    assert (
        missing_locators(
            listed_state(KINDS, forged_slices.N1, forged_slices.N2, there), (Method.PODLOCATOR, Method.NODELOCATOR)
        )
        == ""
    )


@pytest.mark.parametrize(
    "methods",
    [
        pytest.param((Method.NODES, Method.PODCIDR, Method.SLICES), id="no locators"),
        pytest.param((*BY_NODES, Method.PODS), id="Pods too"),
        pytest.param((Method.NODES, Method.PODCIDR_UNVERIFIED, Method.PODLOCATOR), id="every podCIDR too"),
    ],
)
def test_none_is_missing_where_clients_are_located_without(methods: Sequence[Method]) -> None:
    assert missing_locators(listed_state(KINDS, forged_slices.N1, forged_slices.N2), methods) == ""
