"""The answers that subscriptions follow: by question and viewer, by their dependencies, and those to make anew."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Final

from topodns.dependency import Fact
from topodns.dnsserver.push.budget import PushShares
from topodns.dnsserver.push.difference import PushedRecords
from topodns.dnsserver.push.subscriber import PushedAnswer, Viewer
from topodns.plugins.push import PushCounts

_ANSWER: Final = 1000  # octets of an answer beside its name, records and dependencies, as by bench/push_memory.py
_FACT: Final = 250  # octets of a dependency and its place in the index
_DEBTS: Final = 1024  # addresses; beyond, those are forgotten whose turn has come since


class AnswerTable:
    """All answers of a listener. `counts.octets` and `shares` have their memory."""

    def __init__(self, counts: PushCounts, shares: PushShares) -> None:
        self._counts = counts
        self._shares = shares
        self._answers: dict[tuple[bytes, int, Viewer | None], PushedAnswer] = {}
        self._by_fact: dict[Fact, set[PushedAnswer]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[PushedAnswer]:
        return iter(self._answers.values())

    def get(self, qname: bytes, qtype: int, viewer: Viewer | None) -> PushedAnswer | None:
        return self._answers.get((qname, qtype, viewer))

    def add(self, answer: PushedAnswer) -> None:
        """Add an answer; there is none for its question and viewer yet."""
        self._answers[(answer.qname, answer.qtype, answer.viewer)] = answer
        self._weigh(answer)

    def remove(self, answer: PushedAnswer) -> None:
        """Remove an answer; no effect if it is not there."""
        key = (answer.qname, answer.qtype, answer.viewer)
        if self._answers.get(key) is answer:
            del self._answers[key]
            self._index(answer, frozenset())
            self._count(answer, 0)

    def share(self, answer: PushedAnswer) -> None:
        """Make the answer of one viewer that of all; there is none for all yet."""
        del self._answers[(answer.qname, answer.qtype, answer.viewer)]
        answer.viewer = None
        self._answers[(answer.qname, answer.qtype, None)] = answer

    def update(self, answer: PushedAnswer, records: PushedRecords, facts: frozenset[Fact]) -> None:
        """Set the records and dependencies of an answer in the table."""
        answer.records = records
        if facts != answer.facts:
            self._index(answer, facts)
        self._weigh(answer)

    def charge(self, answer: PushedAnswer, owner: bytes) -> None:
        """Let the memory of an answer count for another address."""
        octets = answer.octets
        self._count(answer, 0)
        answer.owner = owner
        self._count(answer, octets)

    def rests(self, fact: Fact) -> bool:
        """Whether any answer depends on this fact."""
        return fact in self._by_fact

    def resting_on(self, fact: Fact) -> tuple[PushedAnswer, ...]:
        """The answers that depend on this fact."""
        return tuple(self._by_fact.get(fact, ()))

    def _index(self, answer: PushedAnswer, facts: frozenset[Fact]) -> None:
        for fact in answer.facts - facts:
            resting = self._by_fact[fact]
            resting.discard(answer)
            if not resting:
                del self._by_fact[fact]
        for fact in facts - answer.facts:
            self._by_fact.setdefault(fact, set()).add(answer)
        answer.facts = facts

    def _weigh(self, answer: PushedAnswer) -> None:
        records = answer.records.octets if answer.records is not None else 0
        self._count(answer, _ANSWER + len(answer.qname) + records + len(answer.facts) * _FACT)

    def _count(self, answer: PushedAnswer, octets: int) -> None:
        if octets != answer.octets:
            self._counts.octets += octets - answer.octets
            self._shares.add(answer.owner, 0, octets - answer.octets)
            answer.octets = octets


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
