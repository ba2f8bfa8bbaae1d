"""A pytest plugin that notes in a file how far a run is, for `tests.support.suites`.

Lines of the file named by PROGRESS: `total N` (tests collected), `done ID` (a test has ended), `failed ID` (it has
failed, or its set-up or tear-down).
"""

import os
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "TOPODNS_TEST_PROGRESS"


def pytest_collection_finish(session: pytest.Session) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ or session.items:  # the first process of xdist collects nothing
        _note(f"total {len(session.items)}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called in the process that has all reports; in workers of xdist, too, where nothing is noted."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.failed:
        _note(f"failed {report.nodeid}")
    if report.when == "teardown":
        _note(f"done {report.nodeid}")


def _note(line: str) -> None:
    """Append a line at once: several processes do."""
    path = os.environ.get(VARIABLE)
    if path is not None:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
