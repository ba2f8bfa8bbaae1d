"""`make bench-compare` runs, and checks the answers that it measures. Its figures are not looked at."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from bench.compare.document import DOCUMENT, MEASUREMENTS
from bench.compare.loads import Row
from bench.compile import find_compiler
from tests.support.documents import ROOT
from tests.support.server_process import until

COMMAND = (sys.executable, "-m", "bench.compare", "--short", "--alone")
SECONDS = 600.0


def test_a_short_run_measures_every_row_of_topodns_and_leaves_the_documents_alone() -> None:
    before = documents()
    done = run(dict(os.environ))
    assert documents() == before
    if find_compiler() is None:
        assert (done.returncode, "needs a C compiler (Debian package gcc)" in done.stderr) == (1, True)
        return
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {line.strip("|").split(" | ")[0].strip() for line in done.stdout.splitlines() if line.startswith("|")}
    left_out = {Row.DNSPERF.value} if "no dnsperf" in done.stderr else set()
    assert {row.value for row in Row} - left_out <= rows


def test_without_a_compiler_it_says_which_package_is_missing() -> None:
    done = run({**os.environ, "PATH": "", "CC": "no-such-compiler"})
    assert done.returncode == 1
    assert done.stderr == (
        "bench: needs a C compiler (Debian package gcc), for generators that are faster than the servers\n"
    )


def test_sigterm_leaves_no_server_running() -> None:
    bench = subprocess.Popen(COMMAND, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: bool(children_of(bench.pid)) or bench.poll() is not None, "the first child", SECONDS)
        started = children_of(bench.pid)
        bench.terminate()
        assert bench.wait(SECONDS) == (1 if find_compiler() is None else 128 + signal.SIGTERM)
    finally:
        bench.kill()
        bench.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), "the end of its children", SECONDS)


def children_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []


def run(environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        COMMAND, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )


def documents() -> tuple[bytes, ...]:
    return tuple((ROOT / name).read_bytes() for name in ("README.md", DOCUMENT, MEASUREMENTS))
