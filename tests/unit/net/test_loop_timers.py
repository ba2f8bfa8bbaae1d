"""Timers of the running event loop, and the clock by which things expire."""

import asyncio
import time

from tests.support.virtual_event_loop import run_virtually
from topodns.net.loop_timers import LoopTimers, boot_clock


def test_a_callback_runs_after_its_delay_unless_it_is_cancelled() -> None:
    async def story() -> list[tuple[str, float]]:
        timers, loop, called = LoopTimers(), asyncio.get_running_loop(), list[tuple[str, float]]()
        timers.call_later(2.0, lambda: called.append(("later", loop.time())))
        timers.call_later(1.0, lambda: called.append(("sooner", loop.time())))
        timers.call_later(0.5, lambda: called.append(("cancelled", loop.time()))).cancel()
        await asyncio.sleep(5.0)
        return called

    assert run_virtually(story()) == [("sooner", 1.0), ("later", 2.0)]


def test_the_clock_counts_from_the_boot_of_the_host_with_the_time_in_suspend() -> None:
    before, now, after = time.clock_gettime(time.CLOCK_BOOTTIME), boot_clock(), time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= now <= after
