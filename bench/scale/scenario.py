"""The scenario of one server on one cluster: first sync, rest, a second list of all kinds, a burst, changes."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from socket import inet_aton
from typing import Final

from bench.proc import (
    NoAnswer,
    cpu_seconds,
    forget_peak,
    free_port,
    peak_megabytes,
    resident_megabytes,
    running,
    wait_until_quiet,
    waiting_seconds,
)
from bench.programs import server_command
from bench.questions import Question
from bench.scale.clients import ChangeWatcher, PacedClient, latencies_since
from bench.scale.questions import LOOPBACK, last_known, mixed_questions, rollout_name, small_headless
from bench.scale.servers import Server
from bench.scale.sheet import Sheet
from bench.scale.stand_in import ROLLOUT, StandIn, fresh_address, stand_in
from tests.support.synthetic_clusters import Cluster, namespace_name

REST: Final = 3.0  # seconds
ROLLED_AT_ONCE: Final = 10  # Pods of the rollout
ROUNDS: Final = 100  # of it
ROLLOUT_SLICES: Final = 10
SMALL_SERVICES: Final = 200  # that change one after the other
SEEN_WITHIN: Final = 10.0  # seconds until a change is in the answers, at most
SETTLED_WITHIN: Final = 90.0  # seconds until server and API server are idle, at most

_SYNC: Final = "first sync"
_RELIST: Final = "all kinds listed again"
_LATENCY_TARGET: Final = "p99 <= 5, worst <= 50"
_LOOK_EVERY: Final = 0.25  # seconds


@dataclass(frozen=True)
class Run:
    """The server's process and the API server it follows."""

    pid: int
    port: int
    api: StandIn


class OutOfTime(Exception):
    """The time limit of the whole bench is reached."""


