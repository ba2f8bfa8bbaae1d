"""The clock of TTLs and Leases, and timers of the event loop for plugins that must not import asyncio."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

boot_clock: Final[Callable[[], float]] = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Seconds since the boot of the host, the time in suspend included.

TTLs (RFC 1035 section 3.2.1) and Leases run out while a machine is suspended. CLOCK_MONOTONIC, which is the clock of
event loops, stops meanwhile. Neither of them can be set.
"""


class LoopTimers:
    """The `Timers` of `query.deferred` on the running event loop; may be constructed before the loop runs.

    `time` counts suspends, unlike the delays of `call_later`: a timer may be late, and never the answer to whether
    something has expired.
    """

    time = staticmethod(boot_clock)  # without a wrapper: it is called several times for each query

    def call_later(self, delay: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, callback)
