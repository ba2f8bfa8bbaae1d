"""The event loop of the serving processes, uvloop, of which this is the only importer."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

from topodns.app.standard_streams import unblocked_output

T = TypeVar("T")


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """The result of `main`, run in an event loop of its own, during which no output waits for its reader."""
    with unblocked_output(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
