"""The `Timers` of `query.deferred`, on the running event loop, for code that must not import asyncio."""

import asyncio
import time
from collections.abc import Callable


class LoopTimers:
    """Timers that may be constructed before the loop runs."""

    time = staticmethod(time.monotonic)  # without a wrapper: it is called several times for each query

    def call_later(self, delay: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, callback)
