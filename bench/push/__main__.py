"""`make bench-push`: measure the time from a change to the answers of a node cache, and print. No figure fails."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from bench.proc import NoAnswer, cores, cpu_seconds, resident_megabytes, say, until
from bench.push.prober import Prober, Shown
from bench.push.scene import NODES, PATIENCE, TTL, cluster, node_cache, query_name, server, sessions, slice_of
from bench.scale.clients import Latencies
from bench.scale.sheet import Sheet
from tests.support.fake_api.server import running as running_api

SERVICES, CACHES, CHANGES, SECONDS = 200, NODES, 20.0, 60.0
_PUSH, _TTL = "push", "TTL alone"
_TARGET: Final = "p99 <= 50"


class Run(NamedTuple):
    """The size of a run: connected caches, changes per second, seconds with changes, TTL in seconds."""

    caches: int
    changes: float
    seconds: float
    ttl: int


_QUICK: Final = Run(5, CHANGES, 2.0, 5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. The exit status: 1 if a program could not be run, whatever the figures are; else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.push", description=__doc__)
    parser.add_argument("--caches", type=int, default=CACHES, help="connected, 100 at most (default: %(default)s)")
    parser.add_argument("--changes", type=float, default=CHANGES, help="in a second (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of changes (default: %(default)s)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{_QUICK.caches} caches, {_QUICK.seconds:g} s and a TTL of {_QUICK.ttl} s, to try, at the priority of"
        " other programs",
    )
    options = parser.parse_args(arguments)
    run = _QUICK if options.quick else Run(min(options.caches, NODES), options.changes, options.seconds, TTL)
    sheet = Sheet(f"{run.caches} caches, {run.changes:g} changes a second, TTL {run.ttl} s", (_PUSH, _TTL))
    if not options.quick:
        _go_first()
    try:
        _measure(sheet, run)
    except NoAnswer as problem:
        say(f"bench: {problem}")
        return 1
    finally:
        print(sheet)
    return 0


def _measure(sheet: Sheet, run: Run) -> None:
    server_core, other_core = cores()
    os.sched_setaffinity(0, {other_core})
    names = [query_name(number) for number in range(SERVICES)]
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        api = stack.enter_context(running_api(cluster(SERVICES)))
        upstream = stack.enter_context(server(directory, api, server_core, run.ttl))
        made = [
            Shown(stack.enter_context(node_cache(directory / title, upstream, title == _PUSH, other_core, run.ttl)))
            for title in (_PUSH, _TTL)
        ]
        until(partial(_all_subscribed, made), "all subscriptions of the cache", PATIENCE)
        pid = upstream.process.pid
        memory = [resident_megabytes(pid)]
        others = stack.enter_context(sessions(upstream, run.caches - 1, names, other_core))
        memory.append(resident_megabytes(pid))
        refused = others.subscribe()
        memory.append(resident_megabytes(pid))
        prober = Prober(SERVICES, made, lambda number, address: api.put(slice_of(number, address)))
        busy, began = cpu_seconds(pid), time.monotonic()
        prober.run(run.seconds, run.changes)
        busy = (cpu_seconds(pid) - busy) / (time.monotonic() - began)
        prober.drain(run.ttl + 5)
        pushes = others.stop()
        for each, title in zip(made, (_PUSH, _TTL), strict=True):
            _write(sheet, title, each, prober.made)
        each_connection = (memory[1] - memory[0]) * 1000 / (run.caches - 1)
        each_subscribed = (memory[2] - memory[1]) * 1000 / (run.caches - 1)
        sheet.write(_PUSH, "server", "kB of a session", f"{each_connection:.1f}")
        sheet.write(_PUSH, "server", f"kB of {SERVICES} subscriptions", f"{each_subscribed:.1f}")
        sheet.write(_PUSH, "server", "subscriptions refused", refused)
        sheet.write(_PUSH, "server", "PUSH messages to others", pushes)
        sheet.write(_PUSH, "server", "% of its core", f"{100 * busy:.0f}")


def _go_first() -> None:
    """Run this process and its children before all other programs (SCHED_RR): niceness counts within a session only."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        say("bench: not root: other programs on this machine are in the latencies")


def _all_subscribed(made: Sequence[Shown]) -> bool:
    """Query each name at both caches. Returns whether the cache with `push` is then subscribed to all names."""
    for number in range(SERVICES):
        for each in made:
            each.ask(number)
        time.sleep(0.001)
    time.sleep(0.5)
    for each in made:
        each.take()
    return made[0].program.metric("topodns_cache_push_subscriptions") == SERVICES


def _write(sheet: Sheet, title: str, shown: Shown, made: int) -> None:
    latencies = Latencies([1000 * seconds for seconds in shown.seconds])
    sheet.write(title, "change to answer", "ms: p50 / p99 / worst", latencies, _TARGET)
    sheet.write(title, "change to answer", "changes, never shown", f"{made}, {made - len(shown.seconds)}")
    sheet.write(title, "change to answer", "answers that went back", shown.went_back, "0")
    sheet.write(title, "cache", "MB resident", f"{resident_megabytes(shown.program.process.pid):.1f}")


if __name__ == "__main__":
    sys.exit(main())
