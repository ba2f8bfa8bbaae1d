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
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from bench.cluster import COREFILE, write_cluster
from bench.figures import Series, table
from bench.load import Target, Tools, ask, find_tools
from bench.proc import cores, cpu_seconds, free_port, resident_megabytes, running, wait_for_answer
from bench.progress import say
from bench.questions import hot_questions, write_questions

ROUNDS: Final = 5
QUESTIONS: Final = 500  # few: a generator has another port in each pass, so questions reach processes at random
WARM_UP_PASSES: Final = 20  # after which practically all of them are in the packet caches of all processes
SECONDS: Final = 2.0
READY_WITHIN: Final = 60.0


class Served:
    """The figures of a server with so many processes."""

    def __init__(self, processes: int, directory: Path) -> None:
        self.processes = processes
        self.spent = Series(f"{processes} processes" if processes > 1 else "one process")
        self.first = Series(f"{processes}: the first process")
        self.others = Series(f"{processes}: each worker")
        self._directory = directory

    @contextmanager
    def running(self, core: int) -> Iterator[tuple[int, list[int]]]:
        """Its port and the ids of its processes, all on this core, once it is ready."""
        port, ready = free_port(), free_port()
        added = f"    multisocket {self.processes}\n    ready 127.0.0.1:{ready}\n}}\n"
        corefile = self._directory / f"Corefile.{self.processes}"
        corefile.write_text(COREFILE.removesuffix("}\n") + added)
        with running((sys.executable, "-m", "topodns", "-conf", corefile, "-dns.port", str(port)), core) as process:
            wait_for_answer(process, port, hot_questions(Random(1))[0].message)
            _wait_until_ready(ready)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            yield port, [process.pid, *map(int, children.split())]

    def measure(self, tools: Tools, questions: Path) -> None:
        server_core, asking_core = cores()
        with self.running(server_core) as (port, pids):
            target = Target(pids[0], port, asking_core)
            for pid in pids:
                os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
            for _ in range(WARM_UP_PASSES):
                ask(tools, target, questions)
            before = cpu_seconds(pids[0])  # those of its children included
            with ThreadPoolExecutor(self.processes) as generators:
                runs = [generators.submit(ask, tools, target, questions, SECONDS) for _ in pids]
            answered = sum(run.result().total for run in runs)
            self.spent.values.append((cpu_seconds(pids[0]) - before) * 1e6 / answered)
            memory = [resident_megabytes(pid) for pid in pids]
            self.first.values.append(memory[0])
            self.others.values += memory[1:]


def _wait_until_ready(port: int) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def main(processes: int) -> None:
    tools = find_tools()
    with tempfile.TemporaryDirectory(prefix="topodns-bench-") as name:
        directory = Path(name)
        write_cluster(directory)
        questions = write_questions(directory / "hot.questions", hot_questions(Random(1))[:QUESTIONS])
        one, several = Served(1, directory), Served(processes, directory)
        for number in range(ROUNDS):
            for served in (one, several):
                served.measure(tools, questions)
            say(f"round {number + 1} of {ROUNDS}")
    print(table("CPU per query, microseconds: ready-made answers", [one.spent, several.spent]))
    print(table("\nMB resident", [one.first, several.first, several.others]))
    ratios = [processes * alone / each for alone, each in zip(one.spent.values, several.spent.values, strict=True)]
    print(f"\n{processes} processes on {processes} cores answer {median(ratios):.2f} x as many queries as one on one")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
