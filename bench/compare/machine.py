"""A description of the machine, for the document with its figures."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]


def description() -> str:
    """Date, commit, processor, kernel."""
    when = datetime.now(UTC).date().isoformat()
    cores = os.cpu_count()
    system = f"{cores} cores of {_processor()}, Linux {platform.release()}"
    return f"{when}, commit {_commit()}: {system}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    """The short hash; "unknown" outside of a repository."""
    command = ("git", "-C", _ROOT, "rev-parse", "--short", "HEAD")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"
