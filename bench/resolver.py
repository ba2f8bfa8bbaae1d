"""`make bench-resolver`: CPU and memory for names outside of the cluster, of topodns beside other resolvers.

Each round starts every resolver anew, and measures the plain UDP echo too, so that other load on the machine affects
all alike. No figure passes or fails; README.md says what the figures mean.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from socket import inet_ntoa
from statistics import median
from string import ascii_lowercase
from typing import Any, Final, NamedTuple

import yaml

from bench.figures import Series
from bench.load import find_tools
from bench.outside import Outcome, Outside, outside
from bench.proc import (
    NoAnswer,
    cores,
    free_port,
    go_first,
    resident_megabytes,
    running,
    wait_for_answer,
    waiting_seconds,
)
from bench.progress import say
from bench.questions import Question, write_questions
from bench.resolvers import DEMO, Mode, Place, Resolver, find_resolvers
from bench.scale.sheet import Sheet
from tests.support.fake_api.server import running as running_api

ROUNDS: Final = 5
SECONDS: Final = 105.0  # after which no other measurement is begun
SETTLING: Final = 0.3  # seconds between the first answer of a resolver and its first measurement
WARM_UP: Final = 500  # queries
NAMES: Final = 30_000  # never queried before, for a resolver with a cache; a third of them for one without
AGAIN: Final = 20_000  # queries for one cached name
AT_ONCE: Final = 200  # clients

CLIENT: Final = bytes((127, 0, 0, 1))
POD: Final = bytes((127, 10, 1, 100))  # shell-a1 of config/demo, in the namespace default
SEARCH: Final = ("default.svc.cluster.local", "svc.cluster.local", "cluster.local")  # as the kubelet writes it
LOOKED_FOR: Final = "example.com"
REPLY_WITHIN: Final = 2.0  # seconds


class Line(NamedTuple):
    """A line of the printed table. `target` is printed as it is."""

    part: str
    title: str
    target: str = ""


_CPU, _FACTS = "CPU, us per answer", "Facts"
CACHED: Final = Line(_CPU, "cached", "<= 7")
OVER_TCP: Final = Line(_CPU, "never asked, TCP", "<= 17")
OVER_UDP: Final = Line(_CPU, "never asked, UDP", "<= 20")
WITH_CACHE: Final = Line(_CPU, "never asked, TCP, cache")
NODE: Final = Line(_CPU, "node: never asked", "<= 17")
NODE_CACHED: Final = Line(_CPU, "node: cached", "<= 6")
AUTOPATH: Final = Line(_CPU, "autopath, cached", "<= 12")
ROUND_TRIPS: Final = Line(_FACTS, "autopath: round trips", "1")
UPSTREAM: Final = Line(_FACTS, "200 ask: upstream asked", "1")
UNANSWERED: Final = Line(_FACTS, "200 ask: without answer", "0")
MEMORY: Final = Line(_FACTS, "MB after the start")
GROWTH: Final = Line(_FACTS, "MB more: 30,000 names", "<= 15")
TAKEN: Final = Line(_FACTS, "seconds its core was taken", "0")  # by other programs, during one measurement
LINES: Final = (
    *(CACHED, OVER_TCP, OVER_UDP, WITH_CACHE, NODE, NODE_CACHED, AUTOPATH),
    *(ROUND_TRIPS, UPSTREAM, UNANSWERED, MEMORY, GROWTH, TAKEN),
)


class Loads:
    """The queries of each measurement, as files."""

    def __init__(self, folder: Path) -> None:
        chance = Random(1)
        fresh, names = _names(chance, WARM_UP), _names(chance, NAMES)
        self.fresh = _write(folder / "fresh", CLIENT, fresh)
        self.many = _write(folder / "many", CLIENT, names)
        self.some = _write(folder / "some", CLIENT, names[: NAMES // 3])
        self.cached = _write(folder / "cached", CLIENT, [LOOKED_FOR] * AGAIN)
        self.searched = _write(folder / "searched", POD, [f"{LOOKED_FOR}.{SEARCH[0]}"] * AGAIN)
        sources = (bytes((127, 0, 1, number + 1)) for number in range(AT_ONCE))
        together = [Question(source, "asked-together.example.com") for source in sources]
        self.together = write_questions(folder / "together", together)


class Subject:
    """A resolver and its figures."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.failed = 0
        self.figures = {line: Series(line.title, line.target) for line in LINES}

    def note(self, line: Line, figure: float) -> None:
        self.figures[line].values.append(figure)


