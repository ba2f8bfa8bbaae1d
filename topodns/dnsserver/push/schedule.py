"""The work of a publisher between queries: in slices of time, in turns of what a change has touched and of clients.

A slice finds some of the answers that changes have touched, sends a push to some of its recipients or makes an answer
anew, removes some subscriptions of closed sessions, and so on until its time is up.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count, islice
from typing import Final

from topodns.dependency import Fact
from topodns.dns.tcp_framing import frame
from topodns.dnsserver.push.answers import AnswerTable, PushedAnswer, Subscriber
from topodns.plugins.push import PushCounts
from topodns.query.deferred import Timers

SLICE: Final = 0.001  # seconds of work between two turns of the loop
PAUSE: Final = 0.001  # seconds between two slices, or as long as a slice took: at most half of the time is for pushes
_SEND: Final = 0.00001  # seconds that a write takes later in the turn
_SENDS: Final = 16  # between two looks at the clock
_TOUCHED: Final = 64  # answers of one fact before those of the next one
_DEBTS: Final = 1024  # addresses; beyond, those are forgotten whose turn has come since
_COMPARED: Final = 256  # subscribers of an answer: of these the one that holds the least gives its turn


class DueAnswers:
    """The answers to make, in turns of client addresses, so that none delays the answers of others much.

    The next turn is that of the address whose answers have taken the least time, as in fair queueing: one with large
    answers has fewer turns. Answers that a change has touched, and first answers that were not made at once, come
    first, then those that a client doubts, then all others after a change that may have touched any.
    """

    def __init__(self) -> None:
        self._touched: dict[bytes, deque[PushedAnswer]] = {}  # by address, the oldest first
        self._turns: list[tuple[float, int, bytes]] = []  # a heap: (seconds, order of arrival, address in `_touched`)
        self._order = count()
        self._seconds = 0.0  # of the turn that was taken last
        self._debts: dict[bytes, float] = {}  # seconds of addresses whose answers are all made, while others wait
        self._address: bytes | None = None  # whose turn was taken last, until `spent`
        self._doubted: OrderedDict[PushedAnswer, None] = OrderedDict()
        self._all: Iterator[PushedAnswer] = iter(())
        self._all_again: AnswerTable | None = None

    def add(self, answer: PushedAnswer, address: bytes) -> None:
        """Add an answer that a change has touched; no effect if it is there already.

        `address`: the packed address of the client in whose turn it is made anew.
        """
        if answer.due:
            return
        answer.due = True
        waiting = self._touched.get(address)
        if waiting is None:
            waiting = self._touched[address] = deque()
            if address != self._address:
                self._queue(address, max(self._seconds, self._debts.pop(address, 0.0)))
        waiting.append(answer)

    def doubt(self, answer: PushedAnswer) -> None:
        """Add an answer that a client doubts."""
        self._doubted[answer] = None

    def add_all(self, table: AnswerTable) -> None:
        """Add all answers of the table, as of the time when their turn comes."""
        self._all_again = table

    def take(self) -> PushedAnswer | None:
        """Remove and return the next answer, which may have no subscribers any more; None if there is none."""
        self.spent(0.0)
        if self._turns:
            self._seconds, _, address = heappop(self._turns)
            self._address = address
            waiting = self._touched[address]
            answer = waiting.popleft()
            answer.due = False
            if not waiting:
                del self._touched[address]
            return answer
        self._debts.clear()
        if self._doubted:
            return self._doubted.popitem(last=False)[0]
        return self._next_of_all()

    def spent(self, seconds: float) -> None:
        """Count the time that the answer took which was taken last; no effect after another one than a touched one."""
        address, self._address = self._address, None
        if address is None:
            return
        if address in self._touched:
            self._queue(address, self._seconds + seconds)
            return
        if len(self._debts) >= _DEBTS:
            self._debts = {each: owed for each, owed in self._debts.items() if owed > self._seconds}
        self._debts[address] = self._seconds + seconds

    def _queue(self, address: bytes, seconds: float) -> None:
        heappush(self._turns, (seconds, next(self._order), address))

    def _next_of_all(self) -> PushedAnswer | None:
        found = next(self._all, None)
        if found is None and self._all_again is not None:
            self._all, self._all_again = iter(tuple(self._all_again)), None
            found = next(self._all, None)
        return found


class PushSchedule:
    """The work that is left for the answers of `table`, of which `make` makes one anew."""

    def __init__(
        self, timers: Timers, table: AnswerTable, counts: PushCounts, make: Callable[[PushedAnswer], object]
    ) -> None:
        self._timers = timers
        self._table = table
        self._counts = counts
        self._make = make
        self._facts: OrderedDict[Fact, None] = OrderedDict()  # touched, and their answers not looked up yet
        self._touched: deque[Iterator[PushedAnswer]] = deque()  # answers of one fact each, those left to add
        self._due = DueAnswers()
        self._outbox: deque[tuple[bytes, int, Iterator[Subscriber]]] = deque()  # (octets, messages, recipients left)
        self._leaving: deque[Iterator[object]] = deque()  # the subscriptions of a closed session each
        self._is_scheduled = False
        self._rested_at = 0.0  # the time at which the pauses for all work so far are over

    def at_once(self, work: Callable[[], object]) -> bool:
        """Do work for a new subscription now, if no other work waits, and its share of the time is not used up.

        False: it is not done, and has to wait for its turn. Other work pays for what it takes by a pause as long.
        """
        began = self._timers.time()
        if self._is_scheduled or began < self._rested_at:
            return False
        work()
        took = self._timers.time() - began
        self._rested_at = max(self._rested_at, began - SLICE) + 2 * took
        return True

    def touch(self, facts: Iterable[Fact]) -> None:
        """Make the answers that depend on these facts anew."""
        for fact in facts:
            if self._table.rests(fact):
                self._facts[fact] = None
                self._schedule()

    def touch_all(self) -> None:
        """Make all answers anew, when there is nothing more urgent."""
        self._due.add_all(self._table)
        self._schedule()

    def add(self, answer: PushedAnswer) -> None:
        """Make an answer anew, in a turn of the address that holds the least among those subscribed to it.

        So an address that holds much, and whose turns are late, delays no answer that others follow as well.
        """
        addresses = (session.connection.address for session in islice(answer.subscribers, _COMPARED))
        address = min(addresses, key=self._counts.memory.of, default=answer.owner)
        self._due.add(answer, address)
        self._schedule()

    def doubt(self, answer: PushedAnswer) -> None:
        """Make an answer anew when there is nothing more urgent (RECONFIRM)."""
        self._due.doubt(answer)
        self._schedule()

    def send(self, messages: list[bytes], recipients: Iterable[Subscriber]) -> None:
        """Send PUSH messages to sessions, after all earlier ones; no effect without any message."""
        if messages:
            self._outbox.append((b"".join(map(frame, messages)), len(messages), iter(tuple(recipients))))
            self._schedule()

    def leave(self, removals: Iterator[object]) -> None:
        """Remove the subscriptions of a closed session, one with each step of `removals`."""
        self._leaving.append(removals)
        self._schedule()

    def _schedule(self, delay: float = 0.0) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._timers.call_later(max(delay, self._rested_at - self._timers.time()), self._work)

    def _work(self) -> None:
        """Work for a slice, and once more after a pause if there is more; what a slice adds does not shorten that.

        An exception, which the loop logs, is one of a single piece of work: the others go on after the pause.
        """
        more = True
        began = self._timers.time()
        try:
            more = self._work_for_a_slice()
        finally:
            self._is_scheduled = False
            self._rested_at = began + 2 * (self._timers.time() - began)
            if more:
                self._schedule(PAUSE)

    def _work_for_a_slice(self) -> bool:
        """Whether there is more to do."""
        now = self._timers.time()
        until = now + SLICE
        while now < until:
            began = now
            if self._leaving:
                self._remove_some()
            if self._facts or self._touched:
                self._add_some()
            if self._outbox:
                until -= self._send_some() * _SEND
            elif (answer := self._due.take()) is not None:
                self._make(answer)
                self._due.spent(self._timers.time() - began)
            elif not (self._leaving or self._facts or self._touched):
                return False
            now = self._timers.time()
        return True

    def _add_some(self) -> None:
        """Add answers of the fact whose turn it is to those that are due."""
        if self._facts:
            fact, _ = self._facts.popitem(last=False)
            self._touched.append(iter(self._table.resting_on(fact)))
        left = self._touched.popleft()
        added = 0
        for answer in islice(left, _TOUCHED):
            self.add(answer)
            added += 1
        if added == _TOUCHED:
            self._touched.append(left)

    def _send_some(self) -> int:
        """Send the oldest push to some of its recipients. Returns their number."""
        framed, messages, recipients = self._outbox[0]
        for sent in range(_SENDS):
            session = next(recipients, None)
            if session is None:
                self._outbox.popleft()
                return sent
            self._counts.pushes += messages
            session.deliver(framed)
        return _SENDS

    def _remove_some(self) -> None:
        """Remove subscriptions of the session that was closed first."""
        if sum(1 for _ in islice(self._leaving[0], _SENDS)) < _SENDS:
            self._leaving.popleft()
