"""The table of answers that sessions follow."""

from topodns.dependency import Fact, namespace_fact, service_fact
from topodns.dns.message import RRset
from topodns.dns.rrtype import RRType
from topodns.dnsserver.push.answers import AnswerTable, PushedAnswer, PushedRecords, Viewer
from topodns.memory.budget import FairShares

A = RRType.A
ONE, TWO = b"\x0a\0\0\1", b"\x0a\0\0\2"
WEB, SHOP = service_fact("shop", "web"), namespace_fact("shop")


def answer(name: bytes = b"\3web\0", viewer: Viewer | None = None, owner: bytes = ONE) -> PushedAnswer:
    return PushedAnswer(name, A, viewer, owner)


def table(*answers: PushedAnswer) -> tuple[AnswerTable, FairShares]:
    memory = FairShares()
    made = AnswerTable(memory)
    for each in answers:
        made.add(each)
    return made, memory


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
    answers, memory = table(web)
    empty = memory.octets
    rrset = RRset(b"", A, 5, tuple(bytes([10, 0, 0, last]) for last in range(100)))
    answers.update(web, PushedRecords((rrset,), 1), frozenset({WEB}))
    assert memory.octets > empty + 1000
    answers.remove(web)
    answers.remove(web)
    assert memory.octets == 0


def test_memory_counts_for_the_owner_of_an_answer_and_passes_to_the_next_one() -> None:
    web = answer(owner=ONE)
    answers, memory = table(web)
    answers.update(web, PushedRecords((), 1), frozenset({WEB}))
    assert (memory.of(ONE), memory.of(TWO)) == (memory.octets, 0)
    answers.charge(web, TWO)
    assert (memory.of(ONE), memory.of(TWO)) == (0, memory.octets)
    answers.remove(web)
    assert (memory.octets, memory.of(TWO)) == (0, 0)


def test_an_answer_of_one_viewer_can_become_that_of_all() -> None:
    own = answer(viewer=Viewer(ONE, b""))
    answers, _ = table(own)
    answers.share(own)
    assert answers.get(b"\3web\0", A, None) is own
    assert answers.get(b"\3web\0", A, Viewer(ONE, b"")) is None
