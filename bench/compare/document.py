"""The texts that `make bench-compare` writes into documents: two tables and a plot, and three ratios in README.md.

The text between `<!-- NAME: begin -->` and `<!-- NAME: end -->` is replaced; all other text stays.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.compare.figures import Changes, Figures, Latency, Spread
from bench.compare.loads import Row
from bench.programs import COREDNS

CPU: Final = "bench-compare: CPU"
INTERPRETERS: Final = "bench-compare: interpreters"
LATENCY: Final = "bench-compare: latency"
MACHINE: Final = "bench-compare: machine"
QUOTED: Final = "bench-compare: quoted"  # in README.md
TARGETS: Final = "bench-compare: targets"
QUOTED_ROWS: Final = {
    Row.KEYS: "repeated queries where topology keys decide",
    Row.SERVICES_ONCE: "the first query for a Service",
    Row.FORWARDED_UDP: "a name outside the cluster that is forwarded over UDP",
}
MICROSECONDS: Final = {Row.SERVICES_ONCE: 20}
"""Targets of topodns's CPU time for an answer."""

RATIOS: Final = {
    Row.FORWARDED_UDP: 0.9,
    Row.FORWARDED_TCP: 0.45,
    Row.FORWARDED_CACHE: 0.4,
    Row.NODE_ONCE: 0.45,
}
"""Targets of its ratio to CoreDNS's."""

MISSING: Final = "-"
PLOT_TITLE: Final = "CPU of an answer in microseconds, least to greatest of all rounds, on a logarithmic scale"
DOCUMENT: Final = "docs/reference/performance.md"
MEASUREMENTS: Final = "docs/develop/measurements.md"  # has the table by interpreter

_OWN_COLUMN: Final = 2  # topodns's, after the row's title and the floor
_RATIO_COLUMN: Final = -2  # that to CoreDNS; the last one is that to the floor
_WIDTH: Final = 120  # columns of a document


def renewed(text: str, name: str, body: str) -> str:
    """The document with `body` between the two markers of this name. Raises ValueError if it lacks one of them."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"no {begin if not found else end} in the document, or not in this order")
    return f"{before}{begin}\n{body.strip()}\n{end}{after}"


def marked(text: str, name: str) -> str:
    """The text between the markers of this name. Raises ValueError if the document lacks them."""
    found = re.search(rf"<!-- {re.escape(name)}: begin -->\n(.*)\n<!-- {re.escape(name)}: end -->", text, re.DOTALL)
    if found is None:
        raise ValueError(f"no text marked {name!r} in the document")
    return found[1]


def cpu_table(figures: Figures[Row], servers: Sequence[str], own: str, peer: str, floor: str) -> str:
    """A Markdown table: for each load that was measured, the median (least..greatest) of each server, and two ratios.

    These are of the server `own`: to `peer`, and to `floor`.
    """
    titles = (floor, *servers, f"{own} / {peer}", f"{own} / {floor}")
    lines = [_line("CPU of an answer, us", *titles), "|" + "---|" * (len(titles) + 1)]
    for row in Row:
        spreads = [Spread.of(figures.values(row, server)) for server in (floor, *servers)]
        if any(spreads):
            ratios = (figures.ratio(row, own, other) for other in (peer, floor))
            lines.append(_line(row.value, *map(_spread, spreads), *map(_ratio, ratios)))
    return "\n".join(lines)


def latency_table(latencies: Mapping[tuple[Changes, str], Latency]) -> str:
    """A Markdown table with a row for each of the changes and servers, in the order of the changes."""
    heads = ("changes a second", "p50", "p90", "p99", "p99.9", "CPU of an answer", "without an answer")
    lines = [_line("latency, us", *heads), "|" + "---|" * (len(heads) + 1)]
    for (changes, server), found in sorted(latencies.items(), key=lambda item: item[0][0]):
        figures = (found.p50, found.p90, found.p99, found.p999, found.cpu)
        lines.append(_line(server, str(changes), *(f"{figure:,.0f}" for figure in figures), f"{found.lost:g}"))
    return "\n".join(lines)


def cells_of(table: str) -> list[list[str]]:
    """The cells of each line of a table but the line below its head."""
    lines = table.splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (*lines[:1], *lines[2:])]


def ratios_to_peer(table: str) -> Mapping[str, str]:
    """The column of ratios to CoreDNS, of a table that `cpu_table` made, by the title of the row."""
    return {cells[0]: cells[_RATIO_COLUMN] for cells in cells_of(table)[1:]}


def targets_table(table: str) -> str:
    """A Markdown table of the targets, each beside the figure in a table that `cpu_table` made. Raises KeyError where
    that table lacks one of their rows.
    """
    ratios = ratios_to_peer(table)
    medians = {cells[0]: cells[_OWN_COLUMN].partition(" ")[0] for cells in cells_of(table)[1:]}
    lines = [_line("CPU of an answer", "at most", "measured"), "|---|---|---|"]
    lines += [_line(row.value, f"{most} us", f"{medians[row.value]} us") for row, most in MICROSECONDS.items()]
    lines += [_line(row.value, f"{most} x CoreDNS", f"{ratios[row.value]} x") for row, most in RATIOS.items()]
    return "\n".join(lines)


def with_plot(table: str) -> str:
    """The table, and the plot that is beside the document."""
    return f"{table}\n\n![{PLOT_TITLE}]({Path(DOCUMENT).with_suffix('.svg').name})"


def quotation(table: str) -> str:
    """The sentence of README.md. Raises KeyError where the table lacks one of its rows."""
    ratios = ratios_to_peer(table)
    quoted = [f"{ratios[row.value]} for {what}" for row, what in QUOTED_ROWS.items()]
    figures = f"{', '.join(quoted[:-1])}, {quoted[-1]}"
    head = f"CPU of an answer on one core, relative to CoreDNS {COREDNS} (below 1: less CPU)"
    return wrapped(f"{head}: {figures} ([all rows]({DOCUMENT})).")


def wrapped(text: str) -> str:
    """The text in lines of at most 120 columns, broken between words only."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".lstrip()
    return "\n".join([*lines, line])


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return MISSING
    middle, least, greatest = (f"{value:.3g}" if value < 1000 else f"{value:.0f}" for value in spread)
    return f"{middle} ({least}..{greatest})"


def _ratio(ratio: float | None) -> str:
    return MISSING if ratio is None else f"{ratio:.2f}"
