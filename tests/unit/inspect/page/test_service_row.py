"""A Service as a row: what each cell counts, and how bad the row is."""

import json
from collections.abc import Sequence

import pytest

from tests.support.model_builders import node, packed
from topodns.cluster.model import ZONE_LABEL, Endpoint, InvalidPolicy, KeySource, ObjectKey, Policy
from topodns.inspect.model import NodeGroups, ServiceView
from topodns.inspect.page.service import (
    EMPTY,
    MAX_COLUMNS,
    PROBLEM,
    UNCOVERED,
    RowScope,
    ServiceRow,
    ZoneColumns,
    service_row_steps,
)
from topodns.plugins.topology.settings import TopologySettings
from topodns.time_slices import do_at_once
from topodns.topology.select import OnInvalid

KEY = ObjectKey("shop", "cache")
HOST = "kubernetes.io/hostname"
NODES = {
    name: node(name, {HOST: name, ZONE_LABEL: zone} if zone else {HOST: name})
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("n1", ""))
}


def row(
    policy: Policy | InvalidPolicy | None,
    on: Sequence[str] = (),
    governing: bool = False,
    on_invalid: OnInvalid = OnInvalid.IGNORE,
) -> ServiceRow:
    """The row of a Service with an endpoint on each of these Nodes."""
    endpoints = tuple(Endpoint(packed(f"10.0.0.{number}"), node_name=name) for number, name in enumerate(on, 1))
    view = ServiceView(KEY, policy, governing, endpoints)
    made = do_at_once(
        service_row_steps(
            KEY,
            view,
            (),
            RowScope(NodeGroups(NODES), ZoneColumns(NODES.values()), TopologySettings(on_invalid=on_invalid)),
        )
    )
    assert isinstance(made, ServiceRow)
    return made


def cells(made: ServiceRow) -> dict[str, tuple[int, int, int, int]]:
    """(endpoints, nodes, covered, near) of each zone."""
    return {name: (one.endpoints, one.nodes, one.covered, one.near) for name, one in made.zones.items()}


def keys(*names: str, warnings: tuple[str, ...] = ()) -> Policy:
    return Policy(names, KeySource.ANNOTATION, warnings=warnings)


def test_a_cell_has_endpoints_and_nodes_that_are_covered_and_near() -> None:
    made = row(keys(ZONE_LABEL), ["a1", "a1", "n1"])
    assert cells(made) == {"a": (2, 2, 2, 2), "b": (0, 1, 0, 0), "": (1, 1, 0, 0)}
    assert json.loads(made.text)["zones"] == {"a": [2, 2, 2, 2], "b": [0, 1, 0, 0], "": [1, 1, 0, 0]}
    assert made.severity == UNCOVERED


def test_clients_that_get_endpoints_from_anywhere_are_covered_and_not_near() -> None:
    made = row(keys(HOST, "*"), ["a1"])
    assert cells(made) == {"a": (1, 2, 2, 1), "b": (0, 1, 1, 0), "": (0, 1, 1, 0)}
    assert made.severity == 0


@pytest.mark.parametrize(
    ("policy", "on", "severity", "problems"),
    [
        (keys("*"), ["a1"], 0, []),
        (
            keys("*", warnings=("keys after * are ignored: x",)),
            ["a1"],
            PROBLEM,
            ["keys after * are ignored: x"],
        ),
        (
            InvalidPolicy(KeySource.FIELD, "expected a label key"),
            ["a1"],
            PROBLEM,
            ["spec.topologyKeys: expected a label key; the Service stays unfiltered"],
        ),
        (keys("*"), [], EMPTY, []),
        (None, ["a1"], 0, []),
    ],
)
def test_the_severity_and_the_problems_of_a_row(
    policy: Policy | InvalidPolicy | None, on: list[str], severity: int, problems: list[str]
) -> None:
    made = row(policy, on)
    assert (made.severity, json.loads(made.text)["problems"]) == (severity, problems)


