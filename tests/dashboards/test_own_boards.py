"""The chart's own dashboards: a real Prometheus has something to draw for every query in them."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.chart.boards import FOLDER
from tests.support.dashboard_queries import drawn, filled_in
from tests.support.dashboard_targets import NODE_JOB, SERVER_JOB
from tests.support.prometheus import Prometheus

MOST = {"percentunit": 1.001, "s": 86400.0, "reqps": 1e5, "ops": 1e5, "short": 1e6, "bytes": 2.0**30}
# What is 0 in the scenes, by the panel's title and the query's letter.
AT_REST = {
    "Events written on Services A": "the one Event is written before Prometheus first looks",
    "Lists and repairs B": "no event is lost, and the list that would show it comes after half an hour",
    "Nodes by switch B": "the node is switched on",
    "Setup errors A": "nothing is wrong with the node",
    "Answered from memory B": "no answer that is asked for outlives its TTL",
    "Hits and misses C": "nothing is asked often enough to be refreshed ahead",
    "Evictions A": "the cache is not full",
    "Dropped A": "hardly anything waits",
    "Waiting for upstreams A": "nothing waits in the end",
}


def queries(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each query of a board, with its panel."""
    board = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel, target


def cases(name: str) -> list[Any]:
    return [pytest.param(panel, target, id=f"{panel['title']} {target['refId']}") for panel, target in queries(name)]


def shown(prometheus: Prometheus, panel: dict[str, Any], target: dict[str, Any], job: str) -> None:
    """That there is something, that it is within the panel's bounds, and that the legend's labels are there."""
    defaults = panel["fieldConfig"]["defaults"]
    found = drawn(prometheus, target["expr"], job, defaults.get("max", MOST[defaults["unit"]]) * 1.001)
    assert found, filled_in(target["expr"], job)
    at_rest = f"{panel['title']} {target['refId']}" in AT_REST
    assert at_rest or any(sample.value for sample in found), found
    for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
        assert all(sample.labels.get(label) for sample in found), (label, found)
    if not target["legendFormat"]:
        assert panel["type"] == "table" or len(found) == 1


@pytest.mark.parametrize(("panel", "target"), cases("topology"))
def test_the_board_of_topology_has_something_to_draw(
    server: Prometheus, panel: dict[str, Any], target: dict[str, Any]
) -> None:
    shown(server, panel, target, SERVER_JOB)


@pytest.mark.parametrize(("panel", "target"), cases("node-cache"))
def test_the_board_of_node_caches_has_something_to_draw(
    node_cache: Prometheus, panel: dict[str, Any], target: dict[str, Any]
) -> None:
    shown(node_cache, panel, target, NODE_JOB)


@pytest.mark.parametrize("name", ["topology", "node-cache"])
def test_the_variables_find_the_job_and_the_instance(name: str, request: pytest.FixtureRequest) -> None:
    fixture, job = {"topology": ("server", SERVER_JOB), "node-cache": ("node_cache", NODE_JOB)}[name]
    prometheus: Prometheus = request.getfixturevalue(fixture)
    board = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    for variable in board["templating"]["list"][1:3]:
        selector, label = variable["definition"].removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        values = {series[label] for series in prometheus.series(filled_in(selector, job))}
        assert label == variable["name"]
        assert values
        assert (values == {job}) is (label == "job")


def test_the_shares_of_outcomes_are_a_whole(server: Prometheus) -> None:
    (target,) = (target for panel, target in queries("topology") if panel["title"] == "Answers by outcome")
    shares = {sample.labels["outcome"]: sample.value for sample in drawn(server, target["expr"], SERVER_JOB, 1)}
    assert shares.keys() >= {"matched", "no_match", "unknown_client", "unknown_client_all", "denied"}
    assert sum(shares.values()) == pytest.approx(1)


def test_misses_name_the_services_and_strangers_their_network(server: Prometheus) -> None:
    by_title = {panel["title"]: target["expr"] for panel, target in queries("topology")}
    missed = drawn(server, by_title["Answers with nothing, by Service"], SERVER_JOB, 1e5)
    assert {sample.labels["name"] for sample in missed} == {"monitoring/agent", "shop/broken"}
    strangers = drawn(server, by_title["Where unlocated clients are"], SERVER_JOB, 1e5)
    assert {sample.labels["prefix"] for sample in strangers} == {"127.99.0.0/24"}
