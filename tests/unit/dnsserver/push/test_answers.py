"""The table of answers that sessions follow, and the order in which they are made anew."""

from collections.abc import Iterator

from topodns.dependency import Fact, namespace_fact, service_fact
from topodns.dns.message import RRset
from topodns.dns.rrtype import RRType
from topodns.dnsserver.push.answers import AnswerTable, DueAnswers
from topodns.dnsserver.push.budget import PushShares
from topodns.dnsserver.push.difference import PushedRecords
from topodns.dnsserver.push.subscriber import PushedAnswer, Viewer
from topodns.plugins.push import PushCounts

A = RRType.A
ONE, TWO = b"\x0a\0\0\1", b"\x0a\0\0\2"
WEB, SHOP = service_fact("shop", "web"), namespace_fact("shop")


def answer(name: bytes = b"\3web\0", viewer: Viewer | None = None, owner: bytes = ONE) -> PushedAnswer:
    return PushedAnswer(name, A, viewer, owner)


def table(*answers: PushedAnswer) -> tuple[AnswerTable, PushCounts]:
    counts = PushCounts()
    made = AnswerTable(counts, PushShares())
    for each in answers:
        made.add(each)
    return made, counts


def resting_on(answers: AnswerTable, *facts: Fact) -> set[PushedAnswer]:
    return {answer for fact in facts for answer in answers.resting_on(fact)}


def test_an_answer_is_found_by_its_question_and_its_viewer() -> None:
    common, own = answer(), answer(viewer=Viewer(ONE, b"n1"))
    answers, _ = table(common, own)
    assert answers.get(b"\3web\0", A, None) is common
    assert answers.get(b"\3web\0", A, Viewer(ONE, b"n1")) is own
    assert answers.get(b"\3web\0", A, Viewer(ONE, b"n2")) is None
    assert answers.get(b"\3web\0", RRType.AAAA, None) is None
    assert (len(answers), [*answers]) == (2, [common, own])


def test_an_answer_is_found_by_its_present_dependencies_only() -> None:
    web = answer()
    answers, _ = table(web)
    answers.update(web, PushedRecords((), 1), frozenset({WEB, SHOP}))
    assert resting_on(answers, WEB) == resting_on(answers, SHOP) == {web}
    answers.update(web, PushedRecords((), 2), frozenset({SHOP}))
    assert resting_on(answers, WEB) == set()
    assert (answers.rests(WEB), answers.rests(SHOP)) == (False, True)
    answers.remove(web)
    assert resting_on(answers, WEB, SHOP) == set()


def test_memory_is_counted_with_each_answer_and_given_back_with_it() -> None:
    web = answer()
    answers, counts = table(web)
    empty = counts.octets
    rrset = RRset(b"", A, 5, tuple(bytes([10, 0, 0, last]) for last in range(100)))
    answers.update(web, PushedRecords((rrset,), 1), frozenset({WEB}))
    assert counts.octets > empty + 1000
    answers.remove(web)
    answers.remove(web)
    assert counts.octets == 0


def test_memory_counts_for_the_owner_of_an_answer_and_passes_to_the_next_one() -> None:
    shares, counts = PushShares(), PushCounts()
    answers, web = AnswerTable(counts, shares), answer(owner=ONE)
    answers.add(web)
    answers.update(web, PushedRecords((), 1), frozenset({WEB}))
    assert (shares.of(ONE).octets, shares.of(TWO).octets) == (counts.octets, 0)
    answers.charge(web, TWO)
    assert (shares.of(ONE).octets, shares.of(TWO).octets) == (0, counts.octets)
    answers.remove(web)
    assert (counts.octets, len(shares)) == (0, 0)


def test_an_answer_of_one_viewer_can_become_that_of_all() -> None:
    own = answer(viewer=Viewer(ONE, b""))
    answers, _ = table(own)
    answers.share(own)
    assert answers.get(b"\3web\0", A, None) is own
    assert answers.get(b"\3web\0", A, Viewer(ONE, b"")) is None


def taken(due: DueAnswers) -> Iterator[PushedAnswer]:
    while (found := due.take()) is not None:
        yield found


def test_due_answers_come_once_each_in_turns_of_their_addresses() -> None:
    many = [answer(bytes([1, number]) + b"\0") for number in range(97, 101)]
    few = [answer(bytes([1, number]) + b"\0") for number in range(97, 99)]
    due = DueAnswers()
    for address, answers in ((ONE, many), (TWO, few), (ONE, many), (TWO, many)):
        for each in answers:
            due.add(each, address)
    assert [*taken(due)] == [many[0], few[0], many[1], few[1], many[2], many[3]]
    due.add(many[0], TWO)
    assert [*taken(due)] == [many[0]]


def test_what_a_change_has_touched_comes_before_doubts_and_these_before_all_others() -> None:
    touched, doubted, other = (answer(bytes([1, number]) + b"\0") for number in range(97, 100))
    answers, _ = table(other)
    due = DueAnswers()
    due.add_all(answers)
    due.doubt(doubted)
    due.add(touched, ONE)
    assert [*taken(due)] == [touched, doubted, other]


def test_a_second_change_of_everything_makes_all_anew_again_after_the_first() -> None:
    one, two = answer(b"\1a\0"), answer(b"\1b\0")
    answers, _ = table(one, two)
    due = DueAnswers()
    due.add_all(answers)
    assert due.take() is one
    due.add_all(answers)
    due.add_all(answers)
    assert [*taken(due)] == [two, one, two]
