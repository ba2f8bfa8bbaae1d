"""Process metrics from /proc, under the names of Prometheus's client libraries (`process_*`)."""

import os
from collections.abc import Iterator
from itertools import chain
from typing import Final

from topodns.metrics.exposition import counter, gauge

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
# Indexes of fields in /proc/PID/stat after the command's name (proc_pid_stat(5)).
_USER, _SYSTEM, _STARTED, _VIRTUAL, _RESIDENT = 11, 12, 19, 20, 21


def process_lines() -> Iterator[str]:
    """Exposition lines, without the metrics that /proc does not provide."""
    for figures in (_of_stat, _of_files):
        try:
            yield from list(figures())
        except OSError:
            continue


def _of_stat() -> Iterator[str]:
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    user, system, started = (int(fields[at]) / _TICKS for at in (_USER, _SYSTEM, _STARTED))
    return chain(
        _gauge("virtual_memory_bytes", "Virtual memory size in bytes.", int(fields[_VIRTUAL])),
        _gauge("resident_memory_bytes", "Resident memory size in bytes.", int(fields[_RESIDENT]) * _PAGE),
        _gauge("start_time_seconds", "Start time in seconds since the epoch.", _booted() + started),
        counter("process_cpu_seconds", "Processor time used in seconds.", (), [((), user + system)]),
    )


def _of_files() -> Iterator[str]:
    limit = os.sysconf("SC_OPEN_MAX")
    return chain(
        _gauge("open_fds", "Open file descriptors.", len(os.listdir("/proc/self/fd"))),
        _gauge("max_fds", "Most file descriptors that may be open.", limit),
    )


def _booted() -> float:
    """Boot time of the machine in seconds since the epoch."""
    with open("/proc/stat", "rb") as file:
        return next(float(line.split()[1]) for line in file if line.startswith(b"btime "))


def _gauge(name: str, documentation: str, value: float) -> Iterator[str]:
    return gauge(f"process_{name}", documentation, (), [((), value)])
