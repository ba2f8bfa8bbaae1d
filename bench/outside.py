"""The clients of a resolver and its upstream, as one process: `outside.c`."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.compile import compiled
from bench.proc import NoAnswer, cpu_seconds, free_port

WINDOW: Final = 64  # queries in flight

_HELD_BACK: Final = 0.04  # seconds: all clients have sent their query by then, and no resolver has repeated its own


class Outcome(NamedTuple):
    """The result of sending a file of queries."""

    answers: int
    with_records: int
    lost: int  # queries without an answer
    upstream_questions: int  # queries for addresses that the upstream got, from the first query to the last answer

    @property
    def failed(self) -> int:
        """Queries without an answer with records, which every query of this bench should get."""
        return self.answers - self.with_records + self.lost


class Outside:
    """The running process. `upstream_port`: that of the upstream, on 127.0.0.1."""

    def __init__(self, process: subprocess.Popen[str], upstream_port: int) -> None:
        self.upstream_port = upstream_port
        self._process = process

    def ask(self, port: int, questions: Path, address: str = "127.0.0.1") -> Outcome:
        """Send each query of the file once to the resolver at this address and port. Raises NoAnswer."""
        return self._command(f"{address} {port} {questions} {WINDOW} 0")

    def ask_at_once(self, port: int, questions: Path, count: int) -> Outcome:
        """Send `count` queries of the file to the resolver before the upstream answers any. Raises NoAnswer."""
        return self._command(f"127.0.0.1 {port} {questions} {count} {_HELD_BACK}")

    def microseconds_per_answer(self, pid: int, port: int, questions: Path) -> tuple[float, Outcome]:
        """Send a file as by `ask`; (microseconds of CPU of the process `pid` per answer, the result).

        Raises NoAnswer, also if there was no answer at all.
        """
        before = cpu_seconds(pid)
        outcome = self.ask(port, questions)
        if not outcome.answers:
            raise NoAnswer(f"no answer to {questions.name}")
        return (cpu_seconds(pid) - before) * 1e6 / outcome.answers, outcome

    def _command(self, line: str) -> Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        numbers = self._process.stdout.readline().split()
        if not numbers:
            raise NoAnswer(f"{self._process.args!r} has ended")
        return Outcome(*map(int, numbers))


@contextmanager
def outside() -> Iterator[Outside]:
    """The clients and the upstream, started on the core of this process, until the end of the context.

    Raises as `compiled`.
    """
    port = free_port()
    command = (compiled("outside"), str(port))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Outside(process, port)
        finally:
            process.kill()
