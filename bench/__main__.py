"""`make bench`: measure and print. No figure passes or fails; README.md says what the figures mean.

Each round starts new servers, to which no name has been queried before. It also measures the plain UDP echo, so that
other load on the machine affects both alike.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from socket import inet_ntoa
from typing import Final

from bench.cluster import client_on, write_cluster
from bench.figures import Series, table
from bench.load import Target, Tools, ask, ask_by_dnsperf, find_tools, microseconds_per_answer
from bench.proc import NoAnswer, cores, free_port, resident_megabytes, running, wait_for_answer
from bench.progress import say
from bench.questions import Load, Question, all_loads, hot_questions, write_dnsperf_input, write_questions

ROUNDS: Final = 5
ECHO_SECONDS: Final = 0.4
SETTLING: Final = 2.0  # seconds after its first answer that a server has for its idle work: indexes, checks of slices
WARM_UP_PASSES: Final = 3  # the packet cache admits a reply at its second query, unless another name has its slot

QUESTION: Final = Question(client_on(0), "web0.ns0.svc.cluster.local")
DEMO: Final = Path(__file__).parents[1] / "config" / "demo"
DEMO_QUESTION: Final = Question(bytes((127, 10, 1, 100)), "cache.shop.svc.cluster.local")


class Measured:
    """A load, the file of its queries, and its figures."""

    def __init__(self, load: Load, directory: Path) -> None:
        self.load = load
        self.file = write_questions(directory / f"{load.title.replace('/', ' ')}.questions", load.questions)
        self.series = Series(load.title, load.target)


class ServerFigures:
    """Start time and memory of the servers of one Corefile, a value of each round."""

    def __init__(self, corefile: Path, question: Question, start_target: str = "", memory_target: str = "") -> None:
        self.corefile = corefile
        self.question = question  # its answer is the end of the start
        self.start = Series("seconds until the first answer", start_target)
        self.memory = Series("MB resident then", memory_target)
        self.memory_after = Series("MB resident after the loads", memory_target)

    def series(self) -> tuple[Series, ...]:
        return self.start, self.memory, self.memory_after


class Bench:
    """All loads and figures. `directory`: for the files of loads and servers."""

    def __init__(self, tools: Tools, directory: Path) -> None:
        self._tools = tools
        self._server_core, self._asking_core = cores()
        self._big = ServerFigures(write_cluster(directory), QUESTION)
        self._demo = ServerFigures(_demo_on_any_ports(directory), DEMO_QUESTION, "< 1.5", "< 60")
        self._measured = [Measured(load, directory) for load in all_loads(Random(1))]
        hot = hot_questions(Random(1))
        self._hot_file = write_questions(directory / "hot.questions", hot)
        self._dnsperf_file = write_dnsperf_input(directory / "hot.dnsperf", hot)
        self._echo = Series("plain UDP echo")
        self._dnsperf = Series("hot, by dnsperf as one client")
        self._rate = Series("thousand queries per second")

    def run_round(self) -> None:
        """Start the servers and measure each load once. Raises NoAnswer."""
        with self._server(self._demo) as target:
            for measured in self._measured:
                ask(self._tools, target, measured.file)
        with self._echo_server() as target:
            self._echo.values.append(microseconds_per_answer(self._tools, target, self._hot_file, ECHO_SECONDS))
        with self._server(self._big) as target:
            for measured in self._measured:
                self._measure(measured, target)
            self._measure_by_dnsperf(target)

    def report(self) -> str:
        """The tables of all figures so far."""
        loads = [measured.series for measured in self._measured]
        tables = [
            table("CPU per query, microseconds", [self._echo, *loads, self._dnsperf], self._echo),
            table("dnsperf itself (it may be the slower of the two)", [self._rate]) if self._rate.values else "",
            table("config/demo", self._demo.series()),
            table("The cluster measured", self._big.series()),
        ]
        return "\n\n".join(filter(None, tables))

    def _measure(self, measured: Measured, target: Target) -> None:
        if measured.load.seconds:
            for _ in range(WARM_UP_PASSES):
                ask(self._tools, target, measured.file)
        spent = microseconds_per_answer(self._tools, target, measured.file, measured.load.seconds)
        measured.series.values.append(spent)

    def _measure_by_dnsperf(self, target: Target) -> None:
        program = self._tools.dnsperf
        if program is not None:
            spent, rate = ask_by_dnsperf(program, target, self._dnsperf_file, inet_ntoa(QUESTION.client))
            self._dnsperf.values.append(spent)
            self._rate.values.append(rate)

    @contextmanager
    def _server(self, figures: ServerFigures) -> Iterator[Target]:
        """A running server; notes the seconds of its start, and its memory then and at the end of the context."""
        port = free_port()
        command = (sys.executable, "-m", "topodns", "-conf", figures.corefile, "-dns.port", str(port))
        began = time.monotonic()
        with running(command, self._server_core) as process:
            wait_for_answer(process, port, figures.question.message)
            figures.start.values.append(time.monotonic() - began)
            figures.memory.values.append(resident_megabytes(process.pid))
            time.sleep(SETTLING)
            yield Target(process.pid, port, self._asking_core)
            figures.memory_after.values.append(resident_megabytes(process.pid))

    @contextmanager
    def _echo_server(self) -> Iterator[Target]:
        port = free_port()
        with running((self._tools.echo, str(port)), self._server_core) as process:
            wait_for_answer(process, port, QUESTION.message)
            yield Target(process.pid, port, self._asking_core)


def _demo_on_any_ports(directory: Path) -> Path:
    """The path of the example's Corefile with free admin ports, so that `make run` may run at the same time."""
    text = (DEMO / "Corefile").read_text().replace("manifests cluster", f"manifests {DEMO / 'cluster'}")
    corefile = directory / "Corefile.demo"
    corefile.write_text(re.sub(r"127\.0\.0\.1:53[0-9]{2}", "127.0.0.1:0", text))
    return corefile


def _notes(tools: Tools) -> Iterator[str]:
    if not tools.dnsperf:
        yield "no dnsperf (Debian package dnsperf): its lines are left out"
    if len(set(cores())) == 1:
        yield "one core only: generator and server share it"


def main() -> int:
    """Measure and print. The exit status: 1 if a program could not be run, whatever the figures are; else 0."""
    began = time.monotonic()
    try:
        tools = find_tools()
        for note in _notes(tools):
            print(note)
        with tempfile.TemporaryDirectory(prefix="topodns-bench-") as directory:
            bench = Bench(tools, Path(directory))
            for number in range(ROUNDS):
                bench.run_round()
                say(f"round {number + 1} of {ROUNDS}")
    except (NoAnswer, subprocess.CalledProcessError) as problem:
        say(f"bench: {problem}")
        return 1
    print(f"\n{bench.report()}\n\n{ROUNDS} rounds in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
