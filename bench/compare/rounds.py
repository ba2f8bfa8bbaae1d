"""A round: for each part of the table every server is started once, one after the other, and its loads are measured."""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.cluster import headless_names
from bench.compare.contenders import Contender, Mode, Place
from bench.compare.figures import Changes, Figures, Latency
from bench.compare.loads import LOOPBACK, Load, Loads, Method, Row
from bench.compare.measuring import Generators, Running, WrongAnswers
from bench.outside import Outside
from bench.proc import NoAnswer, free_port, running, wait_for_answer
from bench.programs import Command
from bench.questions import HOT_NAMES, Question
from bench.scale.stand_in import Key, StandIn

CHANGES: Final = (Changes(0), Changes(20), Changes(200, queried=False), Changes(200))
KNOWN: Final = Question(LOOPBACK, "web999.ns19.svc.cluster.local")  # of the last Service: the whole cluster is there
OUTSIDE: Final = Question(LOOPBACK, "start.example.com")

_READY_WITHIN: Final = 120.0  # seconds, enough for a machine with much other work

Start = Callable[[Place], Command]


@dataclass(frozen=True)
class Testbed:
    """The surroundings of the servers: generators, upstream, API server, a folder, and the core of the servers."""

    generators: Generators
    outside: Outside
    api: StandIn
    folder: Path
    core: int


@dataclass
class Found:
    """The results so far. `problems`: a sentence for each measurement that failed."""

    figures: Figures[Row]
    latencies: defaultdict[tuple[Changes, str], list[Latency]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)


class Rounds:
    """All rounds, with their results in `found`. `floor`: by the method of the loads that it is measured with.

    `keep_all`: disturbed readings count, too.
    """

    def __init__(
        self,
        testbed: Testbed,
        loads: Loads,
        contenders: Sequence[Contender],
        floor: Mapping[Method, Contender],
        keep_all: bool = False,
    ) -> None:
        self.found = Found(Figures(keep_all))
        self._testbed, self._loads = testbed, loads
        self._contenders, self._floor = contenders, floor
        self._round = 0

    def run_round(self, seconds_of_pace: float) -> None:
        """Measure all loads of all servers once. `seconds_of_pace`: of each latency. Raises NoAnswer."""
        self._measure_floor()
        for contender in self._contenders:
            self._measure_in_cluster(contender)
        for mode in Mode:
            for contender in self._contenders:
                self._measure_forwarding(contender, mode)
        for contender in self._contenders:
            self._measure_on_node(contender)
        for contender in (self._floor[Method.UDP], *self._contenders):
            self._measure_latency(contender, seconds_of_pace)
        self._round += 1

    def _measure_floor(self) -> None:
        loads = (*self._loads.cluster, *self._loads.forwarded.values(), self._loads.cached, self._loads.node_cached)
        for method, contender in self._floor.items():
            with self._serving(contender.title, contender.cluster, None) as server:
                for load in (*loads, self._loads.node_once):
                    if load.method is method:
                        self._measure(server, load, check=False)

    def _measure_in_cluster(self, contender: Contender) -> None:
        with self._serving(contender.title, contender.cluster, KNOWN, contender.settling) as server:
            for load in self._loads.cluster:
                if load.row in contender.rows and self._testbed.generators.can_send(load):
                    self._measure(server, load)

    def _measure_forwarding(self, contender: Contender, mode: Mode) -> None:
        rows = [row for row, its_mode in contender.modes.items() if its_mode is mode]
        forwarding = contender.forwarding
        if not rows or forwarding is None:
            return
        with self._serving(contender.title, lambda place: forwarding(place, mode), OUTSIDE) as server:
            self._testbed.generators.warm_up(server, self._loads.fresh)
            for row in rows:
                self._measure(server, self._loads.cached if row is Row.CACHED else self._loads.forwarded[row])

    def _measure_on_node(self, contender: Contender) -> None:
        """Measure a node cache in front of its server, both on one core.

        Queries that are sent once cost the CPU time of both together, cached ones that of the cache alone.
        """
        node = contender.node
        if node is None:
            return
        with (
            self._serving(contender.title, contender.cluster, KNOWN, contender.settling) as server,
            self._serving(contender.title, lambda place: node(place, server.port), KNOWN) as cache,
        ):
            self._testbed.generators.warm_up(cache, self._loads.fresh)
            both = Running(contender.title, (*cache.pids, *server.pids), cache.port, self._testbed.core)
            self._measure(both, self._loads.node_once)
            self._measure(cache, self._loads.node_cached)

    def _measure_latency(self, contender: Contender, seconds: float) -> None:
        known = KNOWN if contender.knows else None
        with self._serving(contender.title, contender.cluster, known, contender.settling) as server:
            self._testbed.generators.warm_up(server, self._loads.paced_warm_up)
            for changes in CHANGES if contender.follows else CHANGES[:1]:
                if changes.rate:
                    change_slices(self._testbed.api, changes, seconds)
                latency, disturbed = self._testbed.generators.latency(server, self._loads.paced, seconds)
                if self.found.figures.keep_all or not disturbed:
                    self.found.latencies[changes, contender.title].append(latency)

    def _measure(self, server: Running, load: Load, check: bool = True) -> None:
        try:
            reading = self._testbed.generators.measure(server, load, check)
        except (NoAnswer, WrongAnswers) as problem:
            self.found.problems.append(str(problem))
        else:
            self.found.figures.note(load.row, server.title, self._round, reading)

    @contextmanager
    def _serving(self, title: str, start: Start, known: Question | None, settling: float = 0.3) -> Iterator[Running]:
        """A server from its start to its end. Yields once it answers `known` with records; None: any message."""
        testbed = self._testbed
        with tempfile.TemporaryDirectory(dir=testbed.folder) as folder:
            place = Place(Path(folder), free_port(), testbed.outside.upstream_port, testbed.api.url)
            with running(start(place), testbed.core) as process:
                message = OUTSIDE.message if known is None else known.message
                wait_for_answer(process, place.port, message, _READY_WITHIN, with_records=known is not None)
                time.sleep(settling)
                yield Running(title, (process.pid,), place.port, testbed.core)


def change_slices(api: StandIn, changes: Changes, seconds: float) -> None:
    """Let the API server replace endpoints of headless Services: those of `Loads.paced`, or others. Does not wait."""
    slices: list[Key] = []
    names = headless_names()
    for name in names[:HOT_NAMES] if changes.queried else names[HOT_NAMES:]:
        label, namespace, *_ = name.split(".")
        slices.append((namespace, f"{label}-0"))
    rounds = int(changes.rate * seconds)
    api.control("churn", slices=slices, network=None, rounds=rounds, batch=1, every=1 / changes.rate)
