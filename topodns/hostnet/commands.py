"""Runs the programs that know the firewall: found once, by absolute path, with argument lists and a time limit.

Whoever calls waits for them, so the keeper calls from beside the loop.
"""

import os
import subprocess
from functools import cache
from typing import Final, NamedTuple

DIRECTORIES: Final = ("/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin")
PATIENCE: Final = 2.0  # seconds

_ENVIRONMENT: Final = {"PATH": ":".join(DIRECTORIES), "LC_ALL": "C"}
_TIMED_OUT: Final = -1


class Finished(NamedTuple):
    """How a program ended: its exit status, or -1 for a time-out; what it printed; its complaint in one line."""

    status: int
    output: str
    complaint: str


@cache
def find_program(name: str) -> str | None:
    """The absolute path; None where this machine has no such program."""
    paths = (f"{directory}/{name}" for directory in DIRECTORIES)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def run(
    arguments: tuple[str, ...], text: str = "", patience: float = PATIENCE, extra: dict[str, str] | None = None
) -> Finished:
    """Run a program with `text` as its input, for at most `patience` seconds; `extra` is added to its environment."""
    try:
        done = subprocess.run(
            arguments,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            env=_ENVIRONMENT | (extra or {}),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Finished(_TIMED_OUT, "", f"no end within {patience:g} s")
    except OSError as problem:
        return Finished(_TIMED_OUT, "", problem.strerror or str(problem))
    return Finished(done.returncode, done.stdout, _one_line(done.stderr) or f"exit status {done.returncode}")


def _one_line(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")[:300]
