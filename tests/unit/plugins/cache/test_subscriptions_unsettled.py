"""Answers of an upstream whose replicas are not equally far: they are compared with what one of them has pushed."""

import pytest

from tests.support.cache_with_push import NEW, OLD, Pushed, added, gone, removed
from tests.support.cache_with_upstream import addresses, alias, denied, failed, positive, wire
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.push_messages import PushChange
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.plugins.cache.subscriptions import UNSETTLED


def test_an_answer_that_contradicts_what_was_pushed_is_given_and_cached_for_a_second() -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.tell(added(OLD))
    pushed.tell(removed(OLD), added(NEW))
    assert pushed.ask() == "192.0.2.1 1 upstream"  # another replica of the server, which is behind
    assert pushed.ask() == "192.0.2.1 1 success"
    assert pushed.counts.contradicted == 1
    pushed.says(NEW)
    assert pushed.story.after(1) == "192.0.2.2 300 upstream"
    assert pushed.counts.contradicted == 1


@pytest.mark.parametrize(
    ("says", "contradicts"),
    [
        (Response(answer=(addresses(300, NEW, "192.0.2.3"),), flags=Flag.RA), False),
        (Response(answer=(addresses(300, "192.0.2.3", NEW, owner=wire("www.example.")),), flags=Flag.RA), False),
        (Response(answer=(addresses(300, NEW),), flags=Flag.RA), True),
        (Response(answer=(addresses(300, NEW, "192.0.2.3", OLD),), flags=Flag.RA), True),
        (Response(answer=(alias(300, "x."), addresses(300, NEW, owner=wire("x."))), flags=Flag.RA), True),
        (denied(), True),
        (denied(Rcode.NOERROR), True),
    ],
)
def test_the_records_of_an_answer_are_compared_with_those_pushed(says: Response, contradicts: bool) -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.tell(added(OLD), added("192.0.2.3"))
    pushed.tell(removed(OLD), added(NEW))
    pushed.story.upstream.says = says
    answer = pushed.ask()
    assert answer.endswith(" 1 upstream" if contradicts else " 300 upstream")
    assert pushed.counts.contradicted == int(contradicts)


def test_a_name_that_has_become_empty_contradicts_an_answer_with_records() -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.tell(gone())
    assert pushed.ask() == "192.0.2.1 1 upstream"
    assert pushed.counts.contradicted == 1


def test_a_name_that_was_empty_when_it_was_subscribed_to_contradicts_an_answer_with_records() -> None:
    """Nothing is pushed about it: the response to SUBSCRIBE alone says that there are no records."""
    pushed = Pushed()
    pushed.story.upstream.says = denied()
    pushed.subscribe()
    assert pushed.ask() == "NXDOMAIN 300 denial"
    pushed.tell(added(NEW))
    pushed.tell(gone())
    pushed.says(NEW)
    assert pushed.ask() == "192.0.2.2 1 upstream"
    assert pushed.counts.contradicted == 1


SRV = PushChange(wire("www.example."), RRType.SRV, RRClass.IN, 5, b"\0\0\0\0\0\x35" + wire("a.example."))
GLUE = Response(
    answer=(RRset(b"", RRType.SRV, 300, (SRV.rdata,)),),
    additional=(addresses(300, OLD, owner=wire("a.example.")),),
    flags=Flag.RA,
)
CHAIN = Response(answer=(alias(300, "x."), addresses(300, OLD, owner=wire("x."))), flags=Flag.RA)
MANY = [added(f"10.0.{number >> 8}.{number & 255}") for number in range(1025)]


@pytest.mark.parametrize(
    ("question", "says", "changes"),
    [
        pytest.param("www.example. SRV", GLUE, [SRV], id="addresses beside SRV"),
        pytest.param("www.example. A", CHAIN, [PushChange(*SRV[:1], RRType.CNAME, 1, 5, wire("x."))], id="CNAME"),
        pytest.param("www.example. A", CHAIN, [gone()], id="CNAME that is not pushed"),
        pytest.param("www.example. A", denied(), [gone()], id="NXDOMAIN"),
        pytest.param("www.example. A", denied(Rcode.NOERROR), [gone()], id="NODATA"),
        pytest.param("www.example. A", positive(300, OLD), MANY, id="more records than are remembered"),
    ],
)
def test_what_cannot_be_compared_is_cached_for_a_second_shortly_after_a_push(
    question: str, says: Response, changes: list[PushChange]
) -> None:
    """It may be of a replica that is behind, whose clients would have it for the TTL."""
    pushed = Pushed()
    pushed.story.upstream.says = says
    pushed.subscribe(question)
    pushed.tell(*changes)
    for _ in range(2):
        assert pushed.ask(question).endswith(" 1 upstream")
        pushed.story.timers.advance(1)
    pushed.story.timers.advance(UNSETTLED - 2)
    assert pushed.ask(question).endswith(" 300 upstream")
    assert pushed.counts.contradicted == 0


def test_a_failure_contradicts_nothing() -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.tell(added(NEW))
    pushed.story.upstream.says = failed()
    assert pushed.ask() == "SERVFAIL upstream"
    assert pushed.counts.contradicted == 0


def test_an_alias_and_the_addresses_that_replace_it_are_told_apart() -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.tell(PushChange(wire("www.example."), RRType.CNAME, RRClass.IN, 5, wire("x.")))
    pushed.tell(added(OLD), gone(rtype=RRType.CNAME))
    assert pushed.ask() == "192.0.2.1 300 upstream"
