"""Shared state of the reflectors of one API server."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from random import Random
from typing import Protocol

from topodns.event_loop import TimeSlices
from topodns.kube.informer.retry import RetryGate
from topodns.kube.informer.state_writer import Intake


class ListWatch(Protocol):
    """The part of the API client that reflectors use: GET, with the body of a 200 response piece by piece.

    Raises ApiError, also between two pieces. Silence between pieces has no deadline here; the caller sets one.
    """

    def stream(self, path: str, parameters: Mapping[str, str]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


@dataclass(frozen=True, slots=True)
class SharedState:
    """Shared state of reflectors: API connection, state writer, retry spacing, time slices, random numbers."""

    api: ListWatch
    intake: Intake
    gate: RetryGate
    turns: TimeSlices
    rng: Random
