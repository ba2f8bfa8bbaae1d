"""`make bench-guard`: fails if a path of a query or a change takes over 10 % more calls than its figure in the tree."""

import argparse
import logging
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.guard.figures import FIGURES, Figures, gains, problems, read_figures, write_figures
from bench.guard.paths import Counted, count_all
from bench.proc import say

_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_SHOWN: Final = 40  # functions of a path


def main() -> int:
    """Count, print and compare: 0 unless a path takes too many calls, or has no figure."""
    parser = argparse.ArgumentParser(prog="python -m bench.guard", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"renew the figures in {FIGURES.name}")
    parser.add_argument(
        "--calls", metavar="PATH", help="print which functions the paths call whose names have this text"
    )
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # else the order in sets, and so some calls, differ from run to run
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})
    logging.disable(logging.CRITICAL)
    with TemporaryDirectory(prefix="topodns-guard-") as directory:
        results = list(count_all(Path(directory)))
    if arguments.calls is not None:
        _print_calls(each for each in results if arguments.calls in each.path)
        return 0
    counted = {each.path: each.per_query for each in results}
    if arguments.write:
        write_figures(_VERSION, counted)
    return report(counted, read_figures(_VERSION))


def report(counted: Figures, figures: Figures) -> int:
    """Print the counts beside the figures; 1 if a path takes too many calls, or has no figure."""
    for path, calls in counted.items():
        print(f"{path:<58}{calls:>9.2f}{figures.get(path, float('nan')):>9.2f}")
    if not figures:
        print(f"no figures of Python {_VERSION}: nothing to compare with; --write adds them")
        return 0
    for line in gains(counted, figures):
        print(line)
    found = list(problems(counted, figures))
    for line in found:
        say(line)
    return bool(found)


def _print_calls(results: Iterable[Counted]) -> None:
    for path, calls, queries in results:
        print(f"{path}: {calls.total / queries:.2f} calls")
        for function, number in calls.by_function()[:_SHOWN]:
            print(f"{number / queries:>9.2f}  {function}")


if __name__ == "__main__":
    sys.exit(main())