class RunningResolver:
    """A running resolver. `memory`: MB resident after its start."""

    def __init__(self, subject: Subject, pid: int, port: int, peers: Outside) -> None:
        self.subject = subject
        self.memory = resident_megabytes(pid)
        self._pid, self._port, self._peers = pid, port, peers

    def measure(self, line: Line, questions: Path) -> None:
        """Send the queries, and note the CPU time per answer, the lost queries and the seconds its core was taken."""
        before = waiting_seconds(self._pid)
        spent, outcome = self._peers.microseconds_per_answer(self._pid, self._port, questions)
        self.subject.note(TAKEN, waiting_seconds(self._pid) - before)
        self.subject.failed += outcome.failed
        self.subject.note(line, spent)

    def warm_up(self, questions: Path) -> None:
        self._peers.ask(self._port, questions)

    def note_memory(self) -> None:
        self.subject.note(MEMORY, self.memory)
        self.subject.note(GROWTH, resident_megabytes(self._pid) - self.memory)

    def note_together(self, questions: Path) -> None:
        outcome: Outcome = self._peers.ask_at_once(self._port, questions, AT_ONCE)
        self.subject.note(UPSTREAM, outcome.upstream_questions)
        self.subject.note(UNANSWERED, outcome.failed)

    def note_round_trips(self) -> None:
        self.subject.note(ROUND_TRIPS, round_trips(self._port))


def _measure_tcp(resolver: RunningResolver, loads: Loads) -> None:
    resolver.warm_up(loads.fresh)
    resolver.measure(OVER_TCP, loads.some)


def _measure_udp(resolver: RunningResolver, loads: Loads) -> None:
    resolver.warm_up(loads.fresh)
    resolver.measure(OVER_UDP, loads.some)


def _measure_whole(line: Line, resolver: RunningResolver, loads: Loads) -> None:
    resolver.warm_up(loads.fresh)
    resolver.measure(line, loads.many)
    resolver.note_memory()
    resolver.warm_up(loads.cached)
    resolver.measure(CACHED, loads.cached)
    resolver.note_together(loads.together)


def _measure_node(resolver: RunningResolver, loads: Loads) -> None:
    resolver.warm_up(loads.fresh)
    resolver.measure(NODE, loads.many)
    resolver.warm_up(loads.cached)
    resolver.measure(NODE_CACHED, loads.cached)


def _measure_autopath(resolver: RunningResolver, loads: Loads) -> None:
    resolver.note_round_trips()
    resolver.warm_up(loads.searched)
    resolver.measure(AUTOPATH, loads.searched)


_MEASUREMENTS: Final[dict[Mode, Callable[[RunningResolver, Loads], None]]] = {
    Mode.TCP: _measure_tcp,
    Mode.UDP: _measure_udp,
    Mode.WHOLE: partial(_measure_whole, WITH_CACHE),
    Mode.WHOLE_UDP: partial(_measure_whole, OVER_UDP),
    Mode.NODE: _measure_node,
    Mode.AUTOPATH: _measure_autopath,
}


