"""The clock by which things expire."""

import time

from topodns.clock import boot_clock


def test_the_clock_counts_from_the_boot_of_the_host_with_the_time_in_suspend() -> None:
    before, now, after = time.clock_gettime(time.CLOCK_BOOTTIME), boot_clock(), time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= now <= after
