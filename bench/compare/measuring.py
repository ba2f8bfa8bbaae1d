"""One measurement: a load is sent, and the server's CPU time for each answer is read from /proc."""

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from bench.compare.figures import Latency, Reading, is_disturbed
from bench.compare.loads import Load, Method
from bench.compile import compiled
from bench.outside import Outcome, Outside
from bench.proc import NoAnswer, cpu_seconds, output_of, waiting_seconds

RATE: Final = 5_000  # queries a second, for latencies

_CONNECTIONS: Final = 20
_DNSPERF_COMPLETED: Final = re.compile(r"Queries completed:\s+(\d+)")
_WINDOW: Final = {Method.ONE_BY_ONE: 1, Method.PIPELINED: 32}  # queries in flight on each


class WrongAnswers(Exception):
    """A server gives other answers to a load than expected, so that its figure cannot be compared."""


@dataclass(frozen=True)
class Tools:
    """The compiled generators, and dnsperf where it is installed."""

    ask_tcp: Path
    pace: Path
    dnsperf: str | None

    @classmethod
    def made_by(cls, dnsperf: str | None) -> "Tools":
        return cls(compiled("ask_tcp"), compiled("pace"), dnsperf)


class Usage(NamedTuple):
    """Seconds since some moment: elapsed, and of CPU.

    `cpu`: CPU time of a server. `waited`: time in which its threads were runnable without a core, as a sum; they also
    wait for one another. `others`: CPU time of other programs on its core, to a tick. `stolen`: time that the
    hypervisor took from all cores.
    """

    time: float
    cpu: float
    waited: float
    others: float
    stolen: float

    def since(self, before: "Usage") -> "Usage":
        return Usage(*(now - then for now, then in zip(self, before, strict=True)))

    @property
    def disturbed(self) -> bool:
        return is_disturbed(min(self.waited, self.others) + self.stolen, self.time)


@dataclass(frozen=True)
class Running:
    """A server on 127.0.0.1:`port`, on one core; its CPU time is that of all of `pids` and their children."""

    title: str
    pids: Sequence[int]
    port: int
    core: int

    def usage(self) -> Usage:
        cpu, waited = sum(map(cpu_seconds, self.pids)), sum(map(waiting_seconds, self.pids))
        programs, stolen = core_seconds(self.core)
        return Usage(time.monotonic(), cpu, waited, programs - cpu, stolen)


class Generators:
    """All ways to send a load, from one core."""

    def __init__(self, tools: Tools, peers: Outside, core: int) -> None:
        self._tools, self._peers, self._core = tools, peers, core

    def can_send(self, load: Load) -> bool:
        return load.method is not Method.DNSPERF or self._tools.dnsperf is not None

    def warm_up(self, server: Running, questions: Path) -> None:
        self._peers.ask(server.port, questions)

    def measure(self, server: Running, load: Load, check: bool = True) -> Reading:
        """Send the load's warm-up, then the load, and measure the CPU time per answer.

        Raises NoAnswer, and with `check` WrongAnswers if queries are lost or other answers have records than expected.
        """
        if load.warm_up is not None:
            self.warm_up(server, load.warm_up)
        before = server.usage()
        outcome = None if load.method is Method.DNSPERF else self._send(server, load)
        answers = self._by_dnsperf(server, load) if outcome is None else max(1, outcome.answers)
        used = server.usage().since(before)
        if outcome is not None and check:
            _check(server, load, outcome)
        return Reading(used.cpu * 1e6 / answers, used.disturbed)

    def latency(self, server: Running, questions: Path, seconds: float) -> tuple[Latency, bool]:
        """(The latency of RATE queries a second, sent evenly for so long; whether other programs disturbed it)."""
        before = server.usage()
        command = (self._tools.pace, str(server.port), questions, str(RATE), str(seconds))
        answers, _, lost, *latencies = output_of(command, self._core).split()
        if not int(answers):
            raise NoAnswer(f"{server.title}: no answer at {RATE} queries a second")
        used = server.usage().since(before)
        p50, p90, p99, p999, _ = map(float, latencies)
        return Latency(p50, p90, p99, p999, used.cpu * 1e6 / int(answers), int(lost)), used.disturbed

    def _send(self, server: Running, load: Load) -> Outcome:
        if load.method is Method.UDP:
            return self._peers.ask(server.port, load.file)
        window = _WINDOW[load.method]
        command = (self._tools.ask_tcp, str(server.port), load.file, str(_CONNECTIONS), str(window))
        return Outcome(*map(int, output_of(command, self._core).split()))

    def _by_dnsperf(self, server: Running, load: Load) -> int:
        """The number of queries that dnsperf completed in a second, all from one address."""
        assert self._tools.dnsperf is not None, "see can_send"
        options = ("-d", load.file, "-a", "127.0.0.1", "-c", "4", "-q", "500", "-l", "1")
        printed = output_of((self._tools.dnsperf, "-s", "127.0.0.1", "-p", str(server.port), *options), self._core)
        completed = _DNSPERF_COMPLETED.search(printed)
        if completed is None or completed[1] == "0":
            raise NoAnswer(f"dnsperf completed no query:\n{printed}")
        return int(completed[1])


def _check(server: Running, load: Load, outcome: Outcome) -> None:
    if not outcome.answers:
        raise NoAnswer(f"{server.title}: no answer to {load.row.value}")
    if outcome.lost:
        raise WrongAnswers(f"{server.title}: {load.row.value}: {outcome.lost} without an answer")
    if load.with_records is not None and outcome.with_records != load.with_records:
        found = f"{outcome.with_records} answers with records, {load.with_records} expected"
        raise WrongAnswers(f"{server.title}: {load.row.value}: {found}")


def core_seconds(core: int) -> tuple[float, float]:
    """(Seconds of programs on this core, without interrupts; seconds that the hypervisor took from all cores).

    Both since the boot, from /proc/stat.
    """
    lines = {line.split()[0]: line.split()[1:] for line in Path("/proc/stat").read_text().splitlines()}
    user, nice, system, *_ = map(int, lines[f"cpu{core}"])
    return (user + nice + system) / _TICKS, int(lines["cpu"][7]) / _TICKS


_TICKS: Final = os.sysconf("SC_CLK_TCK")
