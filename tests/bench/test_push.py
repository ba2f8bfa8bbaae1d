"""`make bench-push` runs, and no change is lost in what it measures. Its times are not looked at."""

import re
import subprocess
import sys

from tests.support.documents import ROOT

COMMAND = (sys.executable, "-m", "bench.push", "--quick")
SECONDS = 240.0


def figures(sheet: str, title: str) -> list[int]:
    """The whole numbers of the line with this title: those of the cache with `push`, then those with TTLs alone."""
    (line,) = (line for line in sheet.splitlines() if title in line)
    return [int(number) for number in re.findall(r"\b\d+\b", line.partition(title)[2])]


def test_a_quick_run_shows_every_change_in_its_order_and_refuses_no_subscription() -> None:
    done = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    made, lost_with_push, again, lost_with_ttl = figures(done.stdout, "changes, never shown")
    assert made > 0
    assert (again, lost_with_push, lost_with_ttl) == (made, 0, 0), done.stdout
    assert figures(done.stdout, "answers that went back")[:2] == [0, 0], done.stdout
    assert figures(done.stdout, "subscriptions refused") == [0], done.stdout
    (pushes,) = figures(done.stdout, "PUSH messages to others")
    assert pushes > 0, done.stdout
