"""A process that runs its event loop, and a stdout or stderr without a reader."""

import os
import subprocess
import sys

import pytest

from tests.support.event_loops import PATIENCE
from tests.support.server_process import ROOT
from topodns.app.standard_streams import AT_EXIT

PROGRAM = """
import sys
from topodns.app.event_loop import run_to_end

class Unraisable:
    def __del__(self):
        raise RuntimeError("x" * 1000)

async def main():
    for _ in range(3000):
        print("x" * 1000, file=sys.{stream})
        {more}
    print("all written", file=sys.{other})

{start}
run_to_end(main())
{end}
"""
FAULT = 'raise RuntimeError("as bugs do")'


@pytest.mark.parametrize(
    ("stream", "more", "end", "status"),
    [
        ("stdout", "", "", 0),
        ("stderr", "", "", 0),
        ("stderr", "Unraisable()", "", 0),
        ("stderr", "", FAULT, 1),
        ("stderr", "", 'sys.exit("a message at the end")', 1),
    ],
    ids=["stdout", "stderr", "unraisable exceptions", "a traceback at the end", "a message at the end"],
)
def test_a_process_whose_output_is_not_read_goes_on_and_ends(stream: str, more: str, end: str, status: int) -> None:
    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
    read_end, write_end = os.pipe()
    program = PROGRAM.format(stream=stream, other=other, more=more, start="", end=end)
    unread = {stream: write_end}
    done = subprocess.run(
        [sys.executable, "-c", program],
        **{other: subprocess.PIPE, **unread},  # type: ignore[call-overload]
        cwd=ROOT,
        timeout=AT_EXIT + PATIENCE,
        check=False,
    )
    os.close(write_end)
    os.close(read_end)
    assert getattr(done, other) == b"all written\n"
    assert done.returncode == status


def test_other_processes_write_to_the_same_pipe_as_before() -> None:
    """They would get EAGAIN if O_NONBLOCK were set on the open file that they share."""
    read_end, write_end = os.pipe()
    start = "import os; print(os.get_blocking(1), file=sys.stderr)"
    program = PROGRAM.format(stream="stdout", other="stderr", more="", start=start, end=start.split("; ")[1])
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=write_end,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == b"True\nall written\nTrue\n"
    assert os.get_blocking(write_end)
    os.close(write_end)
    os.close(read_end)
