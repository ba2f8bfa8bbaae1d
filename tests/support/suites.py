"""Runs suites of tests, several beside each other, shows their progress, and runs what has failed once more, alone.

    python -m tests.support.suites tests/unit beside -n 4 tests/stories then tests/hostile

It first measures how slow this machine is now; the tests wait as much longer for what is to come (`PATIENCE`).

Each suite is the arguments of one pytest; `then` begins one after the other, `beside` at the same time. A test that
fails beside others and passes alone does not fail the run, but is named: a flake is a defect.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.event_loops import IDLE_PATIENCE, SLOWNESS_VARIABLE
from tests.support.progress import VARIABLE

EVERY: Final = 10.0  # seconds between two lines of progress
MOST_AGAIN: Final = 20  # failed tests of a run that are run once more; more of them are no flakes
BESIDE, THEN = "beside", "then"

QUICK: Final = 0.05  # seconds in which a quiet machine counts to COUNTED, by any of those that were measured
COUNTED: Final = 1_000_000
MOST_SLOW: Final = 10.0  # what tests wait for is hung at some time

_LOOK: Final = 0.2  # seconds
_FAILED: Final = 1  # pytest's exit status for failed tests; the others are no verdict about tests
_PLUGIN: Final = ("-p", "tests.support.progress")
_SUMMARY: Final = ("= FAILURES =", "= ERRORS =", "= short test summary info =", "= warnings summary =")


class Suite:
    """One run of pytest with these arguments. `status` is its exit status, None before its end."""

    def __init__(self, arguments: Sequence[str], directory: Path) -> None:
        self.arguments = tuple(arguments)
        self.name = next((each for each in arguments if "/" in each), "tests").removeprefix("tests/")
        self.status: int | None = None
        self._progress, self._log = Path(tempfile.mkstemp(dir=directory)[1]), Path(tempfile.mkstemp(dir=directory)[1])
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = (sys.executable, "-m", "pytest", *_PLUGIN, *self.arguments)
        # Each worker of xdist collects all tests: without bytecode of them that takes twice as long, some seconds.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", VARIABLE: str(self._progress)}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self.status is None

    def has_ended(self) -> bool:
        """Whether it has ended by now."""
        if self._process is not None and self.status is None:
            self.status = self._process.poll()
        return self.status is not None

    def stop(self) -> None:
        if self._process is not None and self.status is None:
            self._process.terminate()
            self._process.wait()

    @property
    def failed(self) -> list[str]:
        """The ids of the tests that have failed so far."""
        return list(dict.fromkeys(self._noted("failed ")))

    def progress(self) -> str:
        done, totals = len(self._noted("done ")), self._noted("total ")
        failed = len(self.failed)
        return f"{self.name} {done:,} of {max(map(int, totals), default=0):,}{f', {failed} failed' if failed else ''}"

    def summary(self) -> str:
        """The end of its output: all of it without a verdict, else from the first section that names a test."""
        text = self._log.read_text(encoding="utf-8", errors="replace")
        if self.status not in (0, _FAILED):
            return text
        lines = text.splitlines()
        for at, line in enumerate(lines):
            if any(title in line for title in _SUMMARY):
                return "\n".join(lines[at:])
        return lines[-1] if lines else ""

    def _noted(self, kind: str) -> list[str]:
        lines = self._progress.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line.removeprefix(kind) for line in lines if line.startswith(kind)]


def main(arguments: Sequence[str]) -> int:
    """Run the suites. The exit status: 0 if all have passed, perhaps some tests alone only; else that of pytest."""
    began = time.monotonic()
    slow = slowness()
    os.environ[SLOWNESS_VARIABLE] = str(slow)
    _say(
        f"this machine now takes {slow:.1f} times as long as a quiet one: tests wait up to {IDLE_PATIENCE * slow:.0f} s"
    )
    with tempfile.TemporaryDirectory(prefix="topodns-tests-") as folder:
        lanes = [[Suite(each, Path(folder)) for each in _split(lane, THEN)] for lane in _split(arguments, BESIDE)]
        suites = [suite for lane in lanes for suite in lane]
        with _stopped_at_the_end(suites):
            _run(lanes, began)
            status = max((suite.status or 0 for suite in suites), default=0)
            if status == _FAILED:
                status = _again(suites, Path(folder))
    _say(f"{time.monotonic() - began:.0f} s in all: {'passed' if status == 0 else 'FAILED'}")
    return status


def slowness() -> float:
    """How many times as long as on a quiet machine a loop takes here now, 1 to MOST_SLOW: the longest of three."""
    taken = []
    for _ in range(3):
        began = time.monotonic()
        for _ in range(COUNTED):
            pass
        taken.append(time.monotonic() - began)
    return min(MOST_SLOW, max(1.0, max(taken) / QUICK))


def _split(words: Sequence[str], by: str) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word == by:
            yield part
            part = []
        else:
            part.append(word)
    yield part


@contextmanager
def _stopped_at_the_end(suites: Sequence[Suite]) -> Iterator[None]:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        for suite in suites:
            suite.stop()


def _run(lanes: Sequence[list[Suite]], began: float) -> None:
    for lane in lanes:
        lane[0].start()
    shown = began
    while any([_advance(lane) for lane in lanes]):
        time.sleep(_LOOK)
        if time.monotonic() - shown >= EVERY:
            shown = time.monotonic()
            running = [suite.progress() for lane in lanes for suite in lane if suite.is_running]
            _say(f"{shown - began:.0f} s: {'; '.join(running)}")


def _advance(lane: list[Suite]) -> bool:
    """Whether a suite of the lane still runs. Shows the one that has ended, and starts the next."""
    while lane:
        if not lane[0].has_ended():
            return True
        _say(f"{lane[0].name}: {lane[0].summary()}")
        del lane[0]
        if lane:
            lane[0].start()
    return False


def _again(suites: Sequence[Suite], directory: Path) -> int:
    """Run what has failed once more, one suite after the other. The exit status, 0 if all of it passes now."""
    failed = [name for suite in suites for name in suite.failed]
    if len(failed) > MOST_AGAIN:
        _say(f"{len(failed)} tests have failed: too many for flakes, so none is run once more")
        return _FAILED
    _say("once more, alone:")
    for name in failed:
        _say(f"  {name}")
    repeated = Suite(failed, directory)
    repeated.start()
    while not repeated.has_ended():
        time.sleep(_LOOK)
    _say(repeated.summary())
    if repeated.status == 0:
        _say("passed alone, but failed beside other tests, which is a defect of each (`tests/README.md`):")
        for name in failed:
            _say(f"  {name}")
    return repeated.status or 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
