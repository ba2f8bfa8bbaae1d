"""What is outside of a resolver, as a process of its own: `outside.c`, or `outside_without_compiler.py`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.compile import compiled, find_compiler
from bench.proc import NoAnswer, cpu_seconds, free_port

WINDOW: Final = 64  # questions ahead of the answers

_HELD_BACK: Final = 0.04  # seconds: all have asked by then, and none of the resolvers asks again so soon


class Outcome(NamedTuple):
    """What came of asking."""

    answers: int
    with_records: int
    lost: int  # questions that nobody answered
    upstream_questions: int  # for addresses, from the first question to the last answer

    @property
    def failed(self) -> int:
        """Every question of this bench has an answer with records."""
        return self.answers - self.with_records + self.lost


class Outside:
    """The clients, and the upstream on 127.0.0.1:`upstream_port`. `compiled`: they are C."""

    def __init__(self, process: subprocess.Popen[str], upstream_port: int, compiled: bool) -> None:
        self.upstream_port = upstream_port
        self.compiled = compiled
        self._process = process

    def ask(self, port: int, questions: Path, address: str = "127.0.0.1") -> Outcome:
        """Ask the resolver there all of these, once."""
        return self._told(f"{address} {port} {questions} {WINDOW} 0")

    def ask_at_once(self, port: int, questions: Path, count: int) -> Outcome:
        """Ask so many questions before the upstream says anything."""
        return self._told(f"127.0.0.1 {port} {questions} {count} {_HELD_BACK}")

    def microseconds_per_answer(
        self, pid: int, port: int, questions: Path, seconds: float = 0.0
    ) -> tuple[float, Outcome]:
        """The CPU time of the process that answers there for each answer, while these are asked. Raises NoAnswer."""
        before = cpu_seconds(pid)
        outcome = self.ask(port, questions)
        if not outcome.answers:
            raise NoAnswer(f"no answer to {questions.name}")
        return (cpu_seconds(pid) - before) * 1e6 / outcome.answers, outcome

    def _told(self, line: str) -> Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        numbers = self._process.stdout.readline().split()
        if not numbers:
            raise NoAnswer(f"{self._process.args!r} has ended")
        return Outcome(*map(int, numbers))


@contextmanager
def outside() -> Iterator[Outside]:
    """It runs where this process runs, as long as the context lasts."""
    compiler, port = find_compiler(), free_port()
    program = (compiled(compiler, "outside"),) if compiler else (sys.executable, "-m", "bench.outside_without_compiler")
    command = (*program, str(port))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Outside(process, port, compiler is not None)
        finally:
            process.kill()
