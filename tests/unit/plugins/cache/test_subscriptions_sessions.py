"""Sessions of a cache with `push`: which upstream is asked when, and what a refusal or a loss leaves behind.

Answers of an upstream whose replicas are not equally far are compared with what one of them has pushed.
"""

from collections.abc import Callable

import pytest

from tests.support.cache_with_push import NEW, OLD, WWW, Pushed, added, gone, removed, subject, subscribed_to
from tests.support.cache_with_upstream import addresses, alias, denied, failed, positive, wire
from tests.support.dso_upstream import Wire
from topodns.dns.dso import DsoType, retry_delay_tlv
from topodns.dns.message import Flag, Response, RRset
from topodns.dns.push_messages import PushChange
from topodns.dns.rrtype import RCODE_NAMES, Rcode, RRClass, RRType
from topodns.net.upstream.dso_session import MAX_RETRY_DELAY, PATIENCE, RETRY_LOST, RETRY_REFUSED, SessionUser
from topodns.plugins.cache.subscriptions import (
    MAX_REFUSALS,
    RETRY_SOONEST,
    RETRY_SUBSCRIBE,
    UNSETTLED,
)


def test_an_upstream_that_refuses_dso_is_asked_again_after_a_minute_and_entries_live_by_their_ttl() -> None:
    pushed = Pushed()
    pushed.ask()
    pushed.ask()
    pushed.wire.respond(Rcode.NOTIMP)
    assert pushed.ask() == "192.0.2.1 300 success"
    assert pushed.push.active is False
    pushed.story.timers.advance(RETRY_REFUSED - 1)
    pushed.ask()
    assert len(pushed.wires) == 1
    pushed.story.timers.advance(RETRY_REFUSED / 4 + 1)
    pushed.ask()
    assert len(pushed.wires) == 2
    assert (pushed.counts.refused_sessions, pushed.push.is_connected) == (1, False)


@pytest.mark.parametrize(
    ("act", "lasts"), [(Wire.abort, 0.0), (lambda _: None, PATIENCE)], ids=["a lost connection", "silence"]
)
def test_a_session_that_fails_before_the_first_response_is_tried_again_soon(
    act: Callable[[Wire], object], lasts: float
) -> None:
    pushed = Pushed()
    pushed.ask()
    pushed.ask()
    act(pushed.wire)
    pushed.story.timers.advance(lasts + 2 * RETRY_LOST)
    assert len(pushed.wires) == 2
    pushed.wire.establish()
    pushed.wire.respond()
    assert (pushed.push.live, pushed.counts.failed_sessions, pushed.counts.refused_sessions) == (1, 1, 0)


def test_an_upstream_that_closes_each_session_is_asked_about_once_a_minute() -> None:
    pushed = Pushed()
    pushed.ask()
    for _ in range(1200):
        pushed.ask()
        if pushed.wires and pushed.wire.state == "open":
            pushed.wire.abort()
        pushed.story.timers.advance(1)
    assert 10 <= len(pushed.wires) <= 30
    assert pushed.counts.failed_sessions == len(pushed.wires)


@pytest.mark.parametrize("rcode", [Rcode.SERVFAIL, Rcode.REFUSED, Rcode.NOTAUTH, Rcode.FORMERR])
def test_a_refused_subscription_leaves_the_entry_its_ttl_and_gives_its_place_free(rcode: int) -> None:
    pushed = Pushed(most=1)
    pushed.ask()
    pushed.ask()
    pushed.wire.establish()
    pushed.wire.respond(rcode)
    assert pushed.push.active is False
    assert pushed.ask() == "192.0.2.1 300 success"
    assert pushed.counts.refused == {RCODE_NAMES[rcode]: 1}
    pushed.live_for(RETRY_SUBSCRIBE - 1)
    pushed.ask()
    assert pushed.wire.sent == []
    pushed.subscribe("other.example. A")
    assert pushed.push.live == 1


def test_a_session_whose_subscriptions_are_refused_is_closed_after_the_inactivity_timeout() -> None:
    pushed = Pushed()
    pushed.ask()
    pushed.ask()
    pushed.wire.establish(inactivity=10_000)
    pushed.wire.respond(Rcode.REFUSED)
    pushed.story.timers.advance(7.5)
    pushed.wire.establish(inactivity=10_000)
    pushed.story.timers.advance(7.5)
    assert pushed.wire.state == "left"


def test_a_refused_subscription_waits_in_the_next_session_too() -> None:
    """RFC 8490 section 7.2.2: the time is that of the upstream, whatever becomes of the session."""
    pushed = Pushed()
    pushed.subscribe("other.example. A")
    pushed.ask()
    pushed.ask()
    pushed.wire.respond(Rcode.SERVFAIL, retry_delay_tlv(300_000))
    pushed.wire.abort()
    pushed.story.timers.advance(2 * RETRY_LOST)
    pushed.wire.establish()
    pushed.ask()
    assert subscribed_to(pushed.wire) == [subject("other.example. A")]
    pushed.wire.respond()
    pushed.live_for(294)
    pushed.ask()
    assert subscribed_to(pushed.wire) == []
    pushed.live_for(6)
    pushed.ask()
    pushed.ask()
    assert subscribed_to(pushed.wire) == [subject()]


def test_another_upstream_has_refused_nothing() -> None:
    pushed = Pushed(upstreams=2)
    pushed.subscribe("other.example. A")
    pushed.ask()
    pushed.ask()
    pushed.wire.respond(Rcode.NOTAUTH)
    pushed.wire.abort()
    pushed.story.timers.advance(2 * RETRY_LOST)
    (second,) = pushed.upstreams[1].wires
    second.establish()
    pushed.ask()
    assert subscribed_to(second) == [subject("other.example. A"), subject()]