def test_an_invalid_policy_that_is_denied_covers_nobody() -> None:
    denied = row(InvalidPolicy(KeySource.FIELD, "x"), ["a1"], on_invalid=OnInvalid.DENY)
    assert denied.severity == UNCOVERED
    assert "no client gets an endpoint" in denied.text
    assert cells(row(InvalidPolicy(KeySource.FIELD, "x"), ["a1"]))["a"] == (1, 2, 2, 0)


def test_keys_on_a_governing_service_are_a_problem() -> None:
    (problem,) = json.loads(row(keys(HOST), ["a1"], governing=True).text)["problems"]
    assert problem.startswith("topology keys on the governing Service of a StatefulSet hide its members")


def test_keys_come_with_their_source_and_hints_have_a_word() -> None:
    assert json.loads(row(keys(HOST, "*"), ["a1"]).text) | {"zones": 0} == {
        "id": "shop/cache",
        "keys": [HOST, "*"],
        "source": "annotation",
        "guards": {},
        "problems": [],
        "endpoints": 1,
        "zones": 0,
        "others": None,
    }
    assert json.loads(row(Policy((), KeySource.HINTS), ["a1"]).text)["keys"] == ["hints"]


def test_keys_on_a_service_that_is_not_headless_are_a_row_without_cells() -> None:
    made = do_at_once(
        service_row_steps(
            KEY,
            None,
            ("has keys, but is not headless",),
            RowScope(NodeGroups(NODES), ZoneColumns(NODES.values()), TopologySettings()),
        )
    )
    assert (made.severity, made.zones) == (PROBLEM, {})
    assert json.loads(made.text)["problems"] == ["has keys, but is not headless"]


def test_of_a_thousand_zones_fifty_have_a_cell_and_the_others_share_one() -> None:
    # zone-0000 has 1,002 Nodes, zone-1001 has one; zone-1002 has an endpoint, and no Node
    few = [node(f"n{zone:04}", {ZONE_LABEL: f"zone-{zone:04}"}) for zone in range(1002)]
    more = [node(f"m{at:04}", {ZONE_LABEL: f"zone-{at % 60:04}"}) for at in range(600)]
    nodes = {each.name: each for each in (*few, *more)}
    endpoints = (
        Endpoint(packed("10.0.0.1"), node_name="n0000"),
        Endpoint(packed("10.0.0.2"), node_name="n1001"),
        Endpoint(packed("10.0.0.3"), topology_zone="zone-1002"),
    )
    columns = ZoneColumns(nodes.values())
    view = ServiceView(KEY, keys(ZONE_LABEL), False, endpoints)
    made = do_at_once(service_row_steps(KEY, view, (), RowScope(NodeGroups(nodes), columns, TopologySettings())))
    written = json.loads(made.text)
    assert written["zones"].keys() == {f"zone-{at:04}" for at in range(50)}
    assert written["zones"]["zone-0000"] == [1, 11, 11, 11]
    assert written["others"] == [2, 1602 - 50 * 11, 1, 1]
    assert (len(written["zones"]), len(made.zones), columns.others) == (MAX_COLUMNS, 1003, True)
    assert len(made.text) < 4000


def test_zones_without_a_node_have_columns_while_there_is_room() -> None:
    scope = RowScope(NodeGroups({}), ZoneColumns([]), TopologySettings())
    endpoints = tuple(Endpoint(packed(f"10.0.0.{at}"), topology_zone=f"z{at:02}") for at in range(MAX_COLUMNS + 2))
    view = ServiceView(KEY, keys("*"), False, endpoints)
    written = json.loads(do_at_once(service_row_steps(KEY, view, (), scope)).text)
    assert (len(written["zones"]), written["others"]) == (MAX_COLUMNS, [2, 0, 0, 0])
    again = ServiceView(KEY, keys("*"), False, endpoints[:3])
    written = json.loads(do_at_once(service_row_steps(KEY, again, (), scope)).text)
    assert (list(written["zones"]), written["others"]) == (["z00", "z01", "z02"], None)
