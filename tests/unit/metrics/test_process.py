"""Metrics of the process."""

from topodns.app.exposition import Metrics


def test_the_process_is_described_as_dashboards_expect() -> None:
    text = Metrics(list, []).exposition().decode()
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
        assert f"\n{name} " in text
