"""Timers of the event loop, for plugins that must not import asyncio."""

import asyncio
from collections.abc import Callable

from topodns.clock import boot_clock


class LoopTimers:
    """The `Timers` of `query.deferred` on the running event loop; may be constructed before the loop runs.

    `time` counts suspends, unlike the delays of `call_later`: a timer may be late, and never the answer to whether
    something has expired.
    """

    time = staticmethod(boot_clock)  # without a wrapper: it is called several times for each query

    def call_later(self, delay: float, callback: Callable[[], object], /) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, callback)
