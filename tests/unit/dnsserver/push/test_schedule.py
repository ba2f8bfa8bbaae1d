"""The slices of a publisher's work: what is in one of them, and whose answer comes first."""

from collections import Counter

from tests.support.push_client import NOERROR
from tests.support.push_server import PushServer
from tests.support.scripted_step import Scripted
from tests.support.virtual_timers import VirtualTimers
from topodns.dependency import Fact, service_fact
from topodns.dns.name import name_text
from topodns.dns.rrtype import RRType
from topodns.dnsserver.push.answers import AnswerTable, PushedAnswer
from topodns.dnsserver.push.budget import PushShares
from topodns.dnsserver.push.difference import PushedRecords
from topodns.dnsserver.push.schedule import PAUSE, SLICE, PushSchedule
from topodns.dnsserver.push.session import PushSession
from topodns.plugins.push import PushCounts

LARGE, SMALL = service_fact("default", "large"), service_fact("default", "small")
POPULAR = "popular.default.svc.cluster.local."


class TickingTimers(VirtualTimers):
    """A clock that each look at it advances by a tenth of a slice."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.slices = 0

    def time(self) -> float:
        self.looks += 1
        return super().time() + self.looks * SLICE / 10

    def advance_slice(self) -> None:
        self.slices += 1
        self.advance(0.9 * PAUSE)


class Made:
    """A schedule for a table of answers, and in which slice each was made anew."""

    def __init__(self, answers: int) -> None:
        self.timers, counts, shares = TickingTimers(), PushCounts(), PushShares()
        table = AnswerTable(counts, shares)
        self.slice_of: dict[bytes, int] = {}
        self.schedule = PushSchedule(self.timers, table, counts, shares, self._make, self._never)
        for number in range(answers):
            self._add(table, b"\4%04d\0" % number, LARGE, b"\x0a\0\0\1")
        self._add(table, b"\5small\0", SMALL, b"\x0a\0\0\2")

    def _add(self, table: AnswerTable, qname: bytes, fact: Fact, owner: bytes) -> None:
        answer = PushedAnswer(qname, RRType.A, None, owner)
        table.add(answer)
        table.update(answer, PushedRecords((), 0), frozenset({fact}))

    def _make(self, answer: PushedAnswer) -> None:
        assert answer.qname not in self.slice_of
        self.slice_of[answer.qname] = self.timers.slices

    def _never(self, session: PushSession, answer: PushedAnswer) -> None:
        raise AssertionError("there is no session")

    def run(self) -> None:
        while self.timers.pending:
            self.timers.advance_slice()


def test_a_change_that_touches_thousands_of_answers_is_taken_up_in_slices() -> None:
    made = Made(5000)
    made.schedule.touch((LARGE,))
    assert made.timers.looks == 0, "nothing is done at once"
    made.run()
    assert len(made.slice_of) == 5000
    assert max(Counter(made.slice_of.values()).values()) <= 10


def test_a_small_change_does_not_wait_for_the_answers_of_a_large_one_before_it() -> None:
    made = Made(5000)
    made.schedule.touch((LARGE,))
    made.schedule.touch((SMALL,))
    made.run()
    assert made.slice_of[b"\5small\0"] <= 2


def test_a_flooder_does_not_delay_answers_that_others_follow_whether_it_subscribed_first_or_last() -> None:
    for flooder_is_first in (True, False):
        step = Scripted(bytes(4), facts=(LARGE,))
        server = PushServer(step)
        flooder, cache = server.connect("10.0.0.1"), server.connect("10.0.0.2")
        clients = (flooder, cache) if flooder_is_first else (cache, flooder)
        assert {each.subscribe(POPULAR) for each in clients} == {NOERROR}
        for number in range(2000):
            flooder.subscribe(f"n{number}.large.default.svc.cluster.local.")
        step.asked.clear()
        server.publisher.touched(frozenset({LARGE}))
        server.settle()
        order = [name_text(query.qname) for query, _ in step.asked]
        assert len(order) == 2001
        assert order.index(POPULAR) < 100, flooder_is_first


def test_the_owner_of_an_answer_may_leave_and_the_memory_counts_for_one_that_stays() -> None:
    server = PushServer(Scripted(bytes(4), facts=(LARGE,)))
    first, second = server.connect("10.0.0.1"), server.connect("10.0.0.2")
    for each in (first, second):
        each.subscribe(POPULAR)
    of_second = server.shares.of(second.address).octets
    assert server.shares.of(first.address).octets > of_second
    first.close()
    server.settle()
    assert server.shares.of(second.address).octets == server.counts.octets > of_second
    assert len(server.shares) == 1
