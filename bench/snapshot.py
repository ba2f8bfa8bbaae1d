"""`python -m bench.snapshot`: write a snapshot of the largest cluster under load, start from it, and print. No figure
fails.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from bench.proc import (
    NoAnswer,
    cores,
    cpu_seconds,
    forget_peak,
    free_port,
    peak_megabytes,
    resident_megabytes,
    running,
    say,
    until,
    wait_until_quiet,
)
from bench.programs import TOPODNS, server_command
from bench.scale.clients import ChangeWatcher, PacedClient
from bench.scale.questions import last_known, mixed_questions
from bench.scale.stand_in import StandIn, stand_in
from tests.support.synthetic_clusters import Cluster

NODES, SERVICES, ENDPOINTS = 5_000, 10_000, 150_000
PATIENCE: Final = 300.0  # seconds
SETTLED_WITHIN: Final = 20.0  # seconds

_COREFILE: Final = """\
cluster.local {{
    bind 127.0.0.1
    kubernetes cluster.local {{
        endpoint {url}
        startup_timeout 1s
        snapshot {file} interval 1s
    }}
    topology {{
        locate nodes podcidr slices
    }}
}}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. The exit status: 1 if a program could not be run, else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.snapshot", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, to try")
    part = 10 if parser.parse_args(arguments).quick else 1
    cluster = Cluster(NODES // part, SERVICES // part, ENDPOINTS // part, 0)
    try:
        with tempfile.TemporaryDirectory(prefix="topodns-bench-") as directory:
            _measure(cluster, Path(directory))
    except NoAnswer as problem:
        say(f"bench: {problem}")
        return 1
    return 0


def _measure(cluster: Cluster, directory: Path) -> None:
    file = directory / "snapshot"
    with _api(cluster) as api, _server(directory, api, file) as (pid, port):
        _await_last(cluster, port)
        print(f"by the API: {cpu_seconds(pid):.1f} s of CPU, {peak_megabytes(pid):.0f} MB at most")
        _await(file.exists, "a snapshot")
        wait_until_quiet((pid, api.pid), SETTLED_WITHIN)
        before = resident_megabytes(pid)
        forget_peak(pid)
        written, spent = file.stat().st_mtime_ns, cpu_seconds(pid)
        with PacedClient(port, [each.message for each in mixed_questions(cluster, Random(1))]) as client:
            api.control("burst", count=1)
            _await(lambda: file.stat().st_mtime_ns > written, "another snapshot")
        print(f"a snapshot: {file.stat().st_size / 1e6:.1f} MB, {cpu_seconds(pid) - spent:.1f} s of CPU with queries")
        print(f"  {peak_megabytes(pid) - before:.1f} MB beside the state at most; latency {client.latencies} ms")
    (directory / "second").mkdir()
    with _server(directory / "second", api, file) as (pid, port):
        _await_last(cluster, port)
        print(f"from it: {cpu_seconds(pid):.1f} s of CPU (<= 3), {peak_megabytes(pid):.0f} MB at most")


@contextmanager
def _api(cluster: Cluster) -> Iterator[StandIn]:
    with stand_in(cluster, cores()[1]) as api:
        api.control("add_system")
        yield api


@contextmanager
def _server(directory: Path, api: StandIn, file: Path) -> Iterator[tuple[int, int]]:
    corefile, port = directory / "Corefile", free_port()
    corefile.write_text(_COREFILE.format(url=api.url, file=file))
    with running(server_command(corefile, port, TOPODNS), cores()[0]) as process:
        yield process.pid, port


def _await_last(cluster: Cluster, port: int) -> None:
    """Wait for the answer with the address that is known last."""
    question, address = last_known(cluster)
    with ChangeWatcher(port) as watcher:
        if watcher.seen(question.message, address, time.monotonic() + PATIENCE) is None:
            raise NoAnswer(f"no answer for {question.name}")


def _await(condition: Callable[[], bool], what: str) -> None:
    until(condition, what, PATIENCE)


if __name__ == "__main__":
    sys.exit(main())
