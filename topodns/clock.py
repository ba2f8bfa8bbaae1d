"""The clock by which things expire: TTLs, Leases, kept credentials. It counts the time that a machine is suspended."""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

boot_clock: Final[Callable[[], float]] = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Seconds since the boot of the host, the time in suspend included.

TTLs (RFC 1035 section 3.2.1) and Leases run out while a machine is suspended. CLOCK_MONOTONIC, which is the clock of
event loops, stops meanwhile. Neither of them can be set.
"""
