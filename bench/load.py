"""Runs the generator and the plain UDP echo, which are in C, and dnsperf."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from bench.compile import compiled
from bench.proc import NoAnswer, cpu_seconds, output_of

_DNSPERF_COMPLETED: Final = re.compile(r"Queries completed:\s+(\d+)")
_DNSPERF_RATE: Final = re.compile(r"Queries per second:\s+([\d.]+)")


class Answers(NamedTuple):
    """Numbers of answers, by kind."""

    total: int
    with_records: int
    no_data: int
    name_errors: int
    others: int
    lost: int  # queries without an answer


@dataclass(frozen=True)
class Tools:
    """The programs."""

    echo: Path
    ask: Path
    dnsperf: str | None  # its path; None: not installed


def find_tools() -> Tools:
    """The programs, compiled if no earlier run has compiled them. Raises as `compiled`."""
    return Tools(compiled("echo"), compiled("ask"), shutil.which("dnsperf"))


@dataclass(frozen=True)
class Target:
    """A process that answers on 127.0.0.1:`port`, and the core of the generator."""

    pid: int
    port: int
    asking_core: int


def microseconds_per_answer(tools: Tools, target: Target, questions: Path, seconds: float = 0.0) -> float:
    """Microseconds of the target's CPU time per answer, over a file of queries sent as by `ask`. Raises NoAnswer."""
    before = cpu_seconds(target.pid)
    answers = ask(tools, target, questions, seconds)
    if not answers.total:
        raise NoAnswer(f"no answer to {questions.name}")
    return (cpu_seconds(target.pid) - before) * 1e6 / answers.total


def ask(tools: Tools, target: Target, questions: Path, seconds: float = 0.0) -> Answers:
    """Send the queries of a file as fast as they are answered: repeatedly for `seconds`, or each once if that is 0."""
    printed = output_of((tools.ask, str(target.port), questions, str(seconds)), target.asking_core)
    return Answers(*map(int, printed.split()))


def ask_by_dnsperf(program: str, target: Target, questions: Path, client: str) -> tuple[float, float]:
    """(CPU microseconds per query, thousands of queries per second), sent by dnsperf from this one address.

    `program`: the path of dnsperf. Raises NoAnswer if it completes no query.
    """
    options = ("-a", client, "-d", questions, "-c", "4", "-q", "500", "-l", "1")
    before = cpu_seconds(target.pid)
    printed = output_of((program, "-s", "127.0.0.1", "-p", str(target.port), *options), target.asking_core)
    spent = cpu_seconds(target.pid) - before
    completed, rate = _DNSPERF_COMPLETED.search(printed), _DNSPERF_RATE.search(printed)
    if completed is None or rate is None or completed[1] == "0":
        raise NoAnswer(f"dnsperf completed no query:\n{printed}")
    return spent * 1e6 / int(completed[1]), float(rate[1]) / 1000
