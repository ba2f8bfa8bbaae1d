"""Round-robin scheduler of the HTTP server: one step of one connection in each turn of the event loop."""

import asyncio
from typing import Protocol


class HttpTask(Protocol):
    def step(self) -> None:
        """Do a bounded amount of work, and `join` again if more is left."""


class RoundRobin:
    """The queue of members with work: each turn of the loop runs one step of the first, round robin."""

    def __init__(self) -> None:
        self._waiting: dict[HttpTask, None] = {}
        self._scheduled = False

    def join(self, member: HttpTask) -> None:
        self._waiting[member] = None
        self._schedule()

    def leave(self, member: HttpTask) -> None:
        self._waiting.pop(member, None)

    def has(self, member: HttpTask) -> bool:
        return member in self._waiting

    def _schedule(self) -> None:
        if not self._scheduled and self._waiting:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        member = next(iter(self._waiting), None)
        if member is not None:
            del self._waiting[member]
            try:
                member.step()
            finally:
                self._schedule()
