"""Running courses to their end at once, where nothing in them has to wait."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from topodns.query.deferred import Deferred, Outcome, pursue

T = TypeVar("T")


def at_once(given: T | Deferred[T] | Outcome[T]) -> T:
    """What was given, or what the course or outcome came to; it has to have come to its end."""
    if not isinstance(given, (Coroutine, Outcome)):
        return given
    results: list[T] = []
    if isinstance(given, Outcome):
        given.then(results.append)
    else:
        pursue(given, results.append)
    assert results, "still waiting"
    return results[0]


def waiting(given: Any) -> bool:
    """Whether this is an outcome that is not settled yet."""
    return isinstance(given, Outcome) and not given.settled