class Bench:
    """All resolvers, loads and figures. `folder`: for their files. `core`: that of the measured process."""

    def __init__(self, peers: Outside, api_url: str, folder: Path, core: int) -> None:
        self._peers, self._api_url, self._folder, self._core = peers, api_url, folder, core
        self._loads = Loads(folder)
        self._echo_program = find_tools().echo
        self._echo = Series("plain UDP echo")
        self._subjects = [Subject(resolver) for resolver in find_resolvers(say)]

    def run_round(self, deadline: float) -> bool:
        """Measure each mode of all resolvers once. Returns whether all was measured before the deadline (monotonic)."""
        self._measure_echo()
        for mode, subject in product(Mode, self._subjects):
            if time.monotonic() > deadline:
                return False
            if mode in subject.resolver.modes:
                self._measure(subject, mode)
        return True

    def sheet(self) -> Sheet:
        """The table of all figures so far; CPU time with its ratio to the echo."""
        sheet = Sheet("Names outside of the cluster", [subject.resolver.title for subject in self._subjects])
        sheet.write(self._subjects[0].resolver.title, _CPU, "plain UDP echo, any server", self._echo)
        for line in LINES:
            for subject in self._subjects:
                series = subject.figures[line]
                if series.values:
                    figure = self._beside_echo(series) if line.part == _CPU else _fact(series.values)
                    sheet.write(subject.resolver.title, line.part, line.title, figure, line.target)
        return sheet

    def problems(self) -> Iterator[str]:
        """A line for each resolver with failed queries, which the figures do not show."""
        for subject in self._subjects:
            if subject.failed:
                yield f"{subject.resolver.title}: {subject.failed} questions measured had no answer with records"

    def _beside_echo(self, series: Series) -> str:
        return f"{series} x{median(series.values) / median(self._echo.values):.1f}"

    def _measure(self, subject: Subject, mode: Mode) -> None:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            place = Place(Path(folder), free_port(), self._peers.upstream_port, self._api_url)
            with running(subject.resolver.command(mode, place), self._core) as process:
                wait_for_answer(process, place.port, Question(CLIENT, "start.example.com").message)
                time.sleep(SETTLING)
                _MEASUREMENTS[mode](RunningResolver(subject, process.pid, place.port, self._peers), self._loads)

    def _measure_echo(self) -> None:
        port = free_port()
        with running((self._echo_program, str(port)), self._core) as process:
            wait_for_answer(process, port, Question(CLIENT, LOOKED_FOR).message)
            spent, _ = self._peers.microseconds_per_answer(process.pid, port, self._loads.cached)
            self._echo.values.append(spent)


def round_trips(port: int) -> int:
    """The number of queries of a Pod with `ndots:5` until it has an address of LOOKED_FOR: its search list comes first.

    Raises NoAnswer if the last query has no answer with records.
    """
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind((inet_ntoa(POD), 0))
        sock.connect(("127.0.0.1", port))
        sock.settimeout(REPLY_WITHIN)
        names = (*(f"{LOOKED_FOR}.{domain}" for domain in SEARCH), LOOKED_FOR)
        for trips, name in enumerate(names, 1):
            sock.send(Question(POD, name).message)
            if sock.recv(4096)[6:8] != b"\0\0":  # ANCOUNT, RFC 1035 section 4.1.1
                return trips
    raise NoAnswer(f"no answer with an address of {LOOKED_FOR}")


def _names(chance: Random, count: int) -> list[str]:
    return ["".join(chance.choices(ascii_lowercase, k=12)) + ".example.com" for _ in range(count)]


def _write(path: Path, client: bytes, names: Sequence[str]) -> Path:
    return write_questions(path, (Question(client, name) for name in names))


def _fact(values: Sequence[float]) -> str:
    low, middle, high = (f"{value:.4g}" for value in (min(values), median(values), max(values)))
    return middle if low == high else f"{middle} ({low}..{high})"


def _demo_objects() -> Iterator[dict[str, Any]]:
    """The manifests of config/demo, as an API server has them."""
    for path in sorted(DEMO.glob("*.yaml")):
        for document in filter(None, yaml.safe_load_all(path.read_text())):
            head = {"apiVersion": document["apiVersion"], "kind": document["kind"].removesuffix("List")}
            for item in document.get("items", [document]):
                yield {**head, **item}


@contextmanager
def _bench(core: int) -> Iterator[Bench]:
    with (
        tempfile.TemporaryDirectory(prefix="topodns-bench-") as folder,
        outside() as peers,
        running_api(_demo_objects()) as api,
    ):
        yield Bench(peers, api.url, Path(folder), core)


def _run_rounds(bench: Bench) -> int:
    """Run up to ROUNDS rounds within SECONDS. Returns the number of complete ones."""
    deadline = time.monotonic() + SECONDS
    for number in range(ROUNDS):
        if not bench.run_round(deadline):
            return number
        say(f"round {number + 1} of {ROUNDS}")
    return ROUNDS


def main() -> int:
    """Measure and print. The exit status: 1 if a program could not be run, whatever the figures are; else 0."""
    began = time.monotonic()
    resolver_core, other_core = cores()
    if resolver_core == other_core:
        say("one core only: the resolver shares it with everything else")
    os.sched_setaffinity(0, {other_core})
    go_first()
    try:
        with _bench(resolver_core) as bench:
            rounds = _run_rounds(bench)
    except (NoAnswer, TimeoutError, subprocess.CalledProcessError) as problem:
        say(f"bench: {problem}")
        return 1
    print(f"\n{bench.sheet()}\n\n{rounds} whole rounds in {time.monotonic() - began:.0f} s")
    for line in bench.problems():
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
