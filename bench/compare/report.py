"""The figures of all rounds as text for each part of the documents, and the update of these documents."""

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.compare.contenders import FLOOR, TOPODNS
from bench.compare.document import (
    CPU,
    DOCUMENT,
    INTERPRETERS,
    LATENCY,
    MACHINE,
    MEASUREMENTS,
    PLOT_TITLE,
    QUOTED,
    TARGETS,
    cpu_table,
    latency_table,
    quotation,
    renewed,
    targets_table,
    with_plot,
    wrapped,
)
from bench.compare.figures import Spread, median_latency
from bench.compare.loads import Row
from bench.compare.plot import Line, svg
from bench.compare.rounds import Found
from bench.programs import COREDNS
from release.source import ROOT

Texts = Mapping[str, str]
"""By marker."""

_PEER: Final = f"CoreDNS {COREDNS}"


def beside_servers(found: Found, servers: Sequence[str], rounds: int, interpreter: str) -> Texts:
    """The texts about topodns, run by this interpreter ("Python 3.13.5"), beside the other servers."""
    return {
        MACHINE: _conditions(found, rounds, f"; topodns by {interpreter}"),
        CPU: with_plot(cpu_table(found.figures, servers, TOPODNS, _PEER, FLOOR)),
        LATENCY: latency_table({key: median_latency(values) for key, values in found.latencies.items()}),
    }


def by_interpreter(found: Found, titles: Sequence[str], rounds: int) -> Texts:
    """The text about topodns by several interpreters (`titles`, from the oldest to the newest).

    The ratios are of the newest, to the image's: the second of three and more, else the first.
    """
    peer = titles[1 if len(titles) > 2 else 0]
    table = cpu_table(found.figures, titles, titles[-1], peer, FLOOR)
    return {INTERPRETERS: f"{_conditions(found, rounds, '')}\n\n{table}"}


def document_of(texts: Texts) -> str:
    """The path of the document that has these texts."""
    return MEASUREMENTS if INTERPRETERS in texts else DOCUMENT


def renew(found: Found, servers: Sequence[str], texts: Texts) -> None:
    """Write the texts into their document, and with the table of servers plot, targets and README.md's ratios."""
    document, readme = ROOT / document_of(texts), ROOT / "README.md"
    text = document.read_text(encoding="utf-8")
    table = texts.get(CPU, "").partition("\n\n")[0]
    for marker, part in texts.items():
        text = renewed(text, marker, part)
    if table:
        text = renewed(text, TARGETS, targets_table(table))
    document.write_text(text, encoding="utf-8")
    if table:
        plot = svg(PLOT_TITLE, (FLOOR, *servers), list(_plotted(found, servers)))
        document.with_suffix(".svg").write_text(plot, encoding="utf-8")
        quoted = quotation(table)
        readme.write_text(renewed(readme.read_text(encoding="utf-8"), QUOTED, quoted), encoding="utf-8")


def _conditions(found: Found, rounds: int, more: str) -> str:
    disturbed = f"measurements that were disturbed and left out: {found.figures.dropped}"
    if found.figures.keep_all:
        disturbed = (
            f"a short run of fewer queries than the rows say, on a machine with other work: {found.figures.dropped} "
            "measurements were disturbed and are in the figures, which only a whole run replaces"
        )
    return wrapped(f"{_machine()}{more}. Rounds: {rounds}; {disturbed}.")


def _plotted(found: Found, servers: Sequence[str]) -> Iterator[Line]:
    for row in Row:
        of_row = {server: Spread.of(found.figures.values(row, server)) for server in (FLOOR, *servers)}
        spreads = {server: spread for server, spread in of_row.items() if spread is not None}
        if spreads:
            yield Line(row.value, spreads)


def _machine() -> str:
    """Date, commit, processor, kernel."""
    when = datetime.now(UTC).date().isoformat()
    cores = os.cpu_count()
    system = f"{cores} cores of {_processor()}, Linux {platform.release()}"
    return f"{when}, commit {_commit()}: {system}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    """The short hash; "unknown" outside of a repository."""
    command = ("git", "-C", ROOT, "rev-parse", "--short", "HEAD")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"
