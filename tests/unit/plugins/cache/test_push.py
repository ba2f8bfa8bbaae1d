"""The option `push` of a cache: what it subscribes to, and what becomes of entries, over a session in virtual time."""

from random import Random

import pytest

from tests.support.cache_with_upstream import CLIENT, Story, addresses, alias, denied, failed, positive, question, wire
from tests.support.dso_upstream import KEEPALIVE, Connecting, Wire
from topodns.dependency import CACHED, Fact, cached_fact
from topodns.dns.dso import DsoMessage, DsoType, Tlv, retry_delay_tlv, write_dso
from topodns.dns.message import Flag, Response
from topodns.dns.push import ALL_REMOVED, REMOVED, PushChange, read_subscribe, read_unsubscribe, write_push
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.net.upstream.dso_session import PATIENCE, SessionUser
from topodns.plugins.cache.counts import SubscriptionCounts
from topodns.plugins.cache.entry import key_of
from topodns.plugins.cache.push import (
    IDLE,
    MAX_RETRY_DELAY,
    RETRY_LOST,
    RETRY_REFUSED,
    RETRY_SOONEST,
    WINDOW,
    PushSubscriptions,
)
from topodns.plugins.cache.settings import Cache, ServeStale
from topodns.query.plugin import Client, Resolution, Scope

OTHER = Client(bytes((10, 244, 1, 8)), 40_000, "udp")
WWW = "www.example. A"
OLD, NEW = "192.0.2.1", "192.0.2.2"


class Pushed:
    """A cache with `push`, and its upstream: `Story` asks."""

    def __init__(self, settings: Cache | None = None, most: int = 100, node: bytes = b"", upstreams: int = 1) -> None:
        self.story = Story(settings, says=positive(300, OLD))
        self.upstreams = [Connecting(self.story.timers) for _ in range(upstreams)]
        self.counts = SubscriptionCounts()
        self.changed: list[Fact] = []
        self.push = PushSubscriptions(
            most,
            self.upstreams,
            self.story.cache.memory,
            lambda facts: self.changed.extend(sorted(facts)),
            self.story.timers,
            Random(1),
            self.counts,
            node,
        )
        self.story.cache.push = self.push

    @property
    def wires(self) -> list[Wire]:
        return self.upstreams[0].wires

    @property
    def wire(self) -> Wire:
        """The connection of the latest session."""
        return self.wires[-1]

    def ask(self, text: str = WWW) -> str:
        return self.story.ask(text)

    def says(self, *texts: str, ttl: int = 300) -> None:
        self.story.upstream.says = positive(ttl, *texts)

    def subscribe(self, *texts: str) -> None:
        """Subscribe to these names, and have their entries fetched anew."""
        for text in texts or (WWW,):
            self.ask(text)
            self.ask(text)
        if not self.push.is_connected:
            self.wire.establish()
        while self.wire.sent:
            self.wire.respond()
        for text in texts or (WWW,):
            self.ask(text)
        self.changed.clear()

    def tell(self, *changes: PushChange) -> None:
        """One PUSH, or as many as need be."""
        for message in write_push(changes):
            self.wire.say(message)
            self.story.timers.advance(0)

    def live_for(self, seconds: float) -> None:
        """So much time, in which the upstream answers each Keepalive."""
        for _ in range(round(seconds * 2)):
            self.story.timers.advance(0.5)
            if self.wire.kinds() == [KEEPALIVE]:
                self.wire.establish()


def added(address: str, name: str = "www.example.") -> PushChange:
    return PushChange(wire(name), RRType.A, RRClass.IN, 300, addresses(0, address).rdatas[0])


def removed(address: str, name: str = "www.example.") -> PushChange:
    return added(address, name)._replace(ttl=REMOVED)


def gone(name: str = "www.example.", rtype: int = RRType.A, rclass: int = RRClass.IN) -> PushChange:
    return PushChange(wire(name), rtype, rclass, ALL_REMOVED)


def subject(text: str = WWW) -> bytes:
    return key_of(question(text))[:-2]


