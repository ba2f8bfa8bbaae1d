"""`make bench-compare`: measure topodns beside other DNS servers, print, and renew docs/reference/performance.md."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from bench.cluster import write_list
from bench.compare.cluster import objects, records, write_local_data, write_zone
from bench.compare.contenders import StaticNames, find_by_interpreter, find_contenders, floor
from bench.compare.document import DOCUMENT
from bench.compare.interpreters import image_interpreter
from bench.compare.loads import FULL, SHORT, Loads
from bench.compare.measuring import Generators, Tools
from bench.compare.report import beside_servers, by_interpreter, document_of, renew
from bench.compare.rounds import Rounds, Testbed
from bench.compile import compiled
from bench.outside import outside
from bench.proc import NoAnswer, cores, go_first, say
from bench.scale.stand_in import stand_in

ROUNDS: Final = 5
MORE_ROUNDS: Final = 3  # at most, for figures that were disturbed
FEWEST: Final = 3  # undisturbed readings that each figure needs
PACE_SECONDS: Final = 4.0  # of each latency


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. The exit status: 1 if a program could not be run, or a server's answers are wrong; else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("--short", action="store_true", help="one round of few queries, disturbed or not")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of all servers (default: %(default)s)")
    parser.add_argument("--alone", action="store_true", help="topodns and the floor only")
    parser.add_argument("--interpreters", action="store_true", help="topodns alone, by each Python that can be had")
    parser.add_argument("--print", action="store_true", help="leave the documents as they are")
    parser.add_argument("--write", action="store_true", help="renew them after a short run, too")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    began = time.monotonic()
    try:
        with _prepared(options) as (rounds, servers):
            count = _run(rounds, 1 if options.short else options.rounds, options.short)
    except (NoAnswer, subprocess.CalledProcessError) as problem:
        say(f"bench: {problem}")
        return 1
    found = rounds.found
    if options.interpreters:
        texts = by_interpreter(found, servers, count)
    else:
        texts = beside_servers(found, servers, count, image_interpreter().title)
    print("\n\n".join(texts.values()))
    print(f"\nrounds: {count}, in {time.monotonic() - began:.0f} s")
    print(*found.problems, sep="\n")
    is_whole = not (options.short or options.alone or options.print)
    if is_whole and not options.interpreters and not any(title.startswith("CoreDNS") for title in servers):
        say(f"without CoreDNS {DOCUMENT} stays as it is")
        is_whole = False
    if (is_whole or options.write) and not found.problems:
        renew(found, servers, texts)
        say(f"renewed {document_of(texts)}")
    return bool(found.problems)


@contextmanager
def _prepared(options: argparse.Namespace) -> Iterator[tuple[Rounds, list[str]]]:
    """(The rounds, the titles of the servers), with the generators and the stand-in for an API server running."""
    short = options.short
    tools = Tools.made_by(shutil.which("dnsperf"))
    if tools.dnsperf is None:
        say("no dnsperf (Debian package dnsperf): its row is left out")
    server_core, other_core = cores()
    if server_core == other_core:
        say("one core only: servers and generators share it, and figures cannot be compared")
    os.sched_setaffinity(0, {other_core})
    if not short:
        go_first()
    with tempfile.TemporaryDirectory(prefix="topodns-bench-") as directory:
        folder = Path(directory)
        loads = Loads(folder, SHORT if short else FULL, Random(1))
        made = list(objects())
        content = list(records(made, loads.pods))
        names = StaticNames(write_zone(folder / "zone", content), write_local_data(folder / "local-data", content))
        contenders = find_by_interpreter(say) if options.interpreters else find_contenders(names, say)
        contenders = contenders[: 1 if options.alone else None]
        echoes = floor((compiled("echo"),), compiled("echo_tcp"))
        with outside() as peers, stand_in(write_list(folder / "cluster.json", made), other_core) as api:
            testbed = Testbed(Generators(tools, peers, other_core), peers, api, folder, server_core)
            yield Rounds(testbed, loads, contenders, echoes, short), [each.title for each in contenders]


def _run(rounds: Rounds, number: int, short: bool) -> int:
    """Run the rounds, and up to MORE_ROUNDS more if figures have too few undisturbed readings. Returns the number."""
    done, needed = 0, 0 if short else min(number, FEWEST)
    while done < number or (done < number + MORE_ROUNDS and rounds.found.figures.fewest() < needed):
        rounds.run_round(1.0 if short else PACE_SECONDS)
        done += 1
        say(f"round {done} of {number}, {rounds.found.figures.dropped} measurements disturbed")
    return done


def _end(number: int, _frame: object) -> None:
    """Leave all contexts, so that no server is left running."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
