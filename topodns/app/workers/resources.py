"""Memory and CPU of each process of `multisocket`, from /proc."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from topodns.metrics.registry import Reading

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGES_RESIDENT: Final = 1  # index of the field in /proc/PID/statm, proc_pid_statm(5)
_USER_TICKS: Final = 11  # index of utime behind the name in /proc/PID/stat, proc_pid_stat(5); stime is next

Processes = Callable[[], Iterable[tuple[str, int]]]
"""(value of the label `process`, process id) of the workers."""


def resource_readings(workers: Processes) -> Iterator[Reading]:
    """The metrics of the processes; this one is `process` 1."""
    yield Reading(
        "topodns_multisocket_resident_memory_bytes",
        "Resident memory of each process of multisocket.",
        "gauge",
        ("process",),
        lambda: _of_each(workers, resident_bytes),
    )
    yield Reading(
        "topodns_multisocket_cpu_seconds",
        "CPU time of each process of multisocket; a replaced one begins at 0.",
        "counter",
        ("process",),
        lambda: _of_each(workers, cpu_seconds),
    )


def resident_bytes(pid: int) -> float:
    """Raises OSError for a process that has ended."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[_PAGES_RESIDENT]) * _PAGE


def cpu_seconds(pid: int) -> float:
    """User and system time. Raises OSError for a process that has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_USER_TICKS]) + int(fields[_USER_TICKS + 1])) / _TICKS


def _of_each(workers: Processes, value: Callable[[int], float]) -> Iterator[tuple[tuple[str, ...], float]]:
    for number, pid in (("1", os.getpid()), *workers()):
        with suppress(OSError):
            yield (number,), value(pid)
