"""Zones that slices have for endpoints, beside those of their Nodes."""

import pytest

from tests.support.model_builders import endpoint, endpoint_slice, node, service
from tests.unit.cluster.findings.scene import KINDS, state_of
from topodns.cluster.findings.endpoint_nodes import endpoint_node_findings, endpoint_zone_findings
from topodns.cluster.findings.finding import MAX_NAMED, Finding, Severity
from topodns.cluster.model import ZONE_LABEL, Endpoint
from topodns.cluster.state import ClusterState

DB = service("db", annotation=f"{ZONE_LABEL},*")
N1, N2 = node("n1", {ZONE_LABEL: "eu-1a"}), node("n2", {ZONE_LABEL: "eu-1b"})


def found(state: ClusterState) -> list[Finding]:
    """The findings in an audit; those in an explanation are equal."""
    policy = state.policies.get(DB.key)
    of_nodes = [each for each in endpoint_node_findings(state, DB.key, policy, set()) if each is not None]
    of_zones = [each for each in endpoint_zone_findings(state, DB.key, policy) if each is not None]
    assert of_zones == [each for each in of_nodes if each.kind == "other_zone"]
    return of_zones


def of(*endpoints: Endpoint) -> list[Finding]:
    return found(state_of(N1, N2, DB, endpoint_slice("db", *endpoints)))


def test_an_endpoint_with_another_zone_than_its_node_is_named_with_the_one_that_counts() -> None:
    (one,) = of(endpoint("10.1.1.30", "n2", topology_zone="eu-1a"), endpoint("10.1.1.20", "n1", topology_zone="eu-1a"))
    text = "ready endpoints have zone eu-1a, but their Node n2 is in eu-1b, which counts"
    assert (one.text, one.text_with_names) == (text, f"{text} (endpoint 10.1.1.30)")
    assert (one.severity, one.may_pass, one.node_names) == (Severity.WARNING, True, ("n2",))


def test_a_zone_in_the_deprecated_topology_of_an_endpoint_is_compared_as_well() -> None:
    (one,) = of(endpoint("10.1.1.30", "n2", topology={ZONE_LABEL: "eu-1a"}))
    assert one.kind == "other_zone"


@pytest.mark.parametrize(
    "one",
    [
        endpoint("10.1.1.30", "n2", topology_zone="eu-1b"),
        endpoint("10.1.1.30", "n2"),
        endpoint("10.1.1.30", "n2", topology_zone="eu-1a", ready=False),
        endpoint("10.1.1.30", "n3", topology_zone="eu-1a"),  # no Node: the zone of the slice counts
        endpoint("10.1.1.30", topology_zone="eu-1a"),
    ],
)
def test_a_zone_that_no_node_contradicts_is_no_mistake(one: Endpoint) -> None:
    assert of(one) == []


def test_a_node_without_a_zone_contradicts_none_as_a_finding_about_labels_names_it() -> None:
    slices = endpoint_slice("db", endpoint("10.1.1.30", "n3", topology_zone="eu-1a"))
    assert found(state_of(N1, node("n3"), DB, slices)) == []


@pytest.mark.parametrize("keys", [None, "kubernetes.io/hostname,*", "*", "a,,b"])
def test_zones_are_compared_only_where_one_is_a_key(keys: str | None) -> None:
    slices = endpoint_slice("db", endpoint("10.1.1.30", "n2", topology_zone="eu-1a"))
    assert found(state_of(N1, N2, service("db", annotation=keys), slices)) == []


def test_zones_are_compared_once_every_kind_is_listed() -> None:
    slices = endpoint_slice("db", endpoint("10.1.1.30", "n2", topology_zone="eu-1a"))
    assert found(state_of(N1, N2, DB, slices, kinds=KINDS[1:])) == []


def test_the_text_stays_while_pods_come_and_go() -> None:
    few = of(endpoint("10.1.1.30", "n2", topology_zone="eu-1a"))
    many = of(*(endpoint(f"10.1.1.{at}", "n2", topology_zone="eu-1a") for at in range(40)))
    assert few == many
    assert many[0].names == tuple(f"10.1.1.{at}" for at in range(MAX_NAMED))


def test_of_many_nodes_the_first_are_named() -> None:
    names = [f"w{at:02}" for at in range(40)]
    slices = [
        endpoint_slice("db", endpoint(f"10.1.1.{at}", name, topology_zone="eu-1a"), name=f"db-{at}")
        for at, name in enumerate(names)
    ]
    nodes = [node(name, {ZONE_LABEL: "eu-1b"}) for name in names]
    some = found(state_of(*nodes, DB, *slices))
    assert [each.node_names for each in some] == [(name,) for name in names[:MAX_NAMED]]