def subscribed_to(wire_: Wire) -> list[bytes]:
    """Name, type and class of the SUBSCRIBEs that wait for a response."""
    found = []
    for message in wire_.sent:
        if message.primary is not None and message.primary.kind == DsoType.SUBSCRIBE:
            name, rtype, rclass = read_subscribe(message.primary.data)
            found.append(name + bytes((0, rtype, 0, rclass)))
    return found


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
    assert pushed.story.last.facts == ()


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
    pushed.tell(added(NEW))
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
        (Response(answer=(alias(300, "x."), addresses(300, NEW, owner=wire("x."))), flags=Flag.RA), False),
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
    pushed.tell(added(OLD))
    pushed.tell(gone())
    assert pushed.ask() == "192.0.2.1 1 upstream"
    pushed.tell(gone())
    pushed.story.upstream.says = denied(Rcode.NOERROR)
    assert pushed.ask() == "NODATA 300 upstream"


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


def test_records_without_number_are_not_remembered_and_contradict_nothing() -> None:
    pushed = Pushed()
    pushed.subscribe()
    many = [added(f"10.0.{number >> 8}.{number & 255}") for number in range(1025)]
    pushed.tell(*many)
    assert pushed.ask() == "192.0.2.1 300 upstream"
    pushed.tell(removed("10.0.0.1"))
    assert pushed.ask() == "192.0.2.1 300 upstream"
    assert pushed.counts.contradicted == 0


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


def test_an_upstream_that_refuses_dso_is_asked_again_after_a_minute_and_entries_live_by_their_ttl() -> None:
    pushed = Pushed()
    pushed.ask()
    pushed.ask()
    pushed.wire.respond(Rcode.NOTIMP)
    assert pushed.ask() == "192.0.2.1 300 success"
    assert pushed.story.last.facts == ()
    pushed.story.timers.advance(RETRY_REFUSED - 1)
    pushed.ask()
    assert len(pushed.wires) == 1
    pushed.story.timers.advance(RETRY_REFUSED / 4 + 1)
    pushed.ask()
    assert len(pushed.wires) == 2
    assert (pushed.counts.refused_sessions, pushed.push.is_connected) == (1, False)


def test_no_response_to_keepalive_is_a_refusal() -> None:
    pushed = Pushed()
    pushed.ask()
    pushed.ask()
    pushed.story.timers.advance(PATIENCE)
    assert (pushed.counts.refused_sessions, pushed.push.active) == (1, False)


@pytest.mark.parametrize("rcode", [Rcode.SERVFAIL, Rcode.REFUSED, Rcode.NOTAUTH, Rcode.FORMERR])
def test_a_refused_subscription_leaves_the_entry_its_ttl(rcode: int) -> None:
    pushed = Pushed()
    pushed.ask()
    pushed.ask()
    pushed.wire.establish()
    pushed.wire.respond(rcode)
    assert pushed.changed == [cached_fact(subject())]  # of copies; the next ones do not depend on it
    assert pushed.ask() == "192.0.2.1 300 success"
    assert pushed.story.last.facts == ()
    assert pushed.counts.refused == {rcode: 1}
    pushed.live_for(RETRY_REFUSED - 1)
    pushed.ask()
    assert pushed.wire.sent == []
    pushed.live_for(1)
    pushed.ask()
    assert subscribed_to(pushed.wire) == [subject()]


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


def test_the_next_upstream_is_asked_after_one_that_refuses() -> None:
    pushed = Pushed(upstreams=2)
    pushed.ask()
    pushed.ask()
    pushed.wire.respond(Rcode.NOTIMP)
    pushed.story.timers.advance(RETRY_REFUSED * 1.25)
    pushed.ask()
    assert [len(each.wires) for each in pushed.upstreams] == [1, 1]


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


def test_a_subscription_ends_when_its_name_is_queried_no_more() -> None:
    pushed = Pushed()
    pushed.says(OLD, ttl=20)
    pushed.subscribe()
    pushed.live_for(20 + IDLE - 5)
    assert pushed.push.live == 1
    pushed.live_for(20)
    assert (pushed.push.live, pushed.push.active) == (0, False)
    (message,) = [each for each in pushed.wire.sent if each.primary and each.primary.kind == DsoType.UNSUBSCRIBE]
    assert message.primary is not None
    assert message.ident == 0
    assert read_unsubscribe(message.primary.data) == 2  # the id of the SUBSCRIBE, after that of Keepalive


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
    assert (pushed.story.last.scope, pushed.story.last.valid_until) == (Scope.EVERYONE, 1300.0)
    assert CLIENT.address != OTHER.address
