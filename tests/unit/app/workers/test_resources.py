"""Memory and CPU of processes."""

import os
import subprocess
import sys

from topodns.app.workers.resources import cpu_seconds, resident_bytes, resource_readings


def test_memory_and_cpu_are_those_of_the_process() -> None:
    assert resident_bytes(os.getpid()) > 1e6
    used = os.times()
    assert abs(cpu_seconds(os.getpid()) - used.user - used.system) < 1


def test_a_process_that_has_ended_has_no_samples() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    readings = list(resource_readings(lambda: [("2", ended.pid)]))
    assert [[labels for labels, _ in each.read()] for each in readings] == [[("1",)], [("1",)]]
