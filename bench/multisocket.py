"""`python -m bench.multisocket [PROCESSES]`: prints CPU per query and memory of `multisocket` beside one process.

All processes of a server share one core, so that each is busy, and the generators have the other core. On PROCESSES
cores they would answer PROCESSES times as many queries, times the CPU per query with one process, divided by that with
several. There is a generator for each process, so that each has as many queries waiting as a single process. The
server's processes are batch processes (SCHED_BATCH), so that they do not preempt one another, as they would not on
cores of their own. No figure passes or fails.
"""

import os
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from bench.cluster import COREFILE, write_cluster
from bench.outside import Outside, outside
from bench.proc import cores, cpu_seconds, free_port, resident_megabytes, running, say, until, wait_for_answer
from bench.programs import server_command
from bench.questions import hot_questions, write_questions

ROUNDS: Final = 5
QUESTIONS: Final = 500  # few: a generator has another port in each pass, so that they reach processes at random
REPEATED: Final = 8  # times in a pass
PASSES: Final = 20  # before the measurement, so that all are in the packet caches of all processes; then measured
READY_WITHIN: Final = 60.0


class Served:
    """The figures of a server with so many processes, of each round: CPU per query; the memory of its processes."""

    def __init__(self, processes: int, directory: Path, core: int) -> None:
        self.processes = processes
        self.spent: list[float] = []
        self.first: list[float] = []
        self.workers: list[float] = []
        self._directory, self._core = directory, core

    def measure(self, generators: Sequence[Outside], questions: Path) -> None:
        """`generators`: one for each process."""
        with self._running() as (port, pids), ThreadPoolExecutor(len(generators)) as threads:

            def ask() -> int:
                each = [threads.submit(generator.ask, port, questions) for generator in generators]
                return sum(one.result().answers for one in each)

            for pid in pids:
                os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
            for _ in range(PASSES):
                ask()
            before = cpu_seconds(pids[0])  # those of its children included
            answered = sum(ask() for _ in range(PASSES))
            self.spent.append((cpu_seconds(pids[0]) - before) * 1e6 / answered)
            first, *workers = map(resident_megabytes, pids)
            self.first.append(first)
            self.workers += workers

    @contextmanager
    def _running(self) -> Iterator[tuple[int, list[int]]]:
        """Its port and the ids of its processes, all on one core, once all of them answer."""
        port, ready = free_port(), free_port()
        added = f"    multisocket {self.processes}\n    ready 127.0.0.1:{ready}\n}}\n"
        corefile = self._directory / f"Corefile.{self.processes}"
        corefile.write_text(COREFILE.removesuffix("}\n") + added)
        with running(server_command(corefile, port), self._core) as process:
            wait_for_answer(process, port, hot_questions(Random(1))[0].message)
            until(lambda: _is_ready(ready), "/ready of all processes", READY_WITHIN)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            yield port, [process.pid, *map(int, children.split())]


def _is_ready(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
        return True
    return False


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f}..{max(values):.2f})"


def main(processes: int) -> None:
    server_core, other_core = cores()
    os.sched_setaffinity(0, {other_core})
    with tempfile.TemporaryDirectory(prefix="topodns-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        write_cluster(directory)
        questions = write_questions(directory / "hot", hot_questions(Random(1))[:QUESTIONS] * REPEATED)
        generators = [stack.enter_context(outside()) for _ in range(processes)]
        one, several = Served(1, directory, server_core), Served(processes, directory, server_core)
        for number in range(ROUNDS):
            for served in (one, several):
                served.measure(generators[: served.processes], questions)
            say(f"round {number + 1} of {ROUNDS}")
    for served in (one, several):
        print(f"processes: {served.processes}; medians of {ROUNDS} rounds (least..greatest)")
        print(f"  microseconds of CPU for a ready-made answer: {_spread(served.spent)}")
        print(f"  MB resident of the first process: {_spread(served.first)}")
        if served.workers:
            print(f"  MB resident of a worker: {_spread(served.workers)}")
    ratios = [processes * alone / each for alone, each in zip(one.spent, several.spent, strict=True)]
    print(f"{processes} processes on {processes} cores answer {median(ratios):.2f} x as many queries as one on one")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
