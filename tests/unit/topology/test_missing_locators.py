"""Which locators a server waits for before it replaces another one."""

from collections.abc import Sequence

import pytest

from tests.support.forged_slices import N1, N2
from tests.support.model_builders import node_locator, pod_locator
from topodns.cluster.model import ClusterObject, Kind, Replaced
from topodns.cluster.state import ClusterState
from topodns.topology.client_locator import Method, missing_locators

BY_NODES = (Method.NODES, Method.PODCIDR, Method.NODELOCATOR, Method.SLICES)
KINDS: tuple[Kind, ...] = ("Node", "NodeLocator", "PodLocator")


def state_of(*listed: ClusterObject) -> ClusterState:
    state = ClusterState(frozenset(KINDS))
    for kind in KINDS:
        state.apply(Replaced(kind, tuple(each for each in listed if type(each).__name__ == kind)), 0)
    return state


@pytest.mark.parametrize(
    ("listed", "missing"),
    [
        pytest.param((N1, N2), "NodeLocators: 2 of 2 Nodes have none", id="none yet"),
        pytest.param((N1, N2, node_locator("n2")), "NodeLocators: 1 of 2 Nodes have none", id="not all yet"),
        pytest.param((N1, N2, node_locator("n3")), "NodeLocators: 2 of 2 Nodes have none", id="of another Node"),
        pytest.param((N1, N2, node_locator("n1"), node_locator("n2")), "", id="all"),
    ],
)
def test_each_node_needs_a_node_locator(listed: Sequence[ClusterObject], missing: str) -> None:
    assert missing_locators(state_of(*listed), BY_NODES) == missing


def test_where_nodes_are_not_watched_one_node_locator_is_enough() -> None:
    methods = (Method.NODELOCATOR, Method.SLICES)
    assert missing_locators(state_of(), methods) == "NodeLocators: there is none"
    assert missing_locators(state_of(node_locator("n1")), methods) == ""


def test_of_pod_locators_one_is_enough() -> None:
    methods = (Method.NODES, Method.PODLOCATOR)
    there = pod_locator("p", ["10.1.1.1"], "n1")
    assert missing_locators(state_of(N1, N2), methods) == "PodLocators: there is none"
    assert missing_locators(state_of(N1, N2, there), methods) == ""
    assert missing_locators(state_of(N1, N2, there), (Method.PODLOCATOR, Method.NODELOCATOR)) == ""


@pytest.mark.parametrize(
    "methods",
    [
        pytest.param((Method.NODES, Method.PODCIDR, Method.SLICES), id="no locators"),
        pytest.param((*BY_NODES, Method.PODS), id="Pods too"),
        pytest.param((Method.NODES, Method.PODCIDR_UNVERIFIED, Method.PODLOCATOR), id="every podCIDR too"),
    ],
)
def test_none_is_missing_where_clients_are_located_without(methods: Sequence[Method]) -> None:
    assert missing_locators(state_of(N1, N2), methods) == ""
