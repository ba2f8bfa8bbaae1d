"""Time for those who may not know a loop: the `Timers` of `resolve.course` on whatever loop is running."""

import asyncio
import time
from collections.abc import Callable


class LoopTimers:
    """Made before there is a loop, used when there is one."""

    time = staticmethod(time.monotonic)  # the function itself: it is asked several times for each query

    def call_later(self, delay: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, callback)
