"""What the reflectors of one API server share."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from random import Random
from typing import Protocol

from topodns.edge.api_source.intake import Intake
from topodns.edge.api_source.retry_gate import RetryGate
from topodns.edge.api_source.turns import Turns


class ListWatch(Protocol):
    """What is asked of an API server: a GET, and the pieces of a 200 response's body as they come.

    Raises ApiError, also between two pieces. How long silence may last is the caller's business.
    """

    def stream(self, path: str, parameters: Mapping[str, str]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


@dataclass(frozen=True, slots=True)
class Company:
    """The way to the server and into the state, and what keeps its users out of each other's way."""

    api: ListWatch
    intake: Intake
    gate: RetryGate
    turns: Turns
    rng: Random
