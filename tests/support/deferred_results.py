"""Results of coroutines, outcomes and deferred replies that have nothing to wait for."""

from collections.abc import Coroutine
from typing import Any, TypeVar, overload

from topodns.plugins.forward.single_flight import LoneFlight
from topodns.query.deferred import Deferred, DeferredReply, Outcome, pursue

T = TypeVar("T")


@overload
def at_once(given: bytes | DeferredReply | None) -> bytes | None: ...


@overload
def at_once(given: T | Deferred[T] | Outcome[T]) -> T: ...


def at_once(given: Any) -> Any:
    """The argument itself, or the result of a coroutine, an outcome or a deferred reply, which has to be there."""
    results: list[Any] = []
    if isinstance(given, Coroutine):
        pursue(given, results.append)
    elif isinstance(given, (Outcome, LoneFlight)):
        given.deliver_to(lambda place, result: results.append(result), None)
    else:
        return given
    assert results, "still waiting"
    return results[0]


def waiting(given: Any) -> bool:
    """Whether this is an outcome or a deferred reply that is not there yet."""
    return isinstance(given, (Outcome, LoneFlight)) and not given.settled
