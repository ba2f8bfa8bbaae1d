"""`make bench-node-cache`: measure topodns's node cache beside NodeLocal DNSCache, and print. No figure is a test."""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

from bench.node_cache.cost import cpu, memory
from bench.node_cache.figures import Figures
from bench.node_cache.instance import Subject, subjects
from bench.node_cache.scenarios import crash, gone_servers, repair, restarted_server, start_and_stop, upgrades
from bench.node_cache.scene import Scene, scene
from bench.proc import NoAnswer, cores, go_first, say
from bench.scale.sheet import Sheet
from tests.support.namespaced_node import why_impossible

ROUNDS: Final = 3
UPGRADES: Final = 20

Part = Callable[[Scene, Figures], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. The exit status: 1 if a part could not be run, whatever the figures are; else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.node_cache", description=__doc__)
    parser.add_argument("--original", type=Path, help="NodeLocal DNSCache's program, measured beside topodns")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="repetitions of each part (default: %(default)s)")
    parser.add_argument(
        "--upgrades", type=int, default=UPGRADES, help="times that an instance is replaced (default: %(default)s)"
    )
    parser.add_argument(
        "--only", action="append", help="one part (may be given several times)", choices=_parts(UPGRADES)
    )
    options = parser.parse_args(arguments)
    if why := why_impossible():
        say(f"no network namespaces here: {why}")
        return 1
    if options.original is None:
        say("without NodeLocal DNSCache (--original PATH)")
    every = _parts(options.upgrades)
    parts = {name: part for name, part in every.items() if not options.only or name in options.only}
    return _measure(subjects(options.original), parts, options.rounds)


def _parts(replacements: int) -> Mapping[str, Part]:
    core, _ = cores()
    return {
        "start": start_and_stop,
        "crash": crash,
        "repair": repair,
        "upgrade": partial(upgrades, times=replacements),
        "server": restarted_server,
        "gone": gone_servers,
        "memory": partial(memory, core=core),
        "cpu": partial(cpu, core=core),
    }


_ALONE: Final = ("memory", "cpu")  # parts that need no servers of the cluster DNS


def _measure(measured: Sequence[Subject], parts: Mapping[str, Part], rounds: int) -> int:
    began = time.monotonic()
    figures = {subject.title: Figures() for subject in measured}
    sheet = Sheet("A node's DNS cache", list(figures))
    problems: list[str] = []
    go_first()
    for (name, part), subject in product(parts.items(), measured):
        say(f"{time.monotonic() - began:5.0f} s  {name}: {subject.title}")
        try:
            with scene(subject, with_servers=name not in _ALONE) as made:
                for _ in range(1 if _takes_long(name, subject) else rounds):
                    part(made, figures[subject.title])
        except (NoAnswer, AssertionError, subprocess.CalledProcessError) as problem:
            problems.append(f"{name}: {subject.title}: {problem}")
        for line, figure in figures[subject.title].items():
            sheet.write(subject.title, line.part, line.title, figure, line.target)
    print(sheet)
    print(f"\nseveral figures are min / median / max; {time.monotonic() - began:.0f} s in all")
    print(*problems, sep="\n")
    return bool(problems)


def _takes_long(part: str, subject: Subject) -> bool:
    """Whether a part is run once only.

    `upgrade` repeats itself; memory does not differ between rounds; the original takes up to a minute for each repair.
    """
    return part in ("upgrade", "memory") or (part == "repair" and subject.is_original)


if __name__ == "__main__":
    sys.exit(main())
