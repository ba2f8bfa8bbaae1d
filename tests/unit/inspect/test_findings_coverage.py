"""The findings about the endpoints of clients, of an audit for the operator."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from tests.support.audits import coverage
from tests.support.model_builders import endpoint, node, service
from topodns.cluster.model import Endpoint, KeySource
from topodns.inspect.findings import coverage_finding_steps
from topodns.inspect.model import NodeGroups, ServiceView
from topodns.topology.guards import guards_of
from topodns.topology.keys import policy_of

H = "kubernetes.io/hostname"
Z = "topology.kubernetes.io/zone"
SOURCES = (KeySource.ANNOTATION, KeySource.FIELD, KeySource.OPENYURT)


def covered(
    *endpoints: Endpoint, keys: str = Z, guards: Mapping[str, Any] = MappingProxyType({}), **zones: str
) -> list[tuple[str, str, str]]:
    """(severity, kind, text) of the findings about a Service with these endpoints, on Nodes in the zones given."""
    nodes = NodeGroups({name: node(name, {Z: one} if one else {"x": ""}) for name, one in zones.items()})
    db = service("db", annotation=keys, **guards)
    families = {size: tuple(one for one in endpoints if len(one.address) == size) for size in (4, 16)}
    view = ServiceView(db.key, policy_of(db, SOURCES), ipv4=families[4], ipv6=families[16], guards=guards_of(db))
    found = coverage_finding_steps(coverage(view, nodes), nodes)
    return [(one.severity.value, one.kind, one.text) for one in found if one is not None]


def test_nodes_without_an_endpoint_under_a_hard_list_are_an_error_and_whole_zones_are_named() -> None:
    found = covered(endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a1"), a1="a", b1="b", b2="b", n1="")
    assert found[0] == (
        "error",
        "uncovered",
        "clients on 3 of 4 Nodes get no endpoint (NODATA), among them all of zone b: b1, b2, n1",
    )


def test_several_whole_zones_are_zones() -> None:
    [(_, _, text)] = covered(endpoint("10.0.0.1", "a1"), a1="a", b1="b", c1="c")
    assert text == "clients on 2 of 3 Nodes get no endpoint (NODATA), all of zones b, c: b1, c1"


def test_a_family_without_an_endpoint_is_a_warning_where_the_other_has_one() -> None:
    found = covered(endpoint("10.0.0.1", "a1"), endpoint("fd00::1", "a1"), endpoint("fd00::2", "b1"), a1="a", b1="b")
    assert found == [
        (
            "warning",
            "uncovered",
            "clients on 1 of 2 Nodes get no IPv4 endpoint (NODATA), though one of the other family, all of zone b: b1",
        )
    ]


def test_many_names_are_cut_and_counted() -> None:
    zones: dict[str, Any] = {f"b{at:02}": "b" for at in range(12)}
    [(_, _, text)] = covered(endpoint("10.0.0.1", "a1"), a1="a", **zones)
    assert text.endswith(
        "clients on 12 of 13 Nodes get no endpoint (NODATA), all of zone b: b00, b01, b02, b03, b04 and 7 more"
    )


def test_a_soft_list_covers_every_node() -> None:
    found = covered(endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a2"), keys=f"{Z},*", a1="a", a2="a", b1="b")
    assert found == []


@pytest.mark.parametrize(
    ("keys", "severity", "left"),
    [(Z, "warning", "no endpoint"), (f"{Z},*", "info", "those of a later key")],
)
def test_an_endpoint_that_alone_serves_a_zone_is_a_single_point(keys: str, severity: str, left: str) -> None:
    some = endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "b1"), endpoint("10.0.0.3", "b1")
    assert covered(*some, keys=keys, a1="a", a2="a", b1="b") == [
        (severity, "single_point", f"10.0.0.1 alone serves clients on 2 Nodes, which without it get {left}")
    ]


def test_single_points_are_one_finding_with_those_that_serve_most_first() -> None:
    some = endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "b1")
    assert covered(*some, a1="a", a2="a", b1="b", b2="b", b3="b") == [
        (
            "warning",
            "single_point",
            "2 endpoints each serve clients on several Nodes alone, which without it get no endpoint: "
            "10.0.0.2 (3 Nodes), 10.0.0.1 (2 Nodes)",
        )
    ]


def test_the_two_addresses_of_a_pod_are_one_single_point() -> None:
    some = endpoint("10.0.0.1", "a1", pod="db-0"), endpoint("fd00::1", "a1", pod="db-0")
    assert covered(*some, a1="a", a2="a") == [
        ("warning", "single_point", "10.0.0.1 alone serves clients on 2 Nodes, which without it get no endpoint")
    ]


def test_an_endpoint_that_alone_serves_its_own_node_is_no_single_point() -> None:
    assert covered(endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a2"), keys=H, a1="a", a2="a") == []


def test_a_farther_key_of_a_hard_list_counts_as_something_left() -> None:
    some = endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a2")
    found = covered(*some, keys=f"{H},{Z}", a1="a", a2="a", a3="a")
    assert [kind for _, kind, _ in found] == []


def test_a_load_far_above_the_mean_is_a_skew() -> None:
    some = [endpoint("10.0.0.1", "a1"), *(endpoint(f"10.0.1.{at}", "b1") for at in range(5))]
    found = covered(*some, keys=f"{Z},*", a1="a", a2="a", a3="a", b1="b")
    assert found[-1] == (
        "warning",
        "skew",
        "10.0.0.1 has 4.5 times the mean load: 3 of 4 clients, if there is one on each Node, and one of 6 endpoints",
    )


def test_a_key_that_decides_for_no_client_is_worth_a_word_unless_it_never_can() -> None:
    """Keys that never can are among the findings about the list itself."""
    some = endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a1"), endpoint("10.0.0.3", "b1")
    idle = ("info", "ineffective", f"no client gets its endpoints by the key {Z} at present")
    assert covered(*some, keys=f"{H},{Z},*", a1="a", b1="b") == [idle]
    assert covered(*some, keys=f"{Z},{H},example.com/rack,*", a1="a", b1="b") == []
    idle = ("info", "ineffective", f"no client gets its endpoints by the keys {Z}, !{Z} at present")
    assert covered(*some, keys=f"{H},{Z},!{Z},*", a1="a", b1="b") == [idle]


def test_a_key_that_only_some_nodes_have_is_worth_a_word() -> None:
    some = endpoint("10.0.0.1", "a1"), endpoint("10.0.0.3", "b1")
    text = f"1 of 3 Nodes lack the label {Z}, so it matches nothing there: c1"
    found = covered(*some, keys=f"{Z},*", a1="a", b1="b", c1="")
    assert ("info", "partial", text) in found


def test_a_service_without_ready_endpoints_is_empty_and_nothing_else() -> None:
    assert covered(a1="a") == [("error", "empty", "no endpoint is ready: NXDOMAIN for every client")]


def test_services_without_a_valid_policy_have_no_coverage_to_judge() -> None:
    assert covered(endpoint("10.0.0.1", "a1"), keys="not a label key", a1="a", b1="b") == []
    assert covered(endpoint("10.0.0.1", "a1"), keys="none", a1="a", b1="b") == []


def test_a_key_for_near_alone_has_findings_about_that_name() -> None:
    some = endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "a1")
    assert covered(*some, a1="a", b1="b", guards={"apply_to": "near"}) == [
        (
            "error",
            "uncovered",
            "_near.db: clients on 1 of 2 Nodes get no endpoint (NODATA), all of zone b: b1",
        )
    ]
    assert covered(a1="a", guards={"apply_to": "near"}) == [
        ("error", "empty", "no endpoint is ready: NXDOMAIN for every client")
    ]


def test_a_zone_with_too_few_endpoints_is_no_single_point_unless_its_endpoint_is_the_last_resort() -> None:
    some = endpoint("10.0.0.1", "a1"), endpoint("10.0.0.2", "b1"), endpoint("10.0.0.3", "b1")
    guards = {"min_endpoints": "2"}
    assert covered(*some, keys=f"{Z},*", guards=guards, a1="a", a2="a", b1="b") == []
    text = "10.0.0.1 alone serves clients on 2 Nodes, which without it get no endpoint"
    assert covered(*some, keys=Z, guards=guards, a1="a", a2="a", b1="b") == [("warning", "single_point", text)]


def test_a_bound_of_one_makes_no_single_point() -> None:
    some = [endpoint(f"10.0.0.{at}", f"a{at}") for at in range(4)]
    names: dict[str, Any] = {f"a{at}": "a" for at in range(4)}
    found = covered(*some, keys=Z, guards={"max_endpoints": "1"}, **names)
    assert {kind for _, kind, _ in found} <= {"skew"}
    alone = endpoint("10.0.0.1", "a1")
    [(_, kind, text)] = covered(alone, keys=Z, guards={"max_endpoints": "1"}, **names)
    assert (kind, text) == (
        "single_point",
        "10.0.0.1 alone serves clients on 4 Nodes, which without it get no endpoint",
    )


def test_a_bound_without_keys_is_judged_by_its_load() -> None:
    some = [endpoint(f"10.0.0.{at}", "a1") for at in range(9)]
    [(severity, kind, text)] = covered(*some, keys="none", guards={"max_endpoints": "1"}, a1="a", a2="a")
    assert (severity, kind) == ("warning", "skew")
    assert text.endswith("if there is one on each Node, and one of 9 endpoints")
    assert covered(*some, keys="none", a1="a") == []
