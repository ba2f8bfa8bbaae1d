"""The option `push` of a cache: what it subscribes to, what becomes of entries, when a session begins, and memory.

Sessions are in virtual time. `test_subscriptions_sessions` has their beginning and end.
"""

import gc
import tracemalloc
from random import Random

import pytest

from tests.support.cache_with_push import NEW, OLD, WWW, Pushed, added, gone, removed, subject, subscribed_to
from tests.support.cache_with_upstream import CLIENT, denied, failed, question, wire
from tests.support.dso_upstream import KEEPALIVE, Connecting
from tests.support.virtual_timers import VirtualTimers
from topodns.dependency import CACHED, Fact, cached_fact
from topodns.dns.dso import DsoMessage, DsoType, Tlv, write_dso
from topodns.dns.name import name_wire, parse_name
from topodns.dns.push_messages import PushChange, read_unsubscribe, write_push
from topodns.dns.rrtype import RRClass, RRType
from topodns.net.upstream.dso_session import DsoEnd
from topodns.plugins.cache.counts import SubscriptionCounts
from topodns.plugins.cache.settings import Cache, ServeStale
from topodns.plugins.cache.store import Memory
from topodns.plugins.cache.subscriptions import (
    IDLE,
    SWEEP,
    WINDOW,
    PushSubscriptions,
)
from topodns.query.plugin import Client, Resolution, Scope

OTHER = Client(bytes((10, 244, 1, 8)), 40_000, "udp")


def test_a_name_that_is_queried_again_is_subscribed_to_once_a_session_is_established() -> None:
    pushed = Pushed()
    pushed.ask()
    assert pushed.wires == []
    pushed.ask()
    pushed.ask()
    assert pushed.wire.kinds() == [KEEPALIVE]
    pushed.wire.establish()
    assert subscribed_to(pushed.wire) == [subject()]
    assert pushed.wire.sent[0].additional == ()
    pushed.wire.respond()
    pushed.ask()
    assert pushed.wire.sent == []
    assert (pushed.push.live, pushed.push.is_connected) == (1, True)


def test_a_subscribe_has_the_name_of_the_node_where_the_queries_have_it() -> None:
    pushed = Pushed(node=b"node-a1")
    pushed.ask()
    pushed.ask()
    pushed.wire.establish()
    assert pushed.wire.sent[0].additional == (Tlv(DsoType.NODE_NAME, b"node-a1"),)


@pytest.mark.parametrize("text", ["www.example. CH A", "www.example. ANY", "www.example. DS"])
def test_what_a_cluster_does_not_have_is_not_subscribed_to(text: str) -> None:
    pushed = Pushed()
    pushed.story.upstream.says = denied()
    pushed.ask(text)
    assert pushed.ask(text).endswith("denial")
    assert pushed.wires == []
    assert pushed.story.last.facts == ()  # no PUSH can be about it


def test_a_copy_depends_on_its_subject_also_while_that_cannot_be_subscribed_to() -> None:
    """The copy may live longer than what prevents the subscription, and a PUSH must end it."""
    pushed = Pushed(most=1)
    pushed.subscribe(WWW)
    for _ in range(2):
        pushed.ask("other.example. A")
    assert (pushed.push.live, pushed.story.last.scope) == (1, Scope.EVERYONE)
    assert pushed.story.last.facts == (cached_fact(subject("other.example. A")),)
    pushed.push.ended(DsoEnd(True, 0.0, "refused"))
    pushed.ask(WWW)
    assert (pushed.push.active, pushed.story.last.facts) == (False, (cached_fact(subject()),))


def test_an_entry_that_is_older_than_its_subscription_is_fetched_again() -> None:
    pushed = Pushed()
    pushed.ask()
    assert pushed.ask() == "192.0.2.1 300 success"
    assert pushed.story.last.facts == (cached_fact(subject()),)
    pushed.wire.establish()
    assert pushed.changed == []
    pushed.wire.respond()
    assert pushed.changed == [Fact(CACHED, "", subject())]
    pushed.says(NEW)
    pushed.tell(added(NEW))
    assert pushed.ask() == "192.0.2.2 300 upstream"


def test_a_push_about_a_name_expires_its_entries_and_no_others() -> None:
    pushed = Pushed()
    pushed.subscribe(WWW, "other.example. A")
    pushed.story.ask(dnssec=True)
    pushed.says(NEW)
    pushed.tell(removed(OLD), added(NEW))
    assert pushed.changed == [cached_fact(subject())]
    assert pushed.ask("other.example. A") == "192.0.2.1 300 success"
    assert pushed.ask() == "192.0.2.2 300 upstream"
    assert pushed.story.ask(dnssec=True) == "192.0.2.2 300 upstream"
    assert pushed.ask() == "192.0.2.2 300 success"
    assert (pushed.counts.messages, pushed.counts.strays) == (1, 0)


def test_a_denial_ends_with_a_push_as_well() -> None:
    pushed = Pushed()
    pushed.story.upstream.says = denied()
    pushed.subscribe()
    assert pushed.ask() == "NXDOMAIN 300 denial"
    pushed.says(NEW)
    pushed.tell(added(NEW))
    assert pushed.ask() == "192.0.2.2 300 upstream"


