"""The dashboards of the chart: `make manifests` writes charts/topodns/dashboards.

docs/operate/dashboards.md describes them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support.chart.grafana import Board, dashboard_json
from tests.support.chart.helm import CHART
from tests.support.chart.node_cache_board import NODE_CACHE
from tests.support.chart.topology_board import TOPOLOGY

FOLDER: Final = CHART / "dashboards"
BOARDS: Final[Mapping[str, Board]] = {"topology": TOPOLOGY, "node-cache": NODE_CACHE}


def board_files() -> Mapping[Path, str]:
    """The files of the chart's folder of dashboards, by name."""
    return {FOLDER / f"{name}.json": dashboard_json(board) for name, board in BOARDS.items()}
