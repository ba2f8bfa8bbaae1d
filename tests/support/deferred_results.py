"""Results of coroutines and outcomes that have nothing to wait for."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from topodns.query.deferred import Deferred, Outcome, pursue

T = TypeVar("T")


def at_once(given: T | Deferred[T] | Outcome[T]) -> T:
    """The argument itself, or the result of a coroutine or outcome, which has to be there already."""
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
