"""Fair schedule of TCP queries: a limited time in each turn of the event loop, client addresses in round robin.

Between two turns the loop polls its other sockets, UDP included. All TCP listeners of the process share one schedule.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

BUDGET: Final = 0.0005  # seconds of TCP work in a turn
_WINDOW: Final = 2 * BUDGET  # seconds; of each window, BUDGET may be spent without a turn while no connection waits
_ALL: Final = 1 << 16  # messages: more than a connection reads before they are answered
_AT_ONCE: Final = 32  # messages of one connection if others wait; each such batch costs a system call


AnswerSome = Callable[[int, float], bool]
"""Answers messages of one connection that wait: (messages, until) -> whether more wait that it can answer.

At least one if the connection can, at most `messages`, until the clock shows `until`.
"""


class TcpSchedule:
    """Shares the time for TCP equally among client addresses, and that of an address among its connections.

    `clock`: monotonic seconds above 0, with a resolution fine enough to time a single message.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._addresses: deque[bytes] = deque()  # with waiting connections
        self._waiting: dict[bytes, deque[AnswerSome]] = {}
        self._window = 0.0  # start of the current window
        self._left = 0.0  # seconds of BUDGET left in it

    def serve(self, address: bytes, answer_some: AnswerSome) -> None:
        """Answer waiting messages of a connection: at once if no other waits, up to BUDGET in _WINDOW seconds.

        Those that are left, or all of them otherwise, get answered in turn. The connection must not be in the schedule
        already. `address`: of its client.
        """
        if began := self.began():
            more = answer_some(_ALL, began + self._left)
            self.ended(began)
            if not more:
                return
        self._wait(address, answer_some)

    def began(self) -> float:
        """The time on the clock if messages may be answered at once; 0 if others wait or the window has no time left.

        The caller then calls `ended` with this time.
        """
        if self._addresses:
            return 0.0
        now = self.clock()
        if now - self._window >= _WINDOW:
            self._window, self._left = now, BUDGET
        return now if self._left > 0 else 0.0

    def ended(self, began: float) -> None:
        """Subtract the time since `began` (a result of the method `began`) from the time left in this window."""
        self._left -= self.clock() - began

    def _wait(self, address: bytes, answer_some: AnswerSome) -> None:
        if not self._addresses:
            asyncio.get_running_loop().call_soon(self._take_turn)
        if address not in self._waiting:
            self._waiting[address] = deque()
            self._addresses.append(address)
        self._waiting[address].append(answer_some)

    def _take_turn(self) -> None:
        """Answer for `BUDGET` seconds, and continue in the loop's next turn if more waits."""
        until = self.clock() + BUDGET
        try:
            while self._addresses:
                self._serve_next(until)
                if self.clock() >= until:
                    break
        finally:  # the others still wait, even if one raised
            if self._addresses:
                asyncio.get_running_loop().call_soon(self._take_turn)

    def _serve_next(self, until: float) -> None:
        address = self._addresses.popleft()
        waiting = self._waiting.pop(address)
        answer_some = waiting.popleft()
        alone = not waiting and not self._addresses
        try:
            if answer_some(_ALL if alone else _AT_ONCE, until):
                waiting.append(answer_some)
        finally:
            if waiting:
                self._waiting[address] = waiting
                self._addresses.append(address)
