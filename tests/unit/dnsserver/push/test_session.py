"""One session: its begin, its errors and its timers, message by message. tests/stories/test_push.py has it over TCP."""

import gc
import logging
import struct
import weakref

import pytest

from tests.support.model_builders import namespace, node, service
from tests.support.push_client import (
    DSOTYPENI,
    FORMERR,
    KEEPALIVE,
    NOERROR,
    REFUSED,
    RETRY_DELAY,
    SERVFAIL,
    SUBSCRIBE,
    dso,
    subscription,
    unsubscribe,
    wire,
)
from tests.support.push_server import PushServer
from topodns.cluster.model import Upserted
from topodns.dns.message import Query
from topodns.plugins.push import PushRefusal, SessionEnd
from topodns.query.plugin import Client, Resolution
from topodns.query.session import PushLimits

WEB = "web.default.svc.cluster.local."


@pytest.fixture
def server() -> PushServer:
    one = PushServer()
    one.apply(Upserted(namespace("default")), Upserted(service("web", cluster_ips=["10.96.0.1"])))
    return one


def test_a_keepalive_begins_a_session_with_timeouts_of_the_server(server: PushServer) -> None:
    one = server.connect()
    assert server.counts.sessions == 0
    assert one.begin() == NOERROR
    assert one.responses[0].tlv(KEEPALIVE) == struct.pack("!II", 15_000, 15_000)
    assert one.held_open == 30
    assert server.counts.sessions == 1


def test_a_subscribe_begins_a_session_as_well(server: PushServer) -> None:
    one = server.connect()
    assert one.subscribe(WEB) == NOERROR
    assert (server.counts.sessions, one.held_open) == (1, 30)
    assert one.addresses(WEB) == ["10.96.0.1"]


def test_a_request_with_an_error_does_not_begin_a_session(server: PushServer) -> None:
    one = server.connect()
    for tlv, rcode in (((KEEPALIVE, b""), FORMERR), ((SUBSCRIBE, b""), FORMERR), ((0xF802, b""), DSOTYPENI)):
        assert one.tell(dso(one.new_ident(), tlv))
        assert one.responses[-1].rcode == rcode
    assert server.counts.sessions == 0
    assert one.session.farewell() == []


def test_the_closing_of_a_connection_ends_its_session_and_in_a_while_its_subscriptions(server: PushServer) -> None:
    one = server.connect()
    for number in range(100):
        one.subscribe(f"n{number}.default.svc.cluster.local.")
    assert server.counts.subscriptions == 100
    one.close()
    assert server.counts.sessions == 0
    server.settle()
    assert (server.counts.subscriptions, server.counts.octets, server.known_addresses) == (0, 0, 0)
    assert server.counts.ended == {SessionEnd.CLOSED: 1}


def test_without_a_subscription_keepalives_alone_hold_a_session_for_thirty_seconds(server: PushServer) -> None:
    one, subscribed = server.connect(), server.connect()
    one.begin()
    subscribed.subscribe(WEB)
    for _ in range(3):
        server.timers.advance(9)
        assert (one.begin(), subscribed.begin()) == (NOERROR, NOERROR)
    server.timers.advance(9)
    assert subscribed.begin() == NOERROR
    assert not one.tell(dso(9, (KEEPALIVE, bytes(8))))
    assert server.counts.ended == {SessionEnd.ERROR: 1}


def test_a_session_has_one_node_name(server: PushServer) -> None:
    server.apply(Upserted(node("n1", addresses=["10.0.0.9"])), Upserted(node("n2")))
    one = server.connect()
    assert one.subscribe(WEB, node="n1") == NOERROR
    assert one.subscribe(WEB, rtype=28, node="n2") == FORMERR
    assert one.subscribe(WEB, rtype=28) == FORMERR
    assert one.subscribe(WEB, rtype=28, node="n1") == NOERROR


@pytest.mark.parametrize("node_name", ["x" * 254, "Not.A.Node", "\x00"])
def test_what_is_no_node_name_is_ignored(server: PushServer, node_name: str) -> None:
    assert server.connect().subscribe(WEB, node=node_name) == NOERROR


@pytest.mark.parametrize(
    "message",
    [
        dso(0, (KEEPALIVE, bytes(8))),
        dso(1, *subscription(WEB)),
        dso(2, *subscription(WEB.upper())),
        dso(7, (0x42, b"\0\1")),
        dso(0),
        dso(1, flags=0x8000),
        struct.pack("!HHHHHH", 0, 6 << 11, 1, 0, 0, 0),
    ],
    ids=["no id", "id in use", "question in use", "an id", "no TLV", "a response", "a count"],
)
def test_a_fatal_error_ends_the_session(server: PushServer, message: bytes) -> None:
    one = server.connect()
    assert one.subscribe(WEB) == NOERROR
    assert not one.tell(message)
    assert server.counts.ended == {SessionEnd.ERROR: 1}


