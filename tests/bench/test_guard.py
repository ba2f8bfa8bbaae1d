"""`make bench-guard` counts the same calls in every run."""

import subprocess
import sys

from tests.support.documents import ROOT


def test_two_runs_make_the_same_calls() -> None:
    first, second = (
        subprocess.run([sys.executable, "-m", "bench.guard"], cwd=ROOT, capture_output=True, text=True, check=False)
        for _ in range(2)
    )
    assert first.stdout == second.stdout
    assert "forwarded over TCP: never asked" in first.stdout
