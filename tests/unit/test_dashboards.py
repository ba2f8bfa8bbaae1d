"""The chart's dashboards have the fields that Grafana reads, existing metrics, and a description in the manual."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest

from tests.support.chart.boards import BOARDS, FOLDER, board_files
from tests.support.chart.grafana import Board, Panel, Query
from tests.support.server_process import ROOT

ROW = re.compile(r"^\| `((?:coredns|topodns|process)_\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)
METRICS = {
    name: (kind, {label.strip() for label in labels.split(",")} - {""})
    for file in ("reference/metrics.md", "operate/node-cache.md")
    for name, kind, labels in ROW.findall((ROOT / "docs" / file).read_text(encoding="utf-8"))
}
MANUAL = (ROOT / "docs/operate/dashboards.md").read_text(encoding="utf-8")
ASKED = re.compile(r"\b((?:coredns|topodns|process)_\w+)\{([^}]*)\}")
UNITS = {"short", "s", "percentunit", "reqps", "ops", "bytes"}  # of those that Grafana knows
OF_TARGETS = {"job", "instance"}
COLUMNS = 24

each_board = pytest.mark.parametrize("name", BOARDS)
each_query = pytest.mark.parametrize(
    ("panel", "query"),
    [
        pytest.param(panel, query, id=f"{name}: {panel.title}")
        for name, board in BOARDS.items()
        for panel in board.panels()
        for query in panel.queries
    ],
)


def loaded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_the_files_equal_the_output_of_make_manifests() -> None:
    assert {path: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == board_files()


@each_board
def test_a_board_has_the_fields_of_grafana_s_model(name: str) -> None:
    board = loaded(name)
    assert re.fullmatch(r"[\w-]{1,40}", board["uid"])
    assert board["title"] == BOARDS[name].title
    assert board["schemaVersion"] >= 36  # of Grafana 9: data sources as objects
    assert "id" not in board  # Grafana gives its own
    assert {"annotations", "panels", "templating", "time", "refresh"} <= board.keys()
    assert len({each["uid"] for each in map(loaded, BOARDS)}) == len(BOARDS)


@each_board
def test_the_variables_build_on_those_before_them(name: str) -> None:
    source, job, instance, *typed = loaded(name)["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    for variable, label in ((job, "job"), (instance, "instance")):
        assert (variable["name"], variable["type"]) == (label, "query")
        assert variable["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert variable["query"]["query"] == variable["definition"]
        assert variable["multi"] is variable["includeAll"] is True
    for variable in typed:
        assert (variable["type"], variable["current"]["value"]) == ("textbox", variable["query"])
        assert variable["options"] == [variable["current"]]
    assert job["definition"] == f"label_values({BOARDS[name].metric}, job)"
    assert instance["definition"] == f'label_values({BOARDS[name].metric}{{job=~"$job"}}, instance)'


@each_board
def test_panels_lie_side_by_side_and_have_ids_of_their_own(name: str) -> None:
    panels = loaded(name)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    taken = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < COLUMNS
    assert all((one["y"], one["x"]) < (other["y"], other["x"]) for one, other in pairwise(places))


@each_board
def test_a_panel_has_a_source_a_unit_and_queries_with_letters_of_their_own(name: str) -> None:
    panels = [panel for panel in loaded(name)["panels"] if panel["type"] != "row"]
    assert panels
    for panel in panels:
        assert panel["type"] in {"timeseries", "table"}
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        letters = [target["refId"] for target in panel["targets"]]
        assert letters
        assert len(set(letters)) == len(letters)
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert target.get("instant", False) is not target.get("range", False)
            assert "SEL" not in target["expr"]


@each_query
def test_a_query_asks_for_metrics_that_are_there_by_labels_that_they_have(panel: Panel, query: Query) -> None:
    asked = ASKED.findall(query.text)
    assert asked
    assert len(asked) == len(re.findall(r"\b(?:coredns|topodns|process)_\w+", query.text))
    labels: set[str] = set()
    for metric, selector in asked:
        name = re.sub(r"_(bucket|count|sum)$", "", metric) if metric not in METRICS else metric
        kind, own = METRICS[name]
        labels |= own
        assert 'job=~"$job"' in selector
        assert 'instance=~"$instance"' in selector
        assert set(re.findall(r"(\w+)(?:=|!=)", selector)) <= own | OF_TARGETS
        assert (f"{metric}{{{selector}}}[" in query.text) is (kind != "gauge")  # what only grows is drawn as a rate
    grouped = {label.strip() for found in re.findall(r"by \(([\w, ]+)\)", query.text) for label in found.split(",")}
    assert grouped <= labels | OF_TARGETS | {"le"}
    legend = set(re.findall(r"{{(\w+)}}", query.legend))
    assert legend <= (grouped or labels | OF_TARGETS)


@each_board
def test_lines_of_a_panel_have_legends_and_tables_one_query(name: str) -> None:
    for panel in BOARDS[name].panels():
        assert len({query.legend for query in panel.queries}) == len(panel.queries)
        assert all(query.legend for query in panel.queries) is not panel.table
        assert not panel.table or len(panel.queries) == 1


def section(board: Board) -> str:
    return MANUAL.partition(f"\n## {board.title}\n")[2].partition("\n## ")[0]


@each_board
def test_the_manual_describes_each_panel_in_its_order(name: str) -> None:
    got = re.findall(r"^\| (.+?) \| .+ \|$", section(BOARDS[name]), re.MULTILINE)
    assert got[0] == "panel"
    assert got[1:] == [panel.title for panel in BOARDS[name].panels()]