def test_a_question_can_be_subscribed_to_again_after_unsubscribe(server: PushServer) -> None:
    one = server.connect()
    one.subscribe(WEB)
    assert one.tell(unsubscribe(1))
    assert server.counts.subscriptions == 0
    assert one.subscribe(WEB) == NOERROR


def test_refusals_of_the_whole_server_have_a_delay_and_those_of_one_name_do_not() -> None:
    server = PushServer(limits=PushLimits(sessions=1))
    one, two = server.connect(), server.connect("10.0.0.8")
    one.begin()
    assert two.begin() == REFUSED
    assert two.responses[0].tlv(RETRY_DELAY) == struct.pack("!I", 60_000)
    assert one.subscribe(WEB, rtype=255) == REFUSED
    assert one.responses[-1].tlv(RETRY_DELAY) is None
    assert server.counts.refused == {PushRefusal.SESSIONS: 1, PushRefusal.TYPE: 1}


def test_the_last_message_of_a_session_is_a_retry_delay(server: PushServer) -> None:
    one = server.connect()
    one.begin()
    one.finish()
    [last] = one.messages
    assert (last.ident, last.rcode, last.tlvs[0][0], len(last.tlvs)) == (0, NOERROR, RETRY_DELAY, 1)
    assert server.counts.ended == {SessionEnd.SERVER: 1}


def test_an_evicted_session_ends_with_servfail_and_a_delay_of_a_minute_and_is_not_heard_any_more() -> None:
    server = PushServer(limits=PushLimits(sessions=2))
    crowd = [server.connect(), server.connect()]
    for one in crowd:
        one.subscribe(WEB)
    assert server.connect("10.0.0.8").begin() == NOERROR
    evicted, stays = crowd
    assert (evicted.is_open, stays.is_open, server.counts.sessions) == (False, True, 2)
    last = evicted.messages[-1]
    assert (last.ident, last.rcode) == (0, SERVFAIL)
    assert 60_000 <= int.from_bytes(last.tlv(RETRY_DELAY) or b"", "big") < 65_000
    assert evicted.session.receive(dso(9, *subscription(WEB))) == []
    server.settle()
    assert server.counts.subscriptions == 1
    assert server.counts.ended == {SessionEnd.EVICTED: 1}


def test_queries_and_their_replies_hold_a_session_open_as_well_as_dso_messages(server: PushServer) -> None:
    """RFC 8490 section 6.3: any complete message but a Keepalive resets the inactivity timer."""
    one = server.connect()
    one.begin()
    for _ in range(3):
        server.timers.advance(20)
        one.session.query_exchanged()
        assert one.begin() == NOERROR
    server.timers.advance(31)
    assert not one.tell(dso(9, (KEEPALIVE, bytes(8))))


def test_a_client_that_does_not_read_what_is_pushed_loses_its_session(server: PushServer) -> None:
    one, other = server.connect(), server.connect()
    one.subscribe(WEB)
    other.subscribe(WEB)
    one.reads = False
    server.apply(Upserted(service("web", cluster_ips=["10.96.0.2"])))
    assert not one.is_open
    assert server.counts.ended == {SessionEnd.SLOW: 1}
    assert other.addresses(WEB) == ["10.96.0.2"]


def test_a_bug_costs_a_session_and_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    server = PushServer()
    one = server.connect()
    one.session._publisher = None  # type: ignore[assignment]
    with caplog.at_level(logging.ERROR):
        assert not one.tell(dso(1, (SUBSCRIBE, wire(WEB) + b"\0\1\0\1")))
    assert "bug: a DSO message of" in caplog.text


def test_a_bug_in_a_plugin_is_servfail(caplog: pytest.LogCaptureFixture) -> None:
    def fail(query: Query, client: Client) -> Resolution:
        raise ZeroDivisionError

    server = PushServer(fail)
    one = server.connect()
    assert one.subscribe(WEB) == 2
    assert "ZeroDivisionError" in caplog.text
    assert server.counts.subscriptions == 0


def test_a_closed_session_is_freed_without_the_garbage_collector_once_its_connection_lets_it_go(
    server: PushServer,
) -> None:
    gc.disable()
    try:
        one = server.connect()
        assert one.subscribe(WEB) == NOERROR
        one.close()
        server.settle()
        freed = weakref.ref(one.session)
        del one.session
        assert freed() is None
    finally:
        gc.enable()
