"""The documents as a site, by mkdocs: files that load nothing from another host."""

import os
import subprocess
import sys
from pathlib import Path

from release import mermaid
from release.source import ROOT, epoch


def build_site(folder: Path) -> Path:
    """Write it into the folder, in place of what was there: its first page. Raises CalledProcessError with a warning.

    Where what draws diagrams cannot be had, they stay as text, and a line on stderr says so.
    """
    try:
        mermaid.fetch()
    except OSError as problem:
        print(f"NO DIAGRAMS, they stay as text: {problem}", file=sys.stderr)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder.resolve())]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch()), "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder / "index.html"