class Scenario:
    """The measurements of one server on one cluster, written to the sheet; they end at `deadline` (monotonic)."""

    def __init__(self, server: Server, cluster: Cluster, sheet: Sheet, deadline: float) -> None:
        self._server = server
        self._cluster = cluster
        self._with_pods = bool(cluster.pods)
        self._sheet = sheet
        self._deadline = deadline
        self._messages = [question.message for question in mixed_questions(cluster, Random(1))]

    def run(self, server_core: int, other_core: int) -> None:
        """Start the API server and the server on their cores, and measure. Raises OutOfTime, NoAnswer."""
        with (
            tempfile.TemporaryDirectory(prefix="topodns-bench-") as directory,
            stand_in(self._cluster, other_core) as api,
        ):
            corefile, port = Path(directory) / "Corefile", free_port()
            corefile.write_text(self._server.corefile(api.url, self._with_pods))
            with running(server_command(corefile, port, self._server.program), server_core) as process:
                self._measure(Run(process.pid, port, api))

    def _measure(self, run: Run) -> None:
        began = time.monotonic()
        memory = self._sync(run)
        if not self._with_pods:
            self._rest(run)
        self._relist(run, memory)
        if not self._with_pods:
            self._burst(run)
            self._changes(run)
            self._rollout(run)
        waited, elapsed = waiting_seconds(run.pid), time.monotonic() - began
        self._write("all of it", "seconds its core was taken", f"{waited:.1f} of {elapsed:.0f}")

    def _sync(self, run: Run) -> float:
        """Measure the first sync. Returns the resident memory after it, in megabytes."""
        began = time.monotonic()
        with self._client(run) as client:
            self._await_last(run)
            elapsed = time.monotonic() - began
            self._settle(run)
        spent, memory = cpu_seconds(run.pid), resident_megabytes(run.pid)
        self._write(_SYNC, "CPU seconds", f"{spent:.1f}", "" if self._with_pods else "<= 10")
        self._write(_SYNC, "seconds until all is known", f"{elapsed:.1f}")
        self._write(_SYNC, "latency", client.latencies, _LATENCY_TARGET)
        self._write(_SYNC, "MB resident then", f"{memory:.0f}", "<= 250" if self._with_pods else "<= 150")
        return memory

    def _await_last(self, run: Run) -> None:
        question, address = last_known(self._cluster)
        with ChangeWatcher(run.port) as watcher:
            while watcher.seen(question.message, address, time.monotonic() + _LOOK_EVERY) is None:
                self._check()

    def _rest(self, run: Run) -> None:
        with self._client(run) as client:
            time.sleep(REST)
        self._write("nothing to do", "latency", client.latencies)

    def _relist(self, run: Run, memory: float) -> None:
        forget_peak(run.pid)
        before = cpu_seconds(run.pid)
        with self._client(run) as client:
            run.api.control("relist")
            while run.api.control("lists") < self._server.kinds + self._with_pods:
                self._check()
                time.sleep(_LOOK_EVERY)
            self._settle(run)
        spent, peak = cpu_seconds(run.pid) - before, peak_megabytes(run.pid)
        self._write(_RELIST, "CPU seconds", f"{spent:.1f}")
        self._write(_RELIST, "latency", client.latencies, _LATENCY_TARGET)
        self._write(_RELIST, "MB resident at most", f"{peak:.0f} ({peak / memory:.2f} times)", "<= 1.30 times")

    def _burst(self, run: Run) -> None:
        count = 2 * self._cluster.services
        before = cpu_seconds(run.pid)
        with self._client(run) as client:
            run.api.control("burst", count=count)
            self._settle(run)
        part = f"{count:,} slice events"
        self._write(part, "CPU seconds", f"{cpu_seconds(run.pid) - before:.1f}")
        self._write(part, "latency", client.latencies, _LATENCY_TARGET)

    def _changes(self, run: Run) -> None:
        """Measure 20 changes a second, each of another headless Service, until its name has the new address."""
        chosen = list(islice(small_headless(self._cluster), SMALL_SERVICES))
        slices = [each.slice for each in chosen]
        run.api.control("churn", slices=slices, network="11.1", rounds=len(chosen), batch=1, every=0.05)
        changes = [(each.name, fresh_address("11.1", number)) for number, each in enumerate(chosen)]
        seen = self._watch(run, changes)
        latencies = latencies_since(run.api.control("made"), seen)
        self._write("20 changes a second", "change to answer", latencies, "p99 <= 10")

    def _rollout(self, run: Run) -> None:
        """Measure a rollout: 10 of a Service's 1,000 Pods replaced every 100 ms, until the last of ten has its name."""
        run.api.control("add_rollout", slices=ROLLOUT_SLICES)
        self._settle(run)
        slices = [(namespace_name(0), f"{ROLLOUT}-{number}") for number in range(ROLLOUT_SLICES)]
        run.api.control("churn", slices=slices, network="11.2", rounds=ROUNDS, batch=ROLLED_AT_ONCE, every=0.1)
        last = slice(ROLLED_AT_ONCE - 1, None, ROLLED_AT_ONCE)
        addresses = [fresh_address("11.2", number) for number in range(ROUNDS * ROLLED_AT_ONCE)][last]
        seen = self._watch(run, [(rollout_name(address), address) for address in addresses])
        latencies = latencies_since(run.api.control("made")[last], seen)
        self._write("1,000 Pods rolled in 10 s", "change to answer", latencies, "p99 <= 100")

    def _watch(self, run: Run, changes: Sequence[tuple[str, str]]) -> list[int]:
        """The time of the first answer with each (name, address), in nanoseconds of the wall clock. Raises NoAnswer."""
        found: list[int] = []
        with ChangeWatcher(run.port) as watcher:
            for name, address in changes:
                self._check()
                message = Question(LOOPBACK, name).message
                seen = watcher.seen(message, inet_aton(address), time.monotonic() + SEEN_WITHIN)
                if seen is None:
                    raise NoAnswer(f"{self._server.title}: no answer for {name} had the address {address}")
                found.append(seen)
        return found

    def _client(self, run: Run) -> PacedClient:
        return PacedClient(run.port, self._messages)

    def _settle(self, run: Run) -> None:
        """Return once server and API server are idle."""
        wait_until_quiet((run.pid, run.api.pid), SETTLED_WITHIN, self._check)

    def _check(self) -> None:
        if time.monotonic() > self._deadline:
            raise OutOfTime("the time limit was reached: some figures were not measured")

    def _write(self, part: str, title: str, figure: object, target: str = "") -> None:
        self._sheet.write(self._server.title, part, title, figure, target)
