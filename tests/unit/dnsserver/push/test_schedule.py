"""The slices of a publisher's work: what is in one of them, and whose answer comes first."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.push_client import NOERROR, REFUSED, SERVFAIL, unsubscribe
from tests.support.push_server import ClientConnection, PushServer
from tests.support.scripted_step import Scripted
from tests.support.virtual_timers import VirtualTimers
from topodns.dependency import Fact, service_fact
from topodns.dns.message import Query
from topodns.dns.name import name_text
from topodns.dns.rrtype import Rcode, RRType
from topodns.dnsserver.push.answers import AnswerTable, PushedAnswer, PushedRecords
from topodns.dnsserver.push.schedule import PAUSE, SLICE, DueAnswers, PushSchedule
from topodns.memory.budget import FairShares
from topodns.plugins.push import PushCounts
from topodns.query.plugin import Client, Resolution, Scope

ONE, TWO = b"\x0a\0\0\1", b"\x0a\0\0\2"
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
        self.timers, counts = TickingTimers(), PushCounts()
        table = AnswerTable(counts.memory)
        self.slice_of: dict[bytes, int] = {}
        self.schedule = PushSchedule(self.timers, table, counts, self._make)
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

    def run(self) -> None:
        while self.timers.pending:
            self.timers.advance_slice()


def test_a_change_that_touches_thousands_of_answers_is_taken_up_in_slices() -> None:
    made = Made(5000)
    made.schedule.touch((LARGE,))
    assert not made.slice_of, "nothing is done at once"
    made.run()
    assert len(made.slice_of) == 5000
    assert max(Counter(made.slice_of.values()).values()) <= 10


def test_a_small_change_does_not_wait_for_the_answers_of_a_large_one_before_it() -> None:
    made = Made(5000)
    made.schedule.touch((LARGE,))
    made.schedule.touch((SMALL,))
    made.run()
    assert made.slice_of[b"\5small\0"] <= 2


def test_an_answer_that_cannot_be_made_does_not_keep_the_others_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(5)
    make = made.schedule._make

    def fail_once(answer: PushedAnswer) -> None:
        make(answer)
        monkeypatch.setattr(made.schedule, "_make", make)
        raise RuntimeError("a bug")

    monkeypatch.setattr(made.schedule, "_make", fail_once)
    made.schedule.touch((LARGE,))
    with pytest.raises(RuntimeError):
        made.run()
    assert len(made.slice_of) == 1
    made.run()
    assert len(made.slice_of) == 5


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
    of_second = server.counts.memory.of(second.address)
    assert server.counts.memory.of(first.address) > of_second
    first.close()
    server.settle()
    assert server.counts.memory.of(second.address) == server.counts.octets > of_second
    assert server.known_addresses == 1


class Costly(Scripted):
    """A step that takes so many seconds of the server's time for names below `large`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(bytes(4), facts=(LARGE,))
        self.seconds = seconds
        self.worked = 0.0
        self.server: PushServer

    def __call__(self, query: Query, client: Client) -> Resolution:
        if "large" in query.qname:
            self.worked += self.seconds
            self.server.timers.pass_by(self.seconds)
        return super().__call__(query, client)


def costly_server(seconds: float) -> tuple[PushServer, Costly]:
    step = Costly(seconds)
    step.server = PushServer(step)
    return step.server, step


def subscribe_over_and_over(client: ClientConnection, name: str, times: int) -> int:
    """Subscribe and unsubscribe so many times; returns how many answers came at once."""
    at_once = 0
    for _ in range(times):
        at_once += client.subscribe(name) == NOERROR
        client.tell(unsubscribe(client.idents))
    return at_once


def test_first_answers_come_at_once_while_they_take_little_time() -> None:
    server, _ = costly_server(SLICE / 10)
    client = server.connect()
    rcodes = [client.subscribe(f"n{n}.large.default.svc.cluster.local.") for n in range(20)]
    at_once = rcodes.count(NOERROR)
    assert 5 <= at_once <= 12
    assert rcodes == [NOERROR] * at_once + [-1] * (20 - at_once)
    server.settle()
    assert {each.rcode for each in client.responses} == {NOERROR}
    assert client.addresses("n19.large.default.svc.cluster.local.") == ["0.0.0.0"]
    assert client.subscribe("n20.large.default.svc.cluster.local.") == NOERROR


def test_subscribing_to_a_large_answer_over_and_over_makes_it_for_half_of_the_time_at_most() -> None:
    server, step = costly_server(16 * SLICE)
    client = server.connect()
    began = server.timers.time()
    for _ in range(100):
        assert subscribe_over_and_over(client, "large.default.svc.cluster.local.", 50) <= 1
        client.subscribe("large.default.svc.cluster.local.")
        server.timers.advance(SLICE)
        client.tell(unsubscribe(client.idents))
    elapsed = server.timers.time() - began
    assert 2 * step.seconds < step.worked <= elapsed / 2 + step.seconds


def test_subscribing_over_and_over_to_an_answer_that_others_follow_sends_it_for_half_of_the_time_at_most() -> None:
    server, step = costly_server(16 * SLICE)
    follower, client = server.connect("10.0.0.1"), server.connect("10.0.0.2")
    follower.subscribe("large.default.svc.cluster.local.")
    assert subscribe_over_and_over(client, "large.default.svc.cluster.local.", 50) == 0
    assert client.subscribe("large.default.svc.cluster.local.") == -1
    server.settle()
    assert client.responses[-1].rcode == NOERROR
    assert client.addresses("large.default.svc.cluster.local.") == ["0.0.0.0"]
    assert step.worked == 2 * step.seconds
    step.rdatas = (bytes((10, 0, 0, 1)),)
    server.publisher.touched(frozenset({LARGE}))
    server.settle()
    for each in (follower, client):
        assert each.addresses("large.default.svc.cluster.local.") == ["10.0.0.1"]


