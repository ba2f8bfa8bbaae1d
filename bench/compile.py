"""The bench's programs in C: compiled once, kept under a hash of their source."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from bench.proc import NoAnswer

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "topodns" / "bench"

_SOURCES: Final = Path(__file__).parent


def find_compiler() -> str | None:
    """The path of a C compiler; None where there is none."""
    return next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))), None)


def compiled(name: str) -> Path:
    """The program of NAME.c, compiled now or before. Raises NoAnswer without a compiler, and CalledProcessError."""
    compiler = find_compiler()
    if compiler is None:
        raise NoAnswer("needs a C compiler (Debian package gcc), for generators that are faster than the servers")
    source = _SOURCES / f"{name}.c"
    read = (source, *sorted(_SOURCES.glob("*.h")))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest()[:16]
    program = CACHE / f"{name}-{digest}"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = CACHE / f"{name}-{digest}.{os.getpid()}"
        subprocess.run([compiler, "-O2", "-o", unfinished, source], check=True)
        unfinished.rename(program)
    return program
