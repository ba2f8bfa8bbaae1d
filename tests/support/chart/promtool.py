"""promtool of Debian's prometheus, kept in tests/kubelab's cache: what says whether the alerts would fire.

`python -m tests.support.chart.promtool` fetches it where it is missing, or says why it cannot.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.kubelab.cache import filling, making
from tests.kubelab.debian import RELEASE, unpacked
from tests.kubelab.programs import PROGRAMS

PROMTOOL: Final = PROGRAMS / RELEASE / "promtool"


def fetch_promtool() -> None:
    """Raises OSError or CalledProcessError."""
    if PROMTOOL.exists():
        return
    with filling(), unpacked(["prometheus"]) as root, making(PROMTOOL) as out:
        shutil.copy2(root / "usr/bin/promtool", out)


def promtool(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(PROMTOOL), *map(str, words)], capture_output=True, text=True, check=False)


if __name__ == "__main__":
    try:
        fetch_promtool()
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"no promtool could be had here: {problem}")
