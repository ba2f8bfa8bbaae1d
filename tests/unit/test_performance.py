"""docs/reference/performance.md has a figure for each load, and README.md quotes it as it is."""

from xml.etree import ElementTree

import pytest

from bench.compare.document import (
    CPU,
    DOCUMENT,
    INTERPRETERS,
    LATENCY,
    QUOTED,
    TARGETS,
    cells_of,
    marked,
    quotation,
    targets_table,
)
from bench.compare.loads import Row
from bench.programs import COREDNS
from tests.support.documents import ROOT

TEXT = (ROOT / DOCUMENT).read_text()


def table_in(marker: str) -> str:
    """The table of the part between these markers."""
    return "\n".join(line for line in marked(TEXT, marker).splitlines() if line.startswith("|"))


def figures(marker: str, server: str) -> dict[str, str]:
    """The cell of each row in the column of this server."""
    head, *rows = cells_of(table_in(marker))
    return {row[0]: row[head.index(server)] for row in rows}


@pytest.mark.parametrize("server", ["topodns", f"CoreDNS {COREDNS}"])
def test_each_load_has_a_figure(server: str) -> None:
    found = figures(CPU, server)
    assert list(found) == [row.value for row in Row]
    assert [row for row, cell in found.items() if cell == "-"] == []


def test_each_load_has_a_figure_by_the_interpreter_of_the_image() -> None:
    assert [row for row, cell in figures(INTERPRETERS, "Python 3.11.2").items() if cell == "-"] == []


@pytest.mark.parametrize("changes", ["0", "20", "200, of other Services", "200"])
def test_latencies_were_measured_while_endpoints_changed(changes: str) -> None:
    servers = {row[0] for row in cells_of(table_in(LATENCY)) if row[1] == changes}
    assert {"topodns", f"CoreDNS {COREDNS}"} <= servers


def test_the_readme_quotes_the_table() -> None:
    assert marked((ROOT / "README.md").read_text(), QUOTED) == quotation(table_in(CPU))


def test_the_targets_are_beside_the_figures_of_the_table() -> None:
    assert marked(TEXT, TARGETS) == targets_table(table_in(CPU))


def test_the_plot_has_each_load() -> None:
    plot = (ROOT / DOCUMENT).with_suffix(".svg")
    assert f"({plot.name})" in TEXT
    words = " ".join(text for each in ElementTree.fromstring(plot.read_text()).iter() if (text := each.text))
    assert [row.value for row in Row if row.value not in words] == []
