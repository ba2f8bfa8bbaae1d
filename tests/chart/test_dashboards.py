"""The dashboards as Grafana's sidecar finds them."""

import json
from typing import Any

import pytest

from tests.support.chart.boards import BOARDS, FOLDER
from tests.support.chart.helm import NAMESPACE, Object, rendered

ON: dict[str, Any] = {"prometheus": {"dashboards": {"enabled": True}}}
NODE_CACHE: dict[str, Any] = {"nodeCache": {"enabled": True, "intercept": False}}


def config_maps(values: dict[str, Any]) -> dict[str, Object]:
    """By the name of the board."""
    found = [each for each in rendered(values) if "-dashboard-" in each["metadata"]["name"]]
    assert all(each["kind"] == "ConfigMap" for each in found)
    return {each["metadata"]["name"].removeprefix("topodns-dashboard-"): each for each in found}


def test_without_being_asked_for_there_are_none() -> None:
    assert config_maps(NODE_CACHE) == {}


@pytest.mark.parametrize("name", BOARDS)
def test_a_config_map_has_the_board_as_it_is_in_the_chart(name: str) -> None:
    board = config_maps({**ON, **NODE_CACHE})[name]
    assert board["metadata"]["namespace"] == NAMESPACE
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    ((file, text),) = board["data"].items()
    assert file == f"topodns-{name}.json"
    assert json.loads(text) == json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def test_dashboards_are_rendered_for_installed_parts_only() -> None:
    assert config_maps(ON).keys() == {"topology"}
    assert config_maps({**ON, **NODE_CACHE}).keys() == {"topology", "node-cache"}
    assert config_maps({**ON, **NODE_CACHE, "deployment": {"enabled": False}}).keys() == {"node-cache"}


def test_a_sidecar_that_looks_elsewhere_finds_them() -> None:
    where = {
        "enabled": True,
        "labels": {"boards": "yes"},
        "annotations": {"grafana_folder": "DNS"},
        "namespace": "monitoring",
    }
    metadata = config_maps({"prometheus": {"dashboards": where}})["topology"]["metadata"]
    assert metadata["namespace"] == "monitoring"
    assert metadata["labels"]["boards"] == "yes"
    assert metadata["annotations"] == {"grafana_folder": "DNS"}
