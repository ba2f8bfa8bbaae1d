"""promtool of Debian's prometheus: what says whether the alerts would fire.

`python -m tests.support.chart.promtool` fetches it where it is missing, or says why it cannot.
"""

import subprocess
from pathlib import Path
from typing import Final

from tests.support.prometheus import fetch, kept

PROMTOOL: Final = kept("promtool")


def promtool(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(PROMTOOL), *map(str, words)], capture_output=True, text=True, check=False)


if __name__ == "__main__":
    try:
        fetch("promtool")
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"no promtool could be had here: {problem}")