def test_a_failure_ends_with_a_push_as_well() -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.tell(added(NEW))
    pushed.story.upstream.says = failed()
    pushed.ask()
    assert pushed.ask() == "SERVFAIL denial"
    pushed.says(NEW)
    pushed.tell(removed(OLD), added(NEW))
    assert pushed.ask() == "192.0.2.2 300 upstream"


@pytest.mark.parametrize(
    "change",
    [
        gone(),
        gone(rtype=RRType.ANY),
        gone(rtype=RRType.ANY, rclass=RRClass.ANY),
        gone(rtype=RRType.CNAME),
        PushChange(wire("www.example."), RRType.CNAME, RRClass.IN, 5, wire("x.example.")),
        added(OLD),  # of a record that is known: the glue beside it may have changed
    ],
)
def test_changes_that_concern_a_name(change: PushChange) -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.tell(change)
    assert pushed.changed == [cached_fact(subject())]


@pytest.mark.parametrize(
    "change",
    [
        added(NEW, "other.example."),
        added(NEW)._replace(rtype=RRType.TXT),
        added(NEW)._replace(rclass=3),
        gone("example.", RRType.ANY),
    ],
)
def test_changes_of_names_without_a_subscription_are_counted_and_have_no_effect(change: PushChange) -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.tell(change)
    assert (pushed.changed, pushed.counts.strays) == ([], 1)
    assert pushed.ask() == "192.0.2.1 300 success"
    assert pushed.push.is_connected


def test_with_serve_stale_verify_the_expired_answer_is_there_for_an_upstream_that_fails_now() -> None:
    pushed = Pushed(Cache(serve_stale=ServeStale(verify=True)))
    pushed.subscribe()
    pushed.tell(added(OLD))
    pushed.story.upstream.says = failed()
    assert pushed.ask() == "192.0.2.1 30 stale"
    pushed.says(NEW)
    pushed.tell(removed(OLD), added(NEW))
    assert pushed.ask() == "192.0.2.2 300 upstream"  # at once, although a refresh has just failed


def test_with_serve_stale_immediate_no_expired_answer_is_served() -> None:
    pushed = Pushed(Cache(serve_stale=ServeStale()))
    pushed.subscribe()
    pushed.says(NEW)
    pushed.tell(removed(OLD), added(NEW))
    assert pushed.ask() == "192.0.2.2 300 upstream"


def test_few_subscriptions_wait_for_a_response_at_a_time() -> None:
    pushed = Pushed(most=1000)
    names = [f"n{number}.example. A" for number in range(200)]
    for name in names:
        pushed.ask(name)
        pushed.ask(name)
    pushed.wire.establish()
    assert len(pushed.wire.sent) == WINDOW
    done = 0
    while pushed.wire.sent:
        pushed.wire.respond()
        done += 1
        assert pushed.wire.session.waiting <= WINDOW
    assert (done, pushed.push.live) == (200, 200)


def test_the_last_quarter_of_the_subscriptions_is_for_names_that_several_clients_have_queried() -> None:
    pushed = Pushed(most=8)
    for number in range(20):
        for _ in range(2):
            pushed.ask(f"random{number}.example. A")
    pushed.wire.establish()
    assert len(subscribed_to(pushed.wire)) == 6

    def ask_as_two(text: str) -> None:
        pushed.ask(text)
        answered = pushed.story.cache(question(text), OTHER, pushed.story.upstream)
        assert isinstance(answered, Resolution)

    for number in range(5):
        ask_as_two(f"shared{number}.example. A")
    assert len(subscribed_to(pushed.wire)) == 8


@pytest.mark.parametrize("number", [1, 600])
def test_a_subscription_ends_a_minute_after_the_last_use_of_its_name(number: int) -> None:
    """The last use may be that of a copy, just before the entry expires. `SWEEP`: until all have been looked at."""
    pushed = Pushed(most=number * 2)
    pushed.says(OLD, ttl=5)
    names = [f"n{each}.example. A" for each in range(number)]
    pushed.subscribe(*names)
    pushed.live_for(IDLE - 5)
    for name in names:
        pushed.ask(name)
    last = pushed.story.timers.time() + 5
    pushed.live_for(last + IDLE - 1 - pushed.story.timers.time())
    assert pushed.push.live == number
    pushed.live_for(1 + SWEEP + 1)
    assert (pushed.push.live, pushed.push.active) == (0, False)
    ended = [each.primary for each in pushed.wire.sent if each.primary and each.primary.kind == DsoType.UNSUBSCRIBE]
    assert sorted(read_unsubscribe(each.data) for each in ended) == list(range(2, 2 + number))  # 1 is that of Keepalive


def test_a_subscription_lives_while_the_packet_cache_answers_for_its_entry() -> None:
    pushed = Pushed()
    pushed.says(OLD, ttl=200)
    pushed.subscribe()
    pushed.live_for(240)  # 200 s of copies, and 40 s after them
    assert pushed.push.live == 1


