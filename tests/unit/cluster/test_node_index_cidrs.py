"""When podCIDRs are proven: by few observations or by many, by namespace and by node."""

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import node, packed, packed_cidr, pod
from topodns.cluster.model import Node
from topodns.cluster.node_index import CidrTable, NodeIndex

ELSEWHERE = "172.16"  # addresses of a plan that ignores podCIDRs


def nodes(count: int) -> list[Node]:
    return [node(f"n{at}", addresses=[f"192.0.2.{at}"], pod_cidrs=[f"10.1.{at}.0/24"]) for at in range(count)]


def index_of(count: int) -> NodeIndex:
    index = NodeIndex()
    for each in nodes(count):
        index.replace(None, each)
    return index


def observe(index: NodeIndex, at: int, namespace: str = "apps", first: int = 2, count: int = 1) -> None:
    """So many endpoints on the node of this number, with addresses in its podCIDR."""
    for host in range(first, first + count):
        index.move_endpoints(set(), {(packed(f"10.1.{at}.{host}"), f"n{at}")}, namespace)


def contradict(index: NodeIndex, at: int, namespace: str, count: int = 1) -> None:
    """So many endpoints on the node of this number, with addresses in no podCIDR."""
    for host in range(count):
        index.move_endpoints(set(), {(packed(f"{ELSEWHERE}.{at}.{host}"), f"n{at}")}, namespace)


class Chance(NamedTuple):
    nodes: int
    observed: int
    proven: bool


@pytest.mark.parametrize(
    "case",
    [
        Chance(1, 0, False),
        Chance(1, 1, True),  # there is no other node to be on
        Chance(2, 2, False),
        Chance(4, 4, False),  # 1 in 256
        Chance(7, 7, False),  # 1 in 823,543
        Chance(8, 6, False),
        Chance(8, 7, True),  # 1 in 2,097,152
        Chance(100, 3, False),  # 1 in 1,000,000
        Chance(101, 3, True),
        Chance(250, 2, False),
    ],
)
def test_few_observations_prove_where_accident_has_less_than_one_chance_in_a_million(case: Chance) -> None:
    index = index_of(case.nodes)
    for at in range(case.observed):
        observe(index, at)
    assert index.pod_cidrs_verified is case.proven


def test_pods_of_one_node_are_one_observation_since_they_may_share_a_block() -> None:
    index = index_of(100)
    observe(index, 0, count=150)
    assert not index.pod_cidrs_verified


def test_two_hundred_agreeing_observations_prove_on_however_few_nodes() -> None:
    index = index_of(2)
    observe(index, 0, count=199)
    assert not index.pod_cidrs_verified
    observe(index, 1)
    assert index.pod_cidrs_verified


@pytest.mark.parametrize("count", [1, 2, 50])
@pytest.mark.parametrize("from_the_same_range", [False, True])
def test_a_plugin_that_ignores_pod_cidrs_never_proves_them(count: int, from_the_same_range: bool) -> None:
    """As Calico with its own IPAM and Cilium with cluster-pool: every Pod's address is of a block of its node's own."""
    index = index_of(count)
    for at in range(count):
        for namespace in ("kube-system", "apps", "more"):
            prefix = f"10.1.{(at + 1) % count + (count == 1)}" if from_the_same_range else f"{ELSEWHERE}.{at}"
            for host in range(20):
                index.move_endpoints(set(), {(packed(f"{prefix}.{host}"), f"n{at}")}, namespace)
    assert not index.pod_cidrs_verified


def test_one_namespace_cannot_end_the_proof() -> None:
    index = index_of(20)
    for at in range(20):
        observe(index, at, "apps", count=45)
        observe(index, at, "kube-system", first=100)
        contradict(index, at, "evil", count=50)
    assert index.pod_cidrs_verified
    contradict(index, 0, "evil too")
    assert not index.pod_cidrs_verified


