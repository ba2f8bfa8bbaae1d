"""Findings about clients that cannot be located, and why."""

from collections.abc import Sequence

import pytest

from tests.support.model_builders import node, pod
from topodns.cluster.model import ClusterObject, Kind, Replaced, kind_of
from topodns.cluster.state import ClusterState
from topodns.inspect.findings import PODS, unlocated_finding_steps
from topodns.topology.client_locator import Method

DEFAULT = (Method.NODES, Method.PODCIDR, Method.PODS, Method.SLICES)
NO_PODS = (Method.NODES, Method.PODCIDR, Method.SLICES)


def state_of(
    *objects: ClusterObject, needed: Sequence[Kind] = ("Node", "Pod"), denied: Sequence[Kind] = ()
) -> ClusterState:
    state = ClusterState(frozenset(needed))
    for kind in needed:
        if kind in denied:
            state.do_without(kind)
        else:
            state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), 0)
    return state


def texts(state: ClusterState, methods: Sequence[Method] = DEFAULT, hard: bool = False) -> list[tuple[str, str]]:
    found = [each for each in unlocated_finding_steps(state, methods, hard) if each is not None]
    assert {each.kind for each in found} <= {"unlocated"}
    return [(each.severity.value, each.text) for each in found]


def test_nothing_is_found_where_all_pods_are_located() -> None:
    state = state_of(
        node("n1", addresses=["10.1.0.1"]), pod("a", ["10.0.0.1"], node="n1"), pod("host", ["10.1.0.1"], node="n1")
    )
    assert texts(state) == []


def test_pods_on_no_node_are_named() -> None:
    state = state_of(node("n1"), pod("a", ["10.0.0.1"]), pod("b", ["10.0.0.2"]))
    assert texts(state) == [("warning", "2 Pods cannot be located, as they are on no Node: default/a, default/b")]


def test_a_hard_list_makes_it_an_error() -> None:
    state = state_of(node("n1"), pod("a", ["10.0.0.1"]))
    assert texts(state, hard=True) == [
        ("error", "1 Pod cannot be located, as they are on no Node; hard lists give them no endpoint: default/a")
    ]


def test_pods_of_several_nodes_with_one_address_are_named() -> None:
    state = state_of(node("n1"), pod("a", ["10.0.0.1"], node="n1"), pod("b", ["10.0.0.1"], node="n2"))
    assert texts(state) == [
        ("warning", "2 Pods cannot be located, as Pods on several Nodes have their address: default/a, default/b")
    ]


def test_pods_of_the_host_network_without_an_address_of_their_node_are_named() -> None:
    state = state_of(node("n1"), pod("a", ["10.1.0.1"], node="n1", host_network=True))
    assert texts(state, NO_PODS) == [
        ("warning", "1 Pod of the host network cannot be located, as no Node alone has their address: default/a")
    ]


def test_other_pods_are_named_where_the_methods_do_not_find_them() -> None:
    state = state_of(node("n1"), pod("a", ["10.0.0.1"], node="n1"))
    assert texts(state, (Method.NODES,)) == [
        ("warning", "1 Pod cannot be located by the methods of `locate`: default/a")
    ]


@pytest.mark.parametrize(
    ("methods", "text"),
    [
        (NO_PODS, "Pods behind no Service cannot be located: Pods are not known, and podCIDRs are not proven"),
        ((Method.NODES, Method.PODCIDR), "Pods cannot be located: Pods are not known, and podCIDRs are not proven"),
        (
            (Method.NODES, Method.SLICES),
            "Pods behind no Service cannot be located: Pods are not known, and `locate` has no podcidr",
        ),
        (
            (Method.NODES, Method.PODCIDR_UNVERIFIED, Method.SLICES),
            "Pods behind no Service cannot be located on 1 Node without podCIDR, as Pods are not known: n2",
        ),
    ],
)
def test_without_pods_it_is_said_which_clients_stay_unknown(methods: Sequence[Method], text: str) -> None:
    state = state_of(node("n1", pod_cidrs=["10.0.0.0/24"]), node("n2"), needed=["Node"])
    assert texts(state, methods) == [("warning", text)]


def test_without_pods_pod_cidrs_of_all_nodes_are_enough() -> None:
    state = state_of(node("n1", pod_cidrs=["10.0.0.0/24"]), needed=["Node"])
    assert texts(state, (Method.NODES, Method.PODCIDR_UNVERIFIED)) == []


def test_kinds_that_rbac_denies_are_named() -> None:
    assert texts(state_of(needed=["PodLocator"], denied=["PodLocator"])) == [
        ("warning", "RBAC denies PodLocators: clients located by nothing else get every endpoint")
    ]
    state = state_of(denied=["Node", "Pod"])
    assert texts(state) == [
        ("warning", "RBAC denies Nodes and Pods: clients located by nothing else get every endpoint")
    ]


def test_many_pods_are_located_in_steps() -> None:
    state = state_of(node("n1"), *(pod(f"p{at}", [f"10.0.{at // 250}.{at % 250}"], node="n1") for at in range(1000)))
    assert list(unlocated_finding_steps(state, DEFAULT, False)) == [None] * (1000 // PODS)