def test_a_subscription_that_is_confirmed_after_its_end_is_cancelled() -> None:
    pushed = Pushed()
    pushed.says(OLD, ttl=1)
    pushed.ask()
    pushed.ask()
    pushed.wire.establish()
    late = pushed.wire.take()
    pushed.story.timers.advance(1)
    pushed.push._table.clear()
    pushed.wire.say(write_dso(DsoMessage(late.ident, True, 0, None)))
    (message,) = pushed.wire.sent
    assert message.primary is not None
    assert (message.primary.kind, read_unsubscribe(message.primary.data)) == (DsoType.UNSUBSCRIBE, late.ident)


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(write_dso(DsoMessage(0, False, 0, Tlv(DsoType.PUSH, b""))), id="an empty PUSH"),
        pytest.param(write_dso(DsoMessage(0, False, 0, Tlv(DsoType.PUSH, b"\7abc"))), id="a name that is cut off"),
        pytest.param(write_dso(DsoMessage(0, False, 0, Tlv(DsoType.PUSH, bytes(16_400)))), id="an oversized PUSH"),
        pytest.param(write_dso(DsoMessage(0, False, 0, Tlv(DsoType.RECONFIRM, b"x"))), id="another type"),
    ],
)
def test_a_malformed_push_ends_the_session_and_nothing_else(octets: bytes) -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.wire.say(octets)
    assert (pushed.wire.state, pushed.push.is_connected) == ("aborted", False)
    assert pushed.ask() == "192.0.2.1 300 success"


def test_a_large_push_is_taken_in_steps_and_expires_each_name_once() -> None:
    """1,000 changes for one name, then one for each of many others: a turn of the loop need not do all of it."""
    pushed = Pushed()
    pushed.subscribe(WWW, "other.example. A")
    (octets,) = write_push([gone(rtype=RRType.CNAME)] * 1000 + [added(NEW, "other.example.")])
    steps = pushed.push.received(DsoType.PUSH, octets)
    seen = [len(pushed.changed) for _ in steps]
    assert len(seen) > 1000 // 64
    assert seen[-1] <= 1
    assert pushed.changed == [cached_fact(subject()), cached_fact(subject("other.example. A"))]
    assert pushed.counts.messages == 1


def test_a_session_that_ends_during_a_push_leaves_what_is_left_of_it() -> None:
    pushed = Pushed()
    pushed.subscribe(WWW, "other.example. A")
    (octets,) = write_push([added(NEW), added(NEW, "other.example.")])
    steps = pushed.push.received(DsoType.PUSH, octets)
    next(steps)
    next(steps)
    pushed.push.close()
    assert list(steps) == []
    assert pushed.counts.strays == 0


def test_close_ends_session_subscriptions_and_timers() -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.push.close()
    assert (pushed.wire.state, pushed.push.live) == ("left", 0)
    assert pushed.story.timers.pending == 0
    pushed.ask()
    assert pushed.story.last.facts == ()
    assert len(pushed.wires) == 1


def test_a_session_that_begins_after_close_is_closed() -> None:
    pushed = Pushed()
    pushed.ask()
    pushed.ask()
    pushed.push.close()
    pushed.wire.establish()
    assert (pushed.wire.state, pushed.push.is_connected, pushed.story.timers.pending) == ("left", False, 0)


def test_copies_of_a_subscribed_answer_are_for_everyone_as_before() -> None:
    pushed = Pushed()
    pushed.subscribe()
    pushed.ask()
    assert pushed.story.last.scope is Scope.EVERYONE
    assert pushed.story.last.valid_until == pytest.approx(1300.0, abs=0.1)
    assert CLIENT.address != OTHER.address


SUBSCRIPTIONS = 2000
_TAIL = b"\0\1\0\1\0\0"  # type, class, and the two octets of a key that are not part of the subject


class Entries(Memory):
    """A cache without tables, in which all names are used."""

    def __init__(self) -> None:
        pass

    def expire(self, subject: bytes) -> None:
        pass

    def is_used(self, subject: bytes, grace: int) -> bool:
        return True


def test_a_subscription_with_its_pushed_record_takes_at_most_a_kilobyte() -> None:
    timers = VirtualTimers()
    upstream = Connecting(timers)
    push = PushSubscriptions(
        2 * SUBSCRIPTIONS, [upstream], Entries(), lambda facts: None, timers, Random(1), SubscriptionCounts()
    )
    names = [name_wire(parse_name(f"web{number}.default.svc.cluster.local.")) for number in range(SUBSCRIPTIONS)]
    push.served(b"\5first\0" + _TAIL, False)
    (wire,) = upstream.wires
    wire.establish()
    gc.collect()
    tracemalloc.start()
    for number, name in enumerate(names):
        push.served(name + _TAIL, False)
        while wire.sent:
            wire.respond()
        (message,) = write_push([PushChange(name, RRType.A, RRClass.IN, 30, number.to_bytes(4, "big"))])
        wire.say(message)
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert push.live == SUBSCRIPTIONS + 1
    assert allocated / SUBSCRIPTIONS < 1000, allocated
