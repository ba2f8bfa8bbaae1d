"""Processes: started on one core, measured by /proc, stopped by their own id."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

ANSWER_WITHIN: Final = 30.0  # seconds from the start of a process to its first answer, at most

_RETRY: Final = 0.005
_LOOK_EVERY: Final = 0.25  # seconds
_BUSY: Final = 0.25  # of a core; a client that sends 500 queries a second makes a server use a twentieth
_QUIET_LOOKS: Final = 5  # in a row, after which a process counts as idle


def say(line: str) -> None:
    """Print a line on standard error while a bench runs; its figures are on standard output."""
    print(line, file=sys.stderr, flush=True)


class NoAnswer(Exception):
    """A started process has ended, does not answer in time, or answers wrong."""


def cores() -> tuple[int, int]:
    """(core of the measured process, core of everything else); twice the same one if there is only one."""
    available = sorted(os.sched_getaffinity(0))
    return available[-1], available[0]


def go_first() -> None:
    """Raise the priority of this process and its children above other programs (niceness -15); only as root.

    Prints a line if this is not root.
    """
    if os.geteuid() == 0:
        os.nice(-15)
    else:
        say("not root: other programs on this machine take their share of the cores")


@contextmanager
def running(command: Sequence[str | Path], core: int) -> Iterator[subprocess.Popen[str]]:
    """A process on this core; at the end of the context it gets SIGTERM, and SIGKILL 10 s later."""
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
    """Run a command that ends by itself on this core; its standard output. Raises CalledProcessError."""
    with pinned_to(core):
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout


@contextmanager
def pinned_to(core: int) -> Iterator[None]:
    """Pin this process to a core in this context: children that it starts inherit that before they run."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def free_port() -> int:
    """A port that is free on 127.0.0.1 over UDP and TCP now. Raises NoAnswer if none is found."""
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


def until(condition: Callable[[], object], what: str, within: float = ANSWER_WITHIN, pause: float = 0.05) -> None:
    """Return once the condition is true. Raises NoAnswer, with `what` it is, after `within` seconds."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise NoAnswer(f"not within {within:g} s: {what}")
        time.sleep(pause)


def wait_for_answer(
    process: "subprocess.Popen[str]",
    port: int,
    message: bytes,
    within: float = ANSWER_WITHIN,
    with_records: bool = False,
    address: str = "127.0.0.1",
) -> None:
    """Send this message over UDP, repeatedly, until the process answers (with records, if so wanted). Raises NoAnswer.

    `address` and `port` are the process's.
    """

    def answers() -> bool:
        if process.poll() is not None:
            problem = process.stderr.read() if process.stderr is not None else ""
            raise NoAnswer(f"{process.args!r} ended with status {process.returncode}\n{problem}")
        with suppress(TimeoutError, ConnectionRefusedError):
            sock.send(message)
            return sock.recv(65535)[6:8] != b"\0\0" or not with_records  # ANCOUNT, RFC 1035 section 4.1.1
        return False

    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.connect((address, port))
        sock.settimeout(_RETRY)
        until(answers, f"an answer of {process.args!r}", within, _RETRY)


def wait_until_quiet(pids: Sequence[int], within: float, check: Callable[[], None] = lambda: None) -> None:
    """Return once all of these processes were idle for a second and more, or after `within` seconds.

    A process that waits for its core is not idle. `check` is called four times a second, and may raise.
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
    """VmRSS of the process, in units of 10^6 octets."""
    return _megabytes(pid, "VmRSS")


def peak_megabytes(pid: int) -> float:
    """The maximum of VmRSS since the process started, or since `forget_peak`, in units of 10^6 octets."""
    return _megabytes(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """Let the maximum of `peak_megabytes` begin anew with the present VmRSS (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def waiting_seconds(pid: int) -> float:
    """The seconds in which threads of the process and its children were runnable, and other threads had their core."""
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
