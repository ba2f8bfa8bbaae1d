"""The Python interpreters that can run topodns here: the machine's own, the image's, and a newer one of Debian.

Each has the same locked versions of the libraries. Those of Debian are those of `make test-interpreters`, each run by
the C library of its own root.
"""

import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from bench.compile import CACHE
from release.sbom import IMAGE_PYTHON
from release.source import ROOT
from tests.kubelab.cache import filling
from tests.support.interpreters import interpreter_root, wheels_of, why_no_interpreters

NEWER: Final = ("3.14",)

_BYTECODE: Final = CACHE / "bytecode"
_LOADER: Final = "usr/lib64/ld-linux-x86-64.so.2"
_LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"


class Interpreter(NamedTuple):
    """`command`: the first words of a command line, with which the interpreter finds topodns and its libraries."""

    title: str
    command: tuple[str | Path, ...]


@cache
def image_interpreter() -> Interpreter:
    """The interpreter that the image has, if that can be had (root) and runs topodns; else the one that runs this."""
    return next(_downloaded((IMAGE_PYTHON,), lambda line: None), _own())


def find_interpreters(say: Callable[[str], None]) -> Iterator[Interpreter]:
    """The interpreters from the oldest to the newest; `say` gets a line for each that cannot be had."""
    yield _own()
    yield from _downloaded((IMAGE_PYTHON, *NEWER), say)


def _own() -> Interpreter:
    return Interpreter(f"Python {platform.python_version()}", (sys.executable,))


def _downloaded(versions: Sequence[str], say: Callable[[str], None]) -> Iterator[Interpreter]:
    problem = why_no_interpreters()
    if problem:
        say(f"no newer interpreters: {problem}")
        return
    for version in versions:
        try:
            with filling():
                command = _in_root(interpreter_root(version), wheels_of(version), version)
        except (OSError, subprocess.CalledProcessError) as failure:
            say(f"no Python {version}: {failure}")
        else:
            yield from _running(command, f"Python {version}", say)


def _in_root(root: Path, wheels: Path, version: str) -> tuple[str | Path, ...]:
    settings = (f"PYTHONHOME={root / 'usr'}", f"PYTHONPATH={ROOT}:{wheels}", f"PYTHONPYCACHEPREFIX={_BYTECODE}")
    loader = (root / _LOADER, "--library-path", root / _LIBRARIES)
    return "env", *settings, *loader, root / "usr" / "bin" / f"python{version}"


def _running(command: tuple[str | Path, ...], name: str, say: Callable[[str], None]) -> Iterator[Interpreter]:
    """The interpreter by its version, if it imports topodns's libraries."""
    script = "import platform, msgspec, uvloop, topodns; print(platform.python_version())"
    done = subprocess.run((*command, "-c", script), capture_output=True, text=True, check=False)
    if done.returncode:
        say(f"no {name}: {(done.stderr.strip().splitlines() or ['it does not run'])[-1]}")
    else:
        yield Interpreter(f"Python {done.stdout.strip()}", command)
