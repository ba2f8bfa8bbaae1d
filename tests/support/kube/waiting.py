"""Waiting for a real cluster: conditions with a deadline, looked at a few times a second."""

import time
from collections.abc import Callable, Collection
from threading import Thread
from typing import Final

PATIENCE: Final = 60.0  # seconds; controllers and kubelets on a busy machine
_PAUSE: Final = 0.1


def eventually(test: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Return once it holds."""
    deadline = time.monotonic() + patience
    while not test():
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what}"
        time.sleep(_PAUSE)


def becomes(observed: Callable[[], object], expected: object, patience: float = PATIENCE) -> None:
    """Return once the observed value equals the expected one; the last value is in the failure."""
    deadline = time.monotonic() + patience
    while (seen := observed()) != expected:
        assert time.monotonic() < deadline, f"still after {patience:g} s: {difference(seen, expected)}"
        time.sleep(_PAUSE)


def stays(observed: Callable[[], object], expected: object, seconds: float) -> int:
    """How often it was looked at, all through these seconds, and found as expected."""
    looks, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        seen = observed()
        assert seen == expected, difference(seen, expected)
        looks += 1
        time.sleep(_PAUSE)
    return looks


def join_all(threads: Collection[Thread], patience: float = PATIENCE) -> None:
    """Return once all have ended; those that have not are in the failure."""
    deadline = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = [thread.name for thread in threads if thread.is_alive()]
    assert not late, f"still running after {patience:g} s: {', '.join(late)}"


def difference(seen: object, expected: object) -> str:
    """Of mappings, only what differs."""
    if not isinstance(seen, dict) or not isinstance(expected, dict):
        return f"{seen} instead of {expected}"
    keys = [key for key in seen | expected if seen.get(key) != expected.get(key)]
    return "\n".join(f"{key}: {difference(seen.get(key), expected.get(key))}" for key in keys)
