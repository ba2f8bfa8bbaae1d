"""The clients of a resolver and its upstream, as one process: `outside.c`."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.compile import compiled
from bench.proc import NoAnswer, free_port

WINDOW: Final = 64  # queries in flight


class Outcome(NamedTuple):
    """The result of sending a file of queries."""

    answers: int
    with_records: int
    lost: int  # queries without an answer


class Outside:
    """The running process. `upstream_port`: that of the upstream, on 127.0.0.1."""

    def __init__(self, process: subprocess.Popen[str], upstream_port: int) -> None:
        self.upstream_port = upstream_port
        self._process = process

    def ask(self, port: int, questions: Path, address: str = "127.0.0.1") -> Outcome:
        """Send each query of the file once to the resolver at this address and port. Raises NoAnswer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(f"{address} {port} {questions} {WINDOW}", file=self._process.stdin, flush=True)
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
