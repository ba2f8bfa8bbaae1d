"""The answers that subscriptions follow: by question and viewer, by their dependencies, and those to make anew."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from topodns.dependency import Fact
from topodns.dnsserver.push.difference import PushedRecords
from topodns.plugins.push import PushCounts

if TYPE_CHECKING:
    from topodns.dnsserver.push.session import PushSession

SUBSCRIPTION: Final = 120
"""Octets of a subscription beside its answer; these four as measured by bench/push_memory.py."""
_ANSWER: Final = 1000  # octets of an answer beside its name, records and dependencies
_RECORD: Final = 16  # octets of a record: mostly its RDATA is also kept by the state of the cluster
_FACT: Final = 250  # octets of a dependency and its place in the index


class Viewer(NamedTuple):
    """The client of an answer, as far as the answer may depend on it. `node_name`: its claim, b"" for none."""

    address: bytes  # packed
    node_name: bytes


class PushedAnswer:
    """An answer to which sessions are subscribed.

    `viewer`: the client for which it is made; None: the same for all clients. `records` None: the first answer is
    awaited. `owner`: the address of the last subscriber, which bears the cost of making it anew.
    """

    __slots__ = (
        *("again", "facts", "octets", "owner", "pending"),
        *("qname", "qtype", "records", "subscribers", "viewer", "waiting"),
    )

    def __init__(self, qname: bytes, qtype: int, viewer: Viewer | None, owner: bytes) -> None:
        self.qname = qname
        self.qtype = qtype
        self.viewer = viewer
        self.owner = owner
        self.subscribers: dict[PushSession, int] = {}  # -> the id of its SUBSCRIBE
        self.waiting: list[tuple[PushSession, int]] = []  # sessions without a response, and the ids of their requests
        self.records: PushedRecords | None = None
        self.facts: frozenset[Fact] = frozenset()
        self.octets = 0  # as counted
        self.pending = False  # being made, by a deferred answer
        self.again = False  # to be made once more when that is done

    def __repr__(self) -> str:
        return f"<PushedAnswer {self.qname!r} {self.qtype}, {len(self.subscribers)} subscribers>"


class AnswerTable:
    """All answers of a listener. `counts.octets` has their memory."""

    def __init__(self, counts: PushCounts) -> None:
        self._counts = counts
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
            self._counts.octets -= answer.octets
            answer.octets = 0

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

    def resting_on(self, facts: Iterable[Fact]) -> Iterator[PushedAnswer]:
        """The answers that depend on one of these facts; some perhaps several times."""
        for fact in facts:
            yield from self._by_fact.get(fact, ())

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
        records = answer.records.size if answer.records is not None else 0
        octets = _ANSWER + len(answer.qname) + records * _RECORD + len(answer.facts) * _FACT
        self._counts.octets += octets - answer.octets
        answer.octets = octets


class DueAnswers:
    """The answers to make anew, in turns of the addresses that own them, so that none delays those of others much.

    Answers that a change has touched come first, then those that a client doubts, then all others after a change that
    may have touched any.
    """

    def __init__(self) -> None:
        self._touched: dict[bytes, OrderedDict[PushedAnswer, None]] = {}  # by owner, the oldest first
        self._owners: deque[bytes] = deque()  # of `_touched`
        self._doubted: OrderedDict[PushedAnswer, None] = OrderedDict()
        self._all: Iterator[PushedAnswer] = iter(())
        self._all_again: AnswerTable | None = None

    def add(self, answer: PushedAnswer) -> None:
        """Add an answer that a change has touched."""
        owned = self._touched.get(answer.owner)
        if owned is None:
            owned = self._touched[answer.owner] = OrderedDict()
            self._owners.append(answer.owner)
        owned[answer] = None

    def doubt(self, answer: PushedAnswer) -> None:
        """Add an answer that a client doubts."""
        self._doubted[answer] = None

    def add_all(self, table: AnswerTable) -> None:
        """Add all answers of the table, as of the time when their turn comes."""
        self._all_again = table

    def take(self) -> PushedAnswer | None:
        """Remove and return the next answer, which may have no subscribers any more; None if there is none."""
        if self._owners:
            owner = self._owners.popleft()
            owned = self._touched[owner]
            answer, _ = owned.popitem(last=False)
            if owned:
                self._owners.append(owner)
            else:
                del self._touched[owner]
            return answer
        if self._doubted:
            return self._doubted.popitem(last=False)[0]
        return self._next_of_all()

    def _next_of_all(self) -> PushedAnswer | None:
        found = next(self._all, None)
        if found is None and self._all_again is not None:
            self._all, self._all_again = iter(tuple(self._all_again)), None
            found = next(self._all, None)
        return found
