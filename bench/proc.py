"""Processes: started on one core, measured by /proc, stopped by their own id."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ANSWER_WITHIN: Final = 30.0  # seconds from its start, or the process is given up

_RETRY: Final = 0.005
_LOOK_EVERY: Final = 0.25  # seconds
_BUSY: Final = 0.25  # of a core; a client that asks 500 questions a second makes a server use a twentieth
_QUIET_LOOKS: Final = 5  # in a row, after which nothing is going on


class NoAnswer(Exception):
    """A process that was started does not do what it was started for."""


def cores() -> tuple[int, int]:
    """The core that is measured and the one that load comes from; the same one where there is no other."""
    available = sorted(os.sched_getaffinity(0))
    return available[-1], available[0]


def go_first(say: Callable[[str], None]) -> None:
    """Run before the other programs of this machine: this process, and all that it starts. `say` gets a line if not."""
    if os.geteuid() == 0:
        os.nice(-15)
    else:
        say("not root: whatever else runs on this machine takes its share of the cores")


@contextmanager
def running(command: Sequence[str | Path], core: int) -> Iterator[subprocess.Popen[str]]:
    """A process on this core, for as long as the context lasts."""
    with pinned_to(core):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def output_of(command: Sequence[str | Path], core: int) -> str:
    """What a command that ends by itself prints when it runs on this core."""
    with pinned_to(core):
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout


@contextmanager
def pinned_to(core: int) -> Iterator[None]:
    """What is started in this context runs on this core: children inherit it before their first instruction."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def free_port() -> int:
    """A port that is free on 127.0.0.1 over UDP and TCP at this moment."""
    for _ in range(100):
        with socket.socket(type=socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
            udp.bind(("127.0.0.1", 0))
            port: int = udp.getsockname()[1]
            try:
                tcp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise NoAnswer("no port is free over both UDP and TCP")


def wait_for_answer(process: subprocess.Popen[str], port: int, message: bytes, within: float = ANSWER_WITHIN) -> None:
    """Return as soon as the process on 127.0.0.1 answers this message."""
    deadline = time.monotonic() + within
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", port))
        sock.settimeout(_RETRY)
        while time.monotonic() < deadline:
            if process.poll() is not None:
                problem = process.stderr.read() if process.stderr is not None else ""
                raise NoAnswer(f"{process.args!r} ended with status {process.returncode}\n{problem}")
            try:
                sock.send(message)
                sock.recv(65535)
                return
            except TimeoutError:
                continue
            except ConnectionRefusedError:
                time.sleep(_RETRY)
    raise NoAnswer(f"{process.args!r} does not answer")


def wait_until_quiet(pids: Sequence[int], within: float, check: Callable[[], None] = lambda: None) -> None:
    """Return once none of these has had anything to do for a while, or when the time is up.

    One that has to wait for its core is not done. `check` is called at each look, and may raise.
    """
    limit, quiet = time.monotonic() + within, 0
    while quiet < _QUIET_LOOKS and time.monotonic() < limit:
        check()
        before, began = [_busy_seconds(pid) for pid in pids], time.monotonic()
        time.sleep(_LOOK_EVERY)
        spent = (_busy_seconds(pid) - then for pid, then in zip(pids, before, strict=True))
        quiet = quiet + 1 if max(spent) < _BUSY * (time.monotonic() - began) else 0


def cpu_seconds(pid: int) -> float:
    """The CPU time, user and kernel, that the process and its children have used so far, to the nanosecond."""
    return _scheduled(pid, 0)


def resident_megabytes(pid: int) -> float:
    """VmRSS now."""
    return _megabytes(pid, "VmRSS")


def peak_megabytes(pid: int) -> float:
    """The most that VmRSS has been since the process started, or since `forget_peak`."""
    return _megabytes(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """What `peak_megabytes` tells begins with now (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def waiting_seconds(pid: int) -> float:
    """How long its threads and its children's could have run so far while their core was another's."""
    return _scheduled(pid, 1)


def _busy_seconds(pid: int) -> float:
    return cpu_seconds(pid) + waiting_seconds(pid)


def _scheduled(pid: int, column: int) -> float:
    """The sum of this column of /proc/PID/task/TID/schedstat, in seconds, of the process and its children."""
    total = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[column]) / 1e9
        for child in (task / "children").read_text().split():
            total += _scheduled(int(child), column)
    return total


def _megabytes(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return int(kilobytes) * 1024 / 1e6
