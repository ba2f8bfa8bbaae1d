"""Nodes found by address, and when their pod CIDRs are to be believed."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.model_builders import node, packed, packed_cidr, pod
from topodns.cluster.model import Node
from topodns.cluster.node_index import NodeIndex

OLDER, NEWER = "2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z"


def index_of(*nodes: Node) -> NodeIndex:
    index = NodeIndex()
    for added in nodes:
        index.replace(None, added)
    return index


def name(found: Node | None) -> str | None:
    return found.name if found else None


def pod_addresses(cidr: str, count: int, first: int = 2) -> Iterable[bytes]:
    network, _ = packed_cidr(cidr)
    start = int.from_bytes(network, "big") + first
    return ((start + offset).to_bytes(len(network), "big") for offset in range(count))


def observe(
    index: NodeIndex,
    cidr: str,
    node_name: str,
    endpoints: int,
    first: int = 2,
    count: int = 1,
    namespace: str = "default",
) -> None:
    """Endpoints with the first addresses of a CIDR appear on a node, or go away."""
    for address in pod_addresses(cidr, endpoints, first):
        moved = {(address, node_name)}
        before, after = (set(), moved) if count > 0 else (moved, set())
        index.move_endpoints(before, after, namespace)


# With the address of a node


class Claimants(NamedTuple):
    nodes: tuple[Node, ...]
    owner: str | None


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Claimants((), None), id="nobody"),
        pytest.param(Claimants((node("a", addresses=["10.0.0.1", "fd00::1"]),), "a"), id="its node address"),
        pytest.param(Claimants((node("a", tunnels=["10.0.0.1"]),), "a"), id="its tunnel address"),
        pytest.param(Claimants((node("a", addresses=["10.0.0.1"], tunnels=["10.0.0.1"]),), "a"), id="both at once"),
        pytest.param(Claimants((node("a", addresses=["10.0.0.1"], ready=False),), "a"), id="the only one, not ready"),
        pytest.param(
            Claimants(
                (
                    node("old", addresses=["10.0.0.1"], created=OLDER),
                    node("new", addresses=["10.0.0.1"], created=NEWER),
                ),
                "new",
            ),
            id="of two ready ones the newer",
        ),
        pytest.param(
            Claimants(
                (
                    node("new", addresses=["10.0.0.1"], created=NEWER, ready=False),
                    node("old", addresses=["10.0.0.1"], created=OLDER),
                ),
                "old",
            ),
            id="a ready one before a newer one that is not",
        ),
        pytest.param(
            Claimants(
                (
                    node("new", addresses=["10.0.0.1"], created=NEWER, ready=False),
                    node("old", addresses=["10.0.0.1"], created=OLDER, ready=False),
                ),
                "new",
            ),
            id="of two that are not ready the newer",
        ),
        pytest.param(
            Claimants((node("a", addresses=["10.0.0.1"]), node("b", addresses=["10.0.0.1"])), None),
            id="of two alike nobody",
        ),
    ],
)
def test_an_address_belongs_to_the_ready_node_created_last(case: Claimants) -> None:
    assert name(index_of(*case.nodes).with_address(packed("10.0.0.1"))) == case.owner


def test_a_node_that_changes_or_goes_gives_up_its_addresses() -> None:
    before, after = node("a", addresses=["10.0.0.1", "10.0.0.2"]), node("a", {"x": "1"}, ["10.0.0.2", "10.0.0.3"])
    index = index_of(before)
    index.replace(before, after)
    assert index.with_address(packed("10.0.0.1")) is None
    assert index.with_address(packed("10.0.0.2")) is after
    assert index.with_address(packed("10.0.0.3")) is after
    index.replace(after, None)
    assert index.with_address(packed("10.0.0.2")) is None


def test_a_claimant_that_goes_leaves_the_address_to_the_other() -> None:
    old, new = node("old", addresses=["10.0.0.1"], created=OLDER), node("new", addresses=["10.0.0.1"], created=NEWER)
    index = index_of(old, new)
    index.replace(new, None)
    assert index.with_address(packed("10.0.0.1")) is old


# With a pod CIDR around the address

CIDRS = (
    node("a", pod_cidrs=["10.1.0.0/24", "fd00:a::/64"]),
    node("b", pod_cidrs=["10.1.1.0/24", "fd00:b::/64"]),
    node("wide", pod_cidrs=["10.1.0.0/16"]),
    node("nested", pod_cidrs=["10.1.1.128/25"]),
    node("twin1", pod_cidrs=["10.1.9.0/24"]),
    node("twin2", pod_cidrs=["10.1.9.0/24"]),
)


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("10.1.0.7", "a"),
        ("10.1.0.0", "a"),  # flannel's tunnel end
        ("10.1.0.255", "a"),
        ("10.1.1.127", "b"),
        ("10.1.1.128", "nested"),
        ("10.1.2.1", "wide"),
        ("10.1.9.1", None),  # two nodes claim the longest CIDR; the wider one is hidden, too
        ("10.2.0.0", None),
        ("fd00:a::1", "a"),
        ("fd00:b::", "b"),
        ("fd00:c::1", None),
    ],
)
def test_the_longest_pod_cidr_decides(address: str, owner: str | None) -> None:
    assert name(index_of(*CIDRS).with_pod_cidr(packed(address))) == owner


def test_a_shared_pod_cidr_is_the_others_once_one_node_is_gone() -> None:
    index = index_of(*CIDRS)
    index.replace(CIDRS[-1], None)
    assert name(index.with_pod_cidr(packed("10.1.9.1"))) == "twin1"


def test_new_labels_show_in_nodes_found_by_pod_cidr() -> None:
    before, after = (
        node("a", {"rack": "1"}, pod_cidrs=["10.1.0.0/24"]),
        node("a", {"rack": "2"}, pod_cidrs=["10.1.0.0/24"]),
    )
    index = index_of(before)
    index.replace(before, after)
    assert index.with_pod_cidr(packed("10.1.0.7")) is after


@pytest.mark.parametrize(
    ("subnet", "owner"),
    [
        ("10.1.0.0/24", "a"),
        ("10.1.0.64/26", "a"),
        ("10.1.0.7/32", "a"),
        ("10.1.1.0/24", None),  # half of it is another node's
        ("10.1.1.0/25", "b"),
        ("10.1.0.0/23", None),
        ("10.1.9.0/25", None),
        ("10.1.64.0/18", "wide"),
        ("fd00:a::/64", "a"),
        ("fd00:a::/56", None),
    ],
)
def test_a_subnet_is_of_a_node_when_all_of_it_is(subnet: str, owner: str | None) -> None:
    assert name(index_of(*CIDRS).with_pod_subnet(*packed_cidr(subnet))) == owner


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("10.1.0.0", "a"),
        ("10.1.0.1", "a"),
        ("10.1.0.2", None),
        ("fd00:a::1", "a"),
        ("fd00:a::2", None),
        ("10.1.9.1", None),
    ],
)
def test_the_first_two_addresses_of_a_pod_cidr_are_its_gateway(address: str, owner: str | None) -> None:
    assert name(index_of(*CIDRS).with_pod_gateway(packed(address))) == owner


# Verification of pod CIDRs

A = node("a", addresses=["10.0.0.1"], tunnels=["10.0.9.1"], pod_cidrs=["10.1.0.0/16"])
B = node("b", addresses=["10.0.0.2"], pod_cidrs=["10.2.0.0/16"])
C = node("c")  # its pods' addresses come from elsewhere
ELSEWHERE = "172.16.0.0/16"


class Observed(NamedTuple):
    agreeing: int
    disagreeing: int
    verified: bool


@pytest.mark.parametrize(
    "case",
    [
        Observed(0, 0, False),
        Observed(199, 0, False),
        Observed(200, 0, True),
        Observed(199, 1, False),  # 99.5 %
        Observed(998, 1, False),  # 99.8999 %
        Observed(999, 1, True),  # 99.9 %
        Observed(1997, 2, False),
        Observed(1998, 2, True),
    ],
    ids=lambda case: f"{case.agreeing} of {case.agreeing + case.disagreeing}",
)
@pytest.mark.parametrize("wrong_cidr", [ELSEWHERE, "10.2.0.0/16"], ids=["outside all CIDRs", "in another node's CIDR"])
def test_pod_cidrs_are_verified_by_999_permille_of_at_least_200_endpoints(case: Observed, wrong_cidr: str) -> None:
    index = index_of(A, B)
    observe(index, "10.1.0.0/16", "a", case.agreeing)
    observe(index, wrong_cidr, "a", case.disagreeing)
    assert index.pod_cidrs_verified is case.verified


def test_ipv6_endpoints_verify_like_ipv4_ones() -> None:
    index = index_of(node("a", pod_cidrs=["fd00:a::/64"]))
    observe(index, "fd00:a::/64", "a", 200)
    assert index.pod_cidrs_verified


def test_the_same_address_in_several_slices_is_one_sample() -> None:
    index = index_of(A, B)
    observe(index, "10.1.0.0/16", "a", 150)
    observe(index, "10.1.0.0/16", "a", 150)
    assert not index.pod_cidrs_verified
    observe(index, "10.1.0.0/16", "a", 50, first=152)
    assert index.pod_cidrs_verified
    observe(index, "10.1.0.0/16", "a", 150, count=-1)  # the other slices still have them
    assert index.pod_cidrs_verified
    observe(index, "10.1.0.0/16", "a", 1, count=-1)
    assert not index.pod_cidrs_verified


@pytest.mark.parametrize("asked_before", [False, True])
def test_host_network_endpoints_are_no_samples(asked_before: bool) -> None:
    index = index_of(A, B)
    if asked_before:  # from then on endpoints are counted as they come
        assert not index.pod_cidrs_verified
    observe(index, "10.1.0.0/16", "a", 199)
    for address in ("10.0.0.1", "10.0.9.1"):
        index.move_endpoints(set(), {(packed(address), "a")}, "default")
    index.move_endpoints(set(), {(packed("10.0.0.2"), "b")}, "default")
    assert not index.pod_cidrs_verified
    observe(index, "10.1.0.0/16", "a", 1, first=201)
    assert index.pod_cidrs_verified


def test_an_endpoint_becomes_a_host_network_one_when_its_node_says_the_address_is_its_own() -> None:
    index = index_of(A)
    observe(index, "10.1.0.0/16", "a", 200)
    index.move_endpoints(set(), {(packed("10.0.0.8"), "a")}, "default")
    assert not index.pod_cidrs_verified
    index.replace(A, node("a", addresses=["10.0.0.1", "10.0.0.8"], pod_cidrs=["10.1.0.0/16"]))
    assert index.pod_cidrs_verified


def test_endpoints_without_node_name_are_no_samples() -> None:
    index = index_of(A)
    observe(index, "10.1.0.0/16", "a", 200)
    observe(index, ELSEWHERE, "", 50)
    assert index.pod_cidrs_verified


def test_endpoints_observed_before_their_node_count_once_it_is_there() -> None:
    index = NodeIndex()
    observe(index, "10.1.0.0/16", "a", 200)
    assert not index.pod_cidrs_verified
    index.replace(None, A)
    assert index.pod_cidrs_verified


def test_a_deleted_node_takes_its_endpoints_out_of_the_count_and_leaves_the_others_verified() -> None:
    index = index_of(A, B)
    observe(index, "10.1.0.0/16", "a", 200)
    observe(index, "10.2.0.0/16", "b", 100)
    index.replace(B, None)
    assert index.pod_cidrs_verified
    index.replace(A, None)
    assert not index.pod_cidrs_verified


def test_a_node_without_pod_cidrs_counts_against_them_while_it_is_there() -> None:
    index = index_of(A)
    observe(index, "10.1.0.0/16", "a", 200)
    observe(index, ELSEWHERE, "c", 1)
    assert index.pod_cidrs_verified
    index.replace(None, C)
    assert not index.pod_cidrs_verified
    index.replace(C, None)
    assert index.pod_cidrs_verified


def test_disagreement_demotes_and_its_end_restores() -> None:
    index = index_of(A, B)
    observe(index, "10.1.0.0/16", "a", 500)
    assert index.pod_cidrs_verified
    observe(index, ELSEWHERE, "b", 1)
    assert not index.pod_cidrs_verified
    observe(index, ELSEWHERE, "b", 1, count=-1)
    assert index.pod_cidrs_verified


def test_a_node_whose_pod_cidr_changes_takes_its_endpoints_verdict_along() -> None:
    index = index_of(A)
    observe(index, "10.1.0.0/16", "a", 200)
    moved = node("a", pod_cidrs=["10.7.0.0/16"])
    index.replace(A, moved)
    assert not index.pod_cidrs_verified
    index.replace(moved, A)
    assert index.pod_cidrs_verified


@pytest.mark.parametrize("cidr", ["10.1.0.0/24", "10.1.0.0/16"], ids=["inside", "the same"])
def test_a_pod_cidr_that_another_node_claims_too_demotes_until_that_one_is_gone(cidr: str) -> None:
    index = index_of(A)
    observe(index, "10.1.0.0/16", "a", 200)
    assert index.pod_cidrs_verified
    intruder = node("intruder", pod_cidrs=[cidr])
    index.replace(None, intruder)
    assert not index.pod_cidrs_verified
    index.replace(intruder, None)
    assert index.pod_cidrs_verified


# Against the law, computed from scratch

NODE_NAMES = ("a", "b", "c")
SHARED_CIDRS = ("10.1.0.0/16", "10.1.0.0/24", "10.1.1.0/24", "10.2.0.0/16")
node_changes = st.tuples(
    st.sampled_from(NODE_NAMES), st.none() | st.lists(st.sampled_from(SHARED_CIDRS), max_size=2, unique=True)
)
block_changes = st.tuples(st.sampled_from(NODE_NAMES), st.sampled_from(SHARED_CIDRS[1:]), st.booleans())


def lawful(nodes: dict[str, Node], observed: Sequence[tuple[str, str]]) -> bool:
    """Whether a fresh index that sees the same nodes and endpoints, all of them at once, is verified."""
    index = NodeIndex()
    for node_name, cidr in observed:
        observe(index, cidr, node_name, 100, namespace=cidr)
    for present in nodes.values():
        index.replace(None, present)
    return index.pod_cidrs_verified


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(node_changes | block_changes, st.booleans()), max_size=14))
def test_after_any_changes_the_verdict_is_that_of_a_fresh_index(
    changes: list[tuple[tuple[object, ...], bool]],
) -> None:
    index, nodes, observed = NodeIndex(), dict[str, Node](), list[tuple[str, str]]()
    for change, asked in changes:
        match change:
            case (str(node_name), str(cidr), bool(appears)):
                if not appears and (node_name, cidr) not in observed:
                    continue
                (observed.append if appears else observed.remove)((node_name, cidr))
                observe(index, cidr, node_name, 100, count=1 if appears else -1, namespace=cidr)
            case (str(node_name), cidrs):
                new = None if cidrs is None else node(node_name, pod_cidrs=cidrs)  # type: ignore[arg-type]
                index.replace(nodes.pop(node_name, None), new)
                nodes.update({node_name: new} if new else {})
        if asked:
            assert index.pod_cidrs_verified is lawful(nodes, observed)
    assert index.pod_cidrs_verified is lawful(nodes, observed)


def test_a_pod_that_moves_names_the_gateways_of_its_old_and_its_new_node() -> None:
    index = index_of(node("n1", pod_cidrs=["10.1.0.0/24"]), node("n2", pod_cidrs=["10.2.0.0/24"]))
    before, after = (pod("web", [address], node=name) for address, name in (("10.1.0.9", "n1"), ("10.2.0.9", "n2")))
    assert index.move_pod(before, after) == tuple(map(packed, ("10.1.0.0", "10.1.0.1", "10.2.0.0", "10.2.0.1")))
    assert index.move_pod(after, None) == (packed("10.2.0.0"), packed("10.2.0.1"))
    assert index.move_pod(None, pod("agent", ["192.0.2.1"], node="n1", host_network=True)) == ()
    assert index.move_pod(None, pod("stray", ["10.1.0.8"], node="unknown")) == ()