def test_of_a_hundred_namespaces_each_may_err_alone() -> None:
    index = index_of(20)
    for at in range(198):
        observe(index, at % 20, f"team-{at}", first=2 + at // 20)
    contradict(index, 0, "odd")
    contradict(index, 1, "odder")
    assert index.pod_cidrs_verified
    contradict(index, 2, "oddest")
    assert not index.pod_cidrs_verified


def test_one_namespace_cannot_prove_a_cidr_that_another_contradicts() -> None:
    index = index_of(20)
    for at in range(20):
        contradict(index, at, "kube-system")
        observe(index, at, "evil", count=200)
    assert not index.pod_cidrs_verified


def test_nodes_on_which_only_an_outvoted_namespace_agrees_prove_nothing() -> None:
    index = index_of(10)
    observe(index, 0, "a")
    observe(index, 0, "b", first=3)
    assert not index.pod_cidrs_verified
    for at in range(1, 9):
        observe(index, at, "c")
    contradict(index, 9, "c")
    assert not index.pod_cidrs_verified
    for at in range(1, 6):
        observe(index, at, "a", first=4)
    assert not index.pod_cidrs_verified, "on 6 nodes"
    observe(index, 6, "b", first=4)
    assert index.pod_cidrs_verified, "on 7 nodes"


def test_nodes_of_a_namespace_count_again_when_its_contradiction_is_gone() -> None:
    index = index_of(10)
    for namespace in ("a", "b"):
        observe(index, 0, namespace)
    for at in range(1, 9):
        observe(index, at, "c")
    stray = {(packed(f"{ELSEWHERE}.9.0"), "n9")}
    index.move_endpoints(set(), stray, "c")
    assert not index.pod_cidrs_verified
    index.move_endpoints(stray, set(), "c")
    assert index.pod_cidrs_verified


def test_a_namespace_may_have_one_stray_in_a_thousand() -> None:
    index = index_of(10)
    for at in range(10):
        observe(index, at, count=100)
    contradict(index, 0, "apps")
    assert index.pod_cidrs_verified
    contradict(index, 1, "apps")
    assert not index.pod_cidrs_verified


def test_where_pods_are_known_slices_prove_and_disprove_nothing() -> None:
    index = index_of(8)
    for at in range(7):
        index.move_pod(None, pod(f"p{at}", [f"10.1.{at}.2"], node=f"n{at}"))
    for at in range(8):
        for namespace in ("a", "b", "c"):
            contradict(index, at, namespace)
    assert index.pod_cidrs_verified
    gone = pod("p0", ["10.1.0.2"], node="n0")
    index.move_pod(gone, None)
    assert not index.pod_cidrs_verified


def test_a_host_network_pod_says_nothing_about_pod_cidrs() -> None:
    index = index_of(1)
    index.move_pod(None, pod("agent", ["192.0.2.77"], node="n0", host_network=True))
    observe(index, 0)
    assert index.pod_cidrs_verified


def test_an_address_of_a_family_without_pod_cidrs_contradicts_nothing() -> None:
    index = index_of(1)
    observe(index, 0)
    index.move_endpoints(set(), {(packed("fd00::7"), "n0")}, "apps")
    assert index.pod_cidrs_verified


def test_a_pod_in_several_slices_counts_once_for_each_namespace_and_goes_with_the_last() -> None:
    index = index_of(1)
    address = packed("10.1.0.2")
    for namespace in ("a", "a", "b"):
        index.move_endpoints(set(), {(address, "n0")}, namespace)
    for namespace in ("a", "b"):
        index.move_endpoints({(address, "n0")}, set(), namespace)
        assert index.pod_cidrs_verified
    index.move_endpoints({(address, "n0")}, set(), "a")
    assert not index.pod_cidrs_verified
    assert not index.has_pods_on("n0")


# Longest-prefix match, against a scan of every CIDR with the standard library's arithmetic.

Network = IPv4Network | IPv6Network
Owned = tuple[str, Network]

BASES = {4: int(ip_address("10.1.0.0")), 6: int(ip_address("fd00::"))}


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """CIDRs of at most 64 addresses in the same 64: they nest and coincide all the time."""
    family = draw(st.sampled_from((4, 6)))
    host_bits = draw(st.integers(0, 6))
    start = BASES[family] + (draw(st.integers(0, 63)) >> host_bits << host_bits)
    network = IPv4Network if family == 4 else IPv6Network
    return network((start, (32 if family == 4 else 128) - host_bits))


owned_networks = st.lists(st.tuples(st.sampled_from("abc"), networks()), max_size=12)
addresses = st.tuples(st.sampled_from((4, 6)), st.integers(0, 70)).map(lambda at: ip_address(BASES[at[0]] + at[1]))


def table_of(owned: list[Owned]) -> CidrTable:
    table = CidrTable()
    for name, network in owned:
        table.add(network.network_address.packed, network.prefixlen, name)
    return table


def scanned_owner(owned: list[Owned], subnet: Network) -> str:
    around = [(net.prefixlen, name) for name, net in owned if net.version == subnet.version and contains(net, subnet)]
    longest = max((prefix_length for prefix_length, _ in around), default=0)
    owners = {name for prefix_length, name in around if prefix_length == longest}
    return owners.pop() if len(owners) == 1 else ""


def contains(outer: Network, inner: Network) -> bool:
    return outer.network_address <= inner.network_address and inner.broadcast_address <= outer.broadcast_address  # type: ignore[operator]  # the caller compares versions


@given(owned_networks, addresses)
def test_an_address_is_owned_as_a_scan_of_all_cidrs_says(owned: list[Owned], address: object) -> None:
    host = ip_network(str(address))
    assert table_of(owned).owner(host.network_address.packed) == scanned_owner(owned, host)


@given(owned_networks, networks())
def test_a_subnet_is_owned_by_the_owner_of_each_of_its_addresses(owned: list[Owned], subnet: Network) -> None:
    table = table_of(owned)
    owner = scanned_owner(owned, subnet)
    inner = {name for name, net in owned if net.version == subnet.version and contains(subnet, net)}
    expected = owner if inner <= {owner} else ""
    assert table.subnet_owner(subnet.network_address.packed, subnet.prefixlen) == expected
    if expected:
        assert {table.owner(address.packed) for address in subnet} == {expected}


@given(owned_networks, owned_networks, addresses)
def test_a_cidr_added_and_removed_leaves_no_trace(kept: list[Owned], gone: list[Owned], address: object) -> None:
    table = table_of(kept + gone)
    for name, network in gone:
        table.remove(network.network_address.packed, network.prefixlen, name)
    remaining = [owned for owned in kept if owned not in gone]
    host = ip_network(str(address))
    assert table.owner(host.network_address.packed) == scanned_owner(remaining, host)


def test_the_start_of_a_cidr_is_its_first_addresses() -> None:
    table = CidrTable()
    table.add(*packed_cidr("10.1.2.0/24"), "a")
    addresses = ("10.1.1.255", "10.1.2.0", "10.1.2.1", "10.1.2.2", "10.1.2.255", "10.1.3.0")
    assert [table.start_owner(packed(address), 2) for address in addresses] == ["", "a", "a", "", "", ""]


def test_host_bits_in_a_cidr_are_ignored() -> None:
    table = CidrTable()
    table.add(packed("10.1.2.77"), 24, "a")
    assert table.owner(packed("10.1.2.1")) == "a"
    table.remove(packed("10.1.2.0"), 24, "a")
    assert table.owner(packed("10.1.2.1")) == ""


def test_a_cidr_covers_itself_and_its_parts_and_nothing_around_it() -> None:
    table = CidrTable()
    table.add(*packed_cidr("10.1.2.0/24"), "a")
    covered = {text: table.covers(*packed_cidr(text)) for text in ("10.1.2.0/24", "10.1.2.64/26", "10.1.0.0/16")}
    assert covered == {"10.1.2.0/24": True, "10.1.2.64/26": True, "10.1.0.0/16": False}
    assert not table.covers(*packed_cidr("fd00::/64"))
