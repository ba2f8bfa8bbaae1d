"""Timers of the event loop, for plugins that must not import asyncio."""

import asyncio
import time
from collections.abc import Callable


class LoopTimers:
    """The `Timers` of `query.deferred` on the running event loop; may be constructed before the loop runs."""

    time = staticmethod(time.monotonic)  # without a wrapper: it is called several times for each query

    def call_later(self, delay: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, callback)
