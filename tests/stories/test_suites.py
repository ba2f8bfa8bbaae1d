"""`make test` runs suites beside each other, and what has failed there once more, alone."""

import os
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import suites
from tests.support.documents import ROOT
from tests.support.event_loops import PATIENCE, SLOWNESS, SLOWNESS_VARIABLE
from tests.support.kube import slice_history
from tests.support.kube.waiting import join_all

PASSES = "def test_passes():\n    pass\n"
FAILS = "def test_fails():\n    assert False, 'as always'\n"
FLAKY = """
from pathlib import Path

def test_flaky():
    mark = Path(__file__).with_suffix(".mark")
    before = mark.exists()
    mark.touch()
    assert before, "not alone"
"""
SKIPPED = "import pytest\n\ndef test_skipped():\n    pytest.skip('no root here')\n"


MANY = """
import pytest

@pytest.mark.parametrize("n", range(NUMBER))
def test_fails(n):
    assert False
""".replace("NUMBER", str(suites.MOST_AGAIN + 1))


def run(directory: Path, files: dict[str, str], *arguments: str) -> tuple[int, str]:
    for name, text in files.items():
        (directory / f"test_{name}.py").write_text(text)
    command = (sys.executable, "-m", "tests.support.suites", *arguments)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTEST_ADDOPTS": "-ra",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_what_fails_beside_others_and_passes_alone_is_named_and_no_failure(tmp_path: Path) -> None:
    files = {"one": PASSES + FLAKY, "two": SKIPPED, "three": PASSES}
    in_worker = ("-p", "xdist.plugin", "-n1")
    status, shown = run(
        tmp_path, files, *in_worker, "./test_one.py", "beside", "./test_two.py", "then", "./test_three.py"
    )
    assert status == 0
    assert re.match(r"this machine now takes [\d.]+ times as long as a quiet one: tests wait up to \d+ s\n", shown)
    assert "./test_three.py: " in shown
    assert "no root here" in shown
    assert "not alone" in shown
    named = "passed alone, but failed beside other tests, which is a defect of each (`tests/README.md`):\n"
    assert named + "  test_one.py::test_flaky\n" in shown
    assert shown.endswith("s in all: passed\n")


def test_tests_wait_as_much_longer_as_the_machine_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "QUICK", 1e-9)
    assert suites.slowness() == suites.MOST_SLOW
    monkeypatch.setattr(suites, "QUICK", 1e9)
    assert suites.slowness() == 1.0
    waits = "from tests.support.event_loops import PATIENCE\n\ndef test_waits():\n    assert PATIENCE == 270.0\n"
    (tmp_path / "test_waits.py").write_text(waits)
    environment = {**os.environ, SLOWNESS_VARIABLE: "3", "PYTHONPATH": str(ROOT)}
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_waits.py")
    assert subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode == 0


def test_what_fails_alone_too_is_a_failure_of_all(tmp_path: Path) -> None:
    status, shown = run(tmp_path, {"one": FAILS, "two": PASSES}, "./test_one.py", "then", "./test_two.py")
    assert status == 1
    assert shown.count("AssertionError: as always") >= 2
    assert "./test_two.py: " in shown
    assert shown.endswith("s in all: FAILED\n")


def test_many_failures_are_no_flakes(tmp_path: Path) -> None:
    status, shown = run(tmp_path, {"one": MANY}, "./test_one.py")
    assert (status, "too many for flakes" in shown) == (1, True)


def test_a_file_that_cannot_be_read_is_shown_and_not_run_once_more(tmp_path: Path) -> None:
    status, shown = run(tmp_path, {"one": "import nothing_of_this_name\n"}, "./test_one.py")
    assert (status, "nothing_of_this_name" in shown, "once more" in shown) == (2, True, False)


# A test of a real cluster ends even where a helper thread of it does not.


def test_threads_that_end_are_waited_for() -> None:
    threads = [Thread(target=Event().wait, args=(0.05,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    join_all(threads)
    assert [thread.is_alive() for thread in threads] == [False, False]


def test_one_that_does_not_end_is_named_after_the_deadline() -> None:
    forever = Event()
    threads = [Thread(target=Event().wait, args=(0,), name="ended"), Thread(target=forever.wait, name="asking")]
    for thread in threads:
        thread.start()
    try:
        with pytest.raises(AssertionError, match=r"^still running after 0\.1 s: asking$"):
            join_all(threads, 0.1)
    finally:
        forever.set()


def test_a_watch_that_cannot_be_ended_is_reported_and_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_history, "join_all", partial(join_all, patience=0.5))
    deaf = ["sh", "-c", "trap '' TERM; echo '{}'; exec sleep 60"]
    lab: Any = SimpleNamespace(kubectl=lambda *words: deaf)
    started, heard = time.monotonic(), Event()
    monkeypatch.setattr(slice_history.SliceHistory, "_note", lambda history, event: heard.set())
    with (
        pytest.raises(AssertionError, match=r"still running after .* slice-history"),
        slice_history.slice_history(lab, "default"),
    ):
        assert heard.wait(PATIENCE)
    assert time.monotonic() - started < 30 * SLOWNESS
