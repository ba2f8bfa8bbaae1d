"""A pytest plugin that notes in a file how far a run is, for `tests.support.suites`.

Lines of the file named by PROGRESS: `total N` (tests collected), `done ID` (a test has ended), `failed ID` (it has
failed, or its set-up or tear-down).
"""

import os
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "TOPODNS_TEST_PROGRESS"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(
        _InWorker() if hasattr(config, "workerinput") else _InFirstProcess(), __name__ + ".notes"
    )


class _InWorker:
    """A worker of xdist, which knows how many tests there are."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        _note(f"total {len(session.items)}")


class _InFirstProcess(_InWorker):
    """The process that gets all reports; of xdist it collects no tests."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
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
