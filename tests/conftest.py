"""For all tests: async ones have an event loop, no property is timed, and no collection goes through the tests."""

import gc
import inspect

import pytest
from hypothesis import settings

from tests.support.event_loops import run
from tests.support.virtual_event_loop import run_virtually

# A first example may import half of the program on a busy machine.
# Examples are new ones in every run, so that few of them in each add up.
settings.register_profile("untimed", deadline=None, max_examples=50)
settings.load_profile("untimed")


# Net allocations before a garbage collection: at Python's 700, collections take longer than parsing the package itself.
gc.set_threshold(20_000, 20, 20)


def pytest_collection_finish() -> None:
    """Take what has been collected, thousands of tests, out of the garbage collector's work."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test: on the event loop that its argument `loop_name` names, else on asyncio's.

    One that is marked `virtual_time` runs in virtual time.
    """
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    story = pyfuncitem.obj(**arguments)
    if pyfuncitem.get_closest_marker("virtual_time"):
        run_virtually(story)
    else:
        run(str(arguments.get("loop_name", "asyncio")), story)
    return True
