"""`make bench-memory`: measure the memory of servers and node caches, fit formulas, and print. No figure fails."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.memory.cluster import Taken, measure
from bench.memory.fit import Formula, fit
from bench.memory.grid import THINGS, Point, checked, fitted
from bench.memory.use import node_cache_lines, server_lines
from bench.proc import NoAnswer, say


@dataclass(frozen=True)
class Measured:
    point: Point
    taken: Taken


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. The exit status: 1 if a program could not be run, whatever the figures are; else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the numbers, to try")
    parser.add_argument("--only", choices=("cluster", "use"), help="one of the two parts")
    options = parser.parse_args(arguments)
    part, began = 10 if options.quick else 1, time.monotonic()
    try:
        if options.only != "use":
            _print(_cluster_lines(part))
        if options.only != "cluster":
            _print(server_lines(part))
            _print(node_cache_lines(part))
    except NoAnswer as problem:
        say(f"bench: {problem}")
        return 1
    say(f"{time.monotonic() - began:.0f} s in all")
    return 0


def _print(lines: Iterable[str]) -> None:
    """Print each line as soon as it is made, and an empty line after them."""
    for line in lines:
        print(line, flush=True)
    print()


def _cluster_lines(part: int) -> Iterator[str]:
    inside, beyond = [_measured(point) for point in fitted(part)], [_measured(point) for point in checked(part)]
    resident = fit(THINGS, [(each.point.sizes, each.taken.resident) for each in inside])
    peak = fit(THINGS, [(each.point.sizes, each.taken.peak) for each in inside])
    yield f"{'MB of a server':36}{'resident':>10}{'at most':>10}"
    yield f"{'  for itself':36}{resident.base:>10.1f}{peak.base:>10.1f}"
    for thing in THINGS:
        yield f"{f'  for 1,000 {thing}':36}{resident.each[thing] * 1e3:>10.3f}{peak.each[thing] * 1e3:>10.3f}"
    for title, measured in (("fitted", inside), ("checked", beyond)):
        yield f"\n{f'{title}: MB measured (by the formula)':92}{'resident':>15}{'at most':>15}"
        yield from (_line(each, resident, peak) for each in measured)


def _line(measured: Measured, resident: Formula, peak: Formula) -> str:
    point, taken = measured.point, measured.taken
    figures = ((taken.resident, resident.of(point.sizes)), (taken.peak, peak.of(point.sizes)))
    return f"  {point!s:90}" + "".join(f"{f'{found:.0f} ({expected:.0f})':>15}" for found, expected in figures)


def _measured(point: Point) -> Measured:
    say(str(point))
    return Measured(point, measure(point))


if __name__ == "__main__":
    sys.exit(main())
