"""A story on either event loop, and a wait for a condition."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest
import uvloop

SLOWNESS_VARIABLE: Final = "TOPODNS_TEST_SLOWNESS"  # of the environment: set by `tests.support.suites`

SLOWNESS: Final = float(os.environ.get(SLOWNESS_VARIABLE, "1"))
"""How many times as long as a quiet one this machine took when the tests began: a factor of deadlines."""

IDLE_PATIENCE: Final = 90.0  # seconds, on a machine that does nothing else
PATIENCE: Final = IDLE_PATIENCE * SLOWNESS
"""Seconds that any test waits for what is to come, before it fails: a start of a process, an answer, a line of a log.

It only ends what hangs, so it is long enough for a machine that has ten times as much to do as it can, and longer where
the machine is slow already when the tests begin. A deadline that a test is about, such as the time in which a change
has to be seen, is a number of that test, times `SLOWNESS` where the machine's own speed counts.
"""

_FACTORIES: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

either_loop = pytest.mark.parametrize("loop_name", list(_FACTORIES))


def run(loop_name: str, story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=_FACTORIES[loop_name]) as runner:
        runner.run(asyncio.wait_for(story, 2 * PATIENCE))


async def eventually(condition: Callable[[], bool]) -> None:
    """Return once the condition holds; fail after `PATIENCE` seconds."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1: replies over IPv6 are not tested")