def test_small_answers_do_not_wait_for_the_large_ones_of_another_client() -> None:
    server, step = costly_server(16 * SLICE)
    flooder, cache = server.connect("10.0.0.1"), server.connect("10.0.0.2")
    for number in range(20):
        flooder.subscribe(f"n{number}.large.default.svc.cluster.local.")
    for number in range(200):
        cache.subscribe(f"n{number}.default.svc.cluster.local.")
    while len(cache.responses) < 200:
        server.timers.advance(SLICE)
    assert step.worked <= 3 * step.seconds
    server.settle()
    assert len(flooder.responses) == 20


def waiting_beside_a_follower(step: Costly) -> tuple[ClientConnection, ClientConnection]:
    """A client that follows the large answer, and another one whose SUBSCRIBE to it waits for its turn."""
    follower, waiting = step.server.connect("10.0.0.1"), step.server.connect("10.0.0.2")
    assert follower.subscribe("large.default.svc.cluster.local.") == NOERROR
    assert waiting.subscribe("large.default.svc.cluster.local.") == -1
    return follower, waiting


def test_one_that_waits_gets_the_records_of_an_answer_that_is_not_the_same_for_all_any_more() -> None:
    server, step = costly_server(16 * SLICE)
    clients = waiting_beside_a_follower(step)
    step.scope, step.rdatas = Scope.CLIENT, (bytes((10, 0, 0, 1)),)
    server.publisher.touched(frozenset({LARGE}))
    server.settle()
    for each in clients:
        assert [response.rcode for response in each.responses] == [NOERROR]
        assert each.addresses("large.default.svc.cluster.local.") == ["10.0.0.1"]
    step.rdatas = (bytes((10, 0, 0, 2)),)
    server.publisher.touched(frozenset({LARGE}))
    server.settle()
    for each in clients:
        assert each.addresses("large.default.svc.cluster.local.") == ["10.0.0.2"]


@pytest.mark.parametrize(
    ("rcode", "dropped", "refusal", "left"),
    [(Rcode.SERVFAIL, False, SERVFAIL, ["0.0.0.0"]), (Rcode.NOERROR, True, REFUSED, [])],
    ids=["not ready", "not for these clients"],
)
def test_one_that_waits_is_refused_an_answer_that_cannot_be_had_now(
    rcode: int, dropped: bool, refusal: int, left: list[str]
) -> None:
    server, step = costly_server(16 * SLICE)
    follower, waiting = waiting_beside_a_follower(step)
    step.rcode, step.dropped = rcode, dropped
    server.publisher.touched(frozenset({LARGE}))
    server.settle()
    assert [response.rcode for response in waiting.responses] == [refusal]
    assert follower.addresses("large.default.svc.cluster.local.") == left
    assert server.counts.subscriptions == 1
    step.rcode, step.dropped = Rcode.NOERROR, False
    assert waiting.subscribe("large.default.svc.cluster.local.") in (NOERROR, refusal)


def test_one_that_waits_may_leave_before_its_turn() -> None:
    server, step = costly_server(16 * SLICE)
    follower, waiting = waiting_beside_a_follower(step)
    waiting.close()
    server.settle()
    assert server.counts.subscriptions == 1
    follower.close()
    server.settle()
    assert (server.counts.subscriptions, server.counts.octets) == (0, 0)


def answer_of(name: bytes) -> PushedAnswer:
    return PushedAnswer(name, RRType.A, None, ONE)


def table(*answers: PushedAnswer) -> AnswerTable:
    made = AnswerTable(FairShares())
    for each in answers:
        made.add(each)
    return made


def taken(due: DueAnswers) -> Iterator[PushedAnswer]:
    while (found := due.take()) is not None:
        yield found


def test_due_answers_come_once_each_in_turns_of_their_addresses() -> None:
    many = [answer_of(bytes([1, number]) + b"\0") for number in range(97, 101)]
    few = [answer_of(bytes([1, number]) + b"\0") for number in range(97, 99)]
    due = DueAnswers()
    for address, answers in ((ONE, many), (TWO, few), (ONE, many), (TWO, many)):
        for each in answers:
            due.add(each, address)
    assert [*taken(due)] == [many[0], few[0], many[1], few[1], many[2], many[3]]
    due.add(many[0], TWO)
    assert [*taken(due)] == [many[0]]


def test_what_a_change_has_touched_comes_before_doubts_and_these_before_all_others() -> None:
    touched, doubted, other = (answer_of(bytes([1, number]) + b"\0") for number in range(97, 100))
    answers = table(other)
    due = DueAnswers()
    due.add_all(answers)
    due.doubt(doubted)
    due.add(touched, ONE)
    assert [*taken(due)] == [touched, doubted, other]


def test_a_second_change_of_everything_makes_all_anew_again_after_the_first() -> None:
    one, two = answer_of(b"\1a\0"), answer_of(b"\1b\0")
    answers = table(one, two)
    due = DueAnswers()
    due.add_all(answers)
    assert due.take() is one
    due.add_all(answers)
    due.add_all(answers)
    assert [*taken(due)] == [two, one, two]