def test_refusals_are_bounded() -> None:
    pushed = Pushed(most=2 * MAX_REFUSALS)
    for number in range(MAX_REFUSALS + 1):
        for _ in range(2):
            pushed.ask(f"n{number}.example. A")
        if not number:
            pushed.wire.establish()
        pushed.wire.respond(Rcode.REFUSED)
    assert len(pushed.push._refused) == MAX_REFUSALS


@pytest.mark.parametrize(("wish", "waits"), [(0.1, RETRY_SOONEST), (30.0, 30.0)])
def test_a_refused_subscription_is_tried_again_when_the_upstream_wants_it(wish: float, waits: float) -> None:
    pushed = Pushed()
    pushed.ask()
    pushed.ask()
    pushed.wire.establish()
    pushed.wire.respond(Rcode.SERVFAIL, retry_delay_tlv(int(wish * 1000)))
    pushed.live_for(waits - 0.5)
    pushed.ask()
    assert subscribed_to(pushed.wire) == []
    pushed.live_for(0.5)
    pushed.ask()
    assert subscribed_to(pushed.wire) == [subject()]
    pushed.wire.respond()
    assert pushed.push.live == 1


def test_after_a_lost_session_another_one_makes_the_subscriptions_again() -> None:
    pushed = Pushed()
    pushed.subscribe(WWW, "other.example. A")
    pushed.wire.abort()
    assert (pushed.push.live, pushed.push.is_connected, pushed.counts.lost_sessions) == (0, False, 1)
    assert pushed.ask() == "192.0.2.1 300 success"
    pushed.story.timers.advance(2 * RETRY_LOST)
    assert len(pushed.wires) == 2
    pushed.wire.establish()
    assert subscribed_to(pushed.wire) == [subject(WWW), subject("other.example. A")]
    pushed.says(NEW)
    pushed.wire.respond()
    pushed.tell(added(NEW))
    assert pushed.ask() == "192.0.2.2 300 upstream"  # what changed in between was not pushed


def test_what_was_pushed_in_a_lost_session_contradicts_nothing() -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.tell(removed(OLD), added(NEW))
    pushed.wire.abort()
    assert pushed.ask() == "192.0.2.1 300 upstream"


def test_connections_that_cannot_be_opened_are_tried_less_and_less_often() -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.upstreams[0].accepts = False
    pushed.wire.abort()
    tries = 0
    original = pushed.upstreams[0].begin_session

    def counted(user: SessionUser) -> bool:
        nonlocal tries
        tries += 1
        return original(user)

    pushed.upstreams[0].begin_session = counted  # type: ignore[method-assign]
    for _ in range(600):
        pushed.story.timers.advance(1)
        pushed.ask()
    assert 8 <= tries <= 25


def test_a_retry_delay_of_the_upstream_is_respected_up_to_an_hour() -> None:
    for wish, waits in ((30.0, 30.0), (1e6, MAX_RETRY_DELAY)):
        pushed = Pushed()
        pushed.subscribe()
        pushed.wire.notify(DsoType.RETRY_DELAY, int(wish * 1000).to_bytes(4, "big"))
        for _ in range(int(waits) - 1):
            pushed.story.timers.advance(1)
            pushed.ask()
        assert len(pushed.wires) == 1
        for _ in range(3):
            pushed.story.timers.advance(1)
            pushed.ask()
        assert len(pushed.wires) == 2


@pytest.mark.parametrize("wish", [0, 3_600_000])
def test_the_next_upstream_is_asked_at_once_after_one_that_refuses(wish: int) -> None:
    pushed = Pushed(upstreams=2)
    pushed.ask()
    pushed.ask()
    pushed.wire.respond(Rcode.NOTIMP, *((retry_delay_tlv(wish),) if wish else ()))
    pushed.story.timers.advance(0)
    assert [len(each.wires) for each in pushed.upstreams] == [1, 1]
    (second,) = pushed.upstreams[1].wires
    second.establish()
    assert subscribed_to(second) == [subject()]
    assert pushed.counts.refused_sessions == 1


def test_after_the_refusals_of_all_upstreams_nothing_is_kept() -> None:
    pushed = Pushed(upstreams=2)
    pushed.ask()
    pushed.ask()
    for upstream in pushed.upstreams:
        upstream.wires[-1].respond(Rcode.NOTIMP)
        pushed.story.timers.advance(0)
    assert (pushed.push.active, pushed.counts.refused_sessions) == (False, 2)
    pushed.story.timers.advance(RETRY_REFUSED - 1)
    pushed.ask()
    assert [len(each.wires) for each in pushed.upstreams] == [1, 1]


def test_a_silent_upstream_is_lost_within_a_keepalive_interval_and_entries_end_with_their_ttl() -> None:
    """Nothing closes the connection: there is no FIN and no RST."""
    pushed = Pushed()
    pushed.says(OLD, ttl=20)
    pushed.subscribe()
    pushed.story.timers.advance(7.5)  # the response to this Keepalive does not come
    pushed.says(NEW, ttl=20)
    pushed.story.timers.advance(7.4)
    assert pushed.push.is_connected
    pushed.story.timers.advance(0.1)
    assert (pushed.push.is_connected, pushed.counts.lost_sessions) == (False, 1)
    assert pushed.ask() == "192.0.2.1 5 success"
    assert pushed.story.after(5) == "192.0.2.2 20 upstream"


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
