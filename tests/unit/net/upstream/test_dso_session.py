"""A DSO session with an upstream (RFC 8490): its beginning, its timers, its messages and its end."""

from collections.abc import Callable
from itertools import count

import pytest

from tests.support.dso_upstream import KEEPALIVE, KNOWN, Noted, Wire
from tests.support.virtual_timers import VirtualTimers
from topodns.dns.dso import (
    INFINITE,
    DsoMessage,
    DsoType,
    SessionTimeouts,
    Tlv,
    keepalive_tlv,
    read_keepalive,
    retry_delay_tlv,
    write_dso,
    write_dso_response,
)
from topodns.net.upstream.dso_session import MAX_INBOX, MESSAGE_OVERHEAD, PATIENCE, PAUSE, SLICE, UNSOLICITED, DsoEnd


class Scene:
    """One session, begun; `established`: answered. A step of its work takes `step` seconds."""

    def __init__(
        self, established: bool = True, keepalive: int = 20_000, inactivity: int = INFINITE, step: float = 0.0
    ) -> None:
        self.timers = VirtualTimers()
        self.user = Noted()
        self._looks = count()
        self.wire = Wire(self.user, self.timers, lambda: next(self._looks) * step)
        self.wire.session.begin()
        if established:
            self.wire.establish(keepalive, inactivity)

    @property
    def end(self) -> DsoEnd:
        (end,) = self.user.ends
        return end


def test_a_session_begins_with_a_keepalive_request_and_its_response() -> None:
    scene = Scene(established=False)
    (message,) = scene.wire.sent
    assert message.ident
    assert message.primary is not None
    assert (message.primary.kind, read_keepalive(message.primary.data)) == (KEEPALIVE, (INFINITE, 15_000))
    assert not scene.wire.session.is_established
    scene.wire.establish()
    assert scene.user.session is scene.wire.session
    assert (scene.wire.reserved, scene.user.ends) == (set(), [])


def _bare(rcode: int) -> Callable[[int], bytes]:
    """A header alone, with the opcode of a query."""
    return lambda ident: ident.to_bytes(2, "big") + bytes((0x80, rcode)) + bytes(8)


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(lambda ident: write_dso_response(ident, 4), id="NOTIMP"),
        pytest.param(lambda ident: write_dso_response(ident, 11), id="DSOTYPENI"),
        pytest.param(lambda ident: write_dso_response(ident, 1), id="FORMERR"),
        pytest.param(_bare(1), id="FORMERR of a query"),
        pytest.param(_bare(0), id="NOERROR of a query"),
        pytest.param(lambda ident: write_dso_response(ident, 0), id="no timeouts"),
        pytest.param(lambda ident: write_dso_response(ident, 0, Tlv(KEEPALIVE, b"")), id="malformed timeouts"),
        pytest.param(
            lambda ident: write_dso_response(ident, 0, keepalive_tlv(SessionTimeouts(INFINITE, 9_999))),
            id="a keepalive interval below 10 s",
        ),
        pytest.param(lambda ident: write_dso_response(ident, 0)[:-1] + b"\1", id="records"),
        pytest.param(lambda ident: write_dso(DsoMessage(0, False, 0, Tlv(KNOWN, b""))), id="a message before"),
    ],
)
def test_an_upstream_that_answers_otherwise_has_refused(response: Callable[[int], bytes]) -> None:
    scene = Scene(established=False)
    assert scene.wire.say(response(scene.wire.take().ident))
    assert scene.end.refused
    assert scene.user.session is None
    assert (scene.wire.state, scene.wire.reserved) == ("open", set())  # for queries


def test_an_upstream_that_answers_queries_and_no_keepalive_has_refused() -> None:
    scene = Scene(established=False)
    scene.wire.reply()
    scene.timers.advance(PATIENCE)
    assert (scene.end.refused, scene.wire.state) == (True, "aborted")
    assert scene.timers.pending == 0


@pytest.mark.parametrize("act", [Wire.abort, lambda _: None], ids=["a lost connection", "silence"])
def test_a_connection_that_is_lost_or_silent_before_the_first_response_is_no_refusal(
    act: Callable[[Wire], object],
) -> None:
    scene = Scene(established=False)
    scene.timers.advance(1)
    act(scene.wire)
    scene.timers.advance(PATIENCE)
    assert (scene.end.refused, scene.wire.state) == (False, "aborted")
    assert scene.timers.pending == 0


def test_a_connection_that_never_opens_has_not_refused() -> None:
    user = Noted()
    Wire(user, VirtualTimers()).session.lost()
    assert [end.refused for end in user.ends] == [False]


def test_a_request_gets_rcode_and_retry_delay_of_its_response_once() -> None:
    scene = Scene()
    rcodes: list[tuple[int, float]] = []
    idents = [
        scene.wire.session.request(
            lambda ident: write_dso(DsoMessage(ident, False, 0, Tlv(0x40, b"x"))), lambda *got: rcodes.append(got)
        )
        for _ in range(2)
    ]
    assert [message.ident for message in scene.wire.sent] == idents
    assert scene.wire.session.waiting == 2
    scene.wire.respond(5, retry_delay_tlv(2_500))
    scene.wire.respond(0)
    assert rcodes == [(5, 2.5), (0, 0.0)]
    assert scene.wire.say(write_dso_response(idents[0], 0))  # a second response
    assert (rcodes, scene.wire.session.waiting, scene.wire.reserved) == ([(5, 2.5), (0, 0.0)], 0, set())


def test_the_id_of_an_operation_that_goes_on_is_in_use_until_it_is_finished_or_the_session_ends() -> None:
    scene = Scene()

    def requested(rcode: int) -> int:
        session = scene.wire.session
        ident = session.request(
            lambda ident: write_dso(DsoMessage(ident, False, 0, Tlv(0x40, b"x"))), lambda *got: None, goes_on=True
        )
        scene.wire.respond(rcode)
        return ident

    first, refused, last = requested(0), requested(5), requested(0)
    assert scene.wire.reserved == {each.to_bytes(2, "big") for each in (first, last)}, refused
    scene.wire.session.finish(first, write_dso(DsoMessage(0, False, 0, Tlv(0x42, b"xx"))))
    assert scene.wire.take().primary == Tlv(0x42, b"xx")
    assert scene.wire.reserved == {last.to_bytes(2, "big")}
    scene.wire.session.lost()
    assert scene.wire.reserved == set()


def test_unidirectional_messages_go_to_the_user() -> None:
    scene = Scene()
    scene.wire.notify(KNOWN, b"abc")
    assert [octets[-3:] for octets in scene.user.got] == [b"abc"]
    assert scene.user.ends == []


def test_messages_are_taken_for_a_slice_of_time_and_then_after_a_pause() -> None:
    scene = Scene(step=SLICE * 0.15)
    for number in range(25):
        scene.wire.notify(KNOWN, bytes((number,)))
    taken = [len(scene.user.got)]
    for _ in range(3):
        scene.timers.advance(PAUSE)
        taken.append(len(scene.user.got))
    assert taken == [6, 13, 20, 25]  # the response to Keepalive took the first step
    assert [octets[-1] for octets in scene.user.got] == list(range(25))
    scene.timers.advance(PAUSE)
    assert scene.timers.pending == 1  # the next Keepalive


def test_a_message_that_takes_longer_than_a_slice_is_continued_after_a_pause() -> None:
    scene = Scene(step=SLICE / 10)
    scene.user.steps = 24
    scene.wire.notify(KNOWN, b"x")
    for done in (0, 0, 1):
        assert len(scene.user.got) == done
        scene.timers.advance(PAUSE)
    assert len(scene.user.got) == 1


def test_a_response_is_taken_after_the_messages_before_it() -> None:
    scene = Scene(step=SLICE / 2)
    rcodes: list[int] = []
    scene.wire.session.request(
        lambda ident: write_dso(DsoMessage(ident, False, 0, Tlv(0x40, b"x"))), lambda rcode, _: rcodes.append(rcode)
    )
    for _ in range(2):
        scene.wire.notify(KNOWN, b"x")
    scene.wire.respond()
    assert (len(scene.user.got), rcodes) == (1, [])
    scene.timers.advance(PAUSE)
    assert (len(scene.user.got), rcodes) == (2, [0])


@pytest.mark.parametrize("size", [0, 60_000])
def test_a_flood_of_messages_ends_the_session(size: int) -> None:
    scene = Scene(step=SLICE)
    weight = len(write_dso(DsoMessage(0, False, 0, Tlv(KNOWN, bytes(size))))) + MESSAGE_OVERHEAD
    for _ in range(MAX_INBOX // weight):
        scene.wire.notify(KNOWN, bytes(size))
    assert scene.user.ends == []
    scene.wire.notify(KNOWN, bytes(size))
    assert (scene.wire.state, scene.end.problem) == ("aborted", f"more than {MAX_INBOX} octets of messages at once")
    scene.timers.advance(1)
    assert scene.user.got == []


@pytest.mark.parametrize(
    "message",
    [write_dso(DsoMessage(7, False, 0, Tlv(KNOWN, b""))), write_dso_response(7, 0)],
    ids=["request", "response"],
)
def test_requests_and_responses_to_none_end_the_session_if_they_are_many(message: bytes) -> None:
    scene = Scene()
    for _ in range(UNSOLICITED):
        scene.wire.say(message)
        scene.timers.advance(PAUSE)
    assert scene.user.ends == []
    scene.wire.say(message)
    assert scene.wire.state == "aborted"
    assert not scene.end.refused
    assert len(scene.wire.sent) <= UNSOLICITED + 1


def test_the_work_on_a_message_ends_with_the_session() -> None:
    scene = Scene(step=SLICE)
    scene.user.steps = 5
    scene.timers.advance(PAUSE)
    scene.wire.notify(KNOWN, b"x")
    scene.wire.session.close()
    scene.timers.advance(1)
    assert (scene.user.got, scene.timers.pending) == ([], 0)


def test_a_malformed_message_that_had_to_wait_ends_the_session() -> None:
    scene = Scene(step=SLICE)
    scene.wire.notify(0x7777, b"x")
    assert scene.user.ends == []
    scene.timers.advance(PAUSE)
    assert scene.wire.state == "aborted"


def test_replies_to_queries_are_not_for_the_session() -> None:
    scene = Scene()
    assert not scene.wire.say(b"\0\1\x81\x80" + bytes(8))
    assert scene.user.ends == []


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"\0\0\x30\0" + bytes(8), id="no TLV"),
        pytest.param(b"\0\0\x30\0\0\1" + bytes(6) + b"\0\1\0\0", id="a question"),
        pytest.param(b"\0\0\x30\0" + bytes(8) + b"\0\x41\xff\xff", id="a TLV that is cut off"),
        pytest.param(write_dso(DsoMessage(0, False, 0, Tlv(0x7777, b""))), id="an unknown type"),
        pytest.param(write_dso(DsoMessage(0, False, 0, Tlv(KEEPALIVE, b"1"))), id="a malformed Keepalive"),
        pytest.param(write_dso(DsoMessage(0, False, 0, Tlv(DsoType.RETRY_DELAY, b""))), id="a malformed Retry Delay"),
    ],
)
def test_a_malformed_message_ends_the_connection(octets: bytes) -> None:
    scene = Scene()
    assert scene.wire.say(octets)
    assert (scene.wire.state, scene.end.refused) == ("aborted", False)
    assert "malformed" in scene.end.problem
    assert scene.timers.pending == 0


def test_a_request_of_the_upstream_is_answered_dsotypeni() -> None:
    scene = Scene()
    scene.wire.say(write_dso(DsoMessage(7, False, 0, Tlv(0x40, b""))))
    assert scene.wire.take() == DsoMessage(7, True, 11, None)
    assert scene.user.ends == []


def test_a_keepalive_goes_out_every_half_interval_and_an_answered_one_keeps_the_session() -> None:
    scene = Scene(keepalive=20_000)
    for _ in range(10):
        scene.timers.advance(9.9)
        assert scene.wire.sent == []
        scene.timers.advance(0.1)
        scene.wire.establish(20_000)
    assert scene.user.ends == []


def test_n21_a_silent_upstream_is_lost_within_one_interval() -> None:
    scene = Scene(keepalive=20_000)
    scene.timers.advance(19.9)
    assert scene.user.ends == []
    scene.timers.advance(0.1)
    assert (scene.wire.state, scene.end.refused, scene.end.problem) == ("aborted", False, "no response")


def test_the_upstream_may_change_the_interval() -> None:
    scene = Scene(keepalive=20_000)
    scene.wire.notify(KEEPALIVE, keepalive_tlv(SessionTimeouts(INFINITE, 10_000)).data)
    scene.timers.advance(10)
    scene.wire.establish(10_000)
    scene.timers.advance(5)
    assert scene.wire.kinds() == [KEEPALIVE]


def test_an_interval_without_end_is_a_minute_here() -> None:
    scene = Scene(keepalive=INFINITE)
    scene.timers.advance(30)
    assert scene.wire.kinds() == [KEEPALIVE]


def test_a_session_that_nothing_needs_is_closed_after_the_inactivity_timeout() -> None:
    scene = Scene(keepalive=10_000, inactivity=12_000)
    for _ in range(6):
        scene.timers.advance(5)
        scene.wire.establish(10_000, 12_000)
    scene.user.active = False
    assert not scene.wire.session.needs_connection
    scene.timers.advance(5)
    scene.wire.establish(10_000, 12_000)
    scene.timers.advance(5)
    scene.wire.establish(10_000, 12_000)
    assert scene.user.ends == []
    scene.timers.advance(5)
    assert (scene.wire.state, scene.end.problem) == ("left", "closed")


def test_queries_on_the_connection_keep_the_session_as_well() -> None:
    """RFC 8490 section 6.3: any message but Keepalive resets the inactivity timer, and a query in progress stops it."""
    scene = Scene(keepalive=10_000, inactivity=12_000)
    scene.user.active = False

    def live_for(intervals: int) -> None:
        for _ in range(intervals):
            scene.timers.advance(5)
            if scene.user.ends == []:
                scene.wire.establish(10_000, 12_000)

    for _ in range(6):
        scene.wire.reply()
        live_for(2)
    scene.wire.query_waits = True
    live_for(6)
    scene.wire.query_waits = False
    scene.wire.reply()
    live_for(2)
    assert scene.user.ends == []
    live_for(1)
    assert scene.end.problem == "closed"


def test_messages_of_the_upstream_and_requests_keep_the_session_as_well() -> None:
    scene = Scene(keepalive=10_000, inactivity=12_000)
    scene.user.active = False

    def wait() -> None:
        for _ in range(2):
            scene.timers.advance(5)
            scene.wire.establish(10_000, 12_000)

    wait()
    scene.wire.notify(KNOWN, b"x")
    wait()
    number = scene.wire.session.request(
        lambda ident: write_dso(DsoMessage(ident, False, 0, Tlv(0x40, b"x"))), lambda *_: None, goes_on=True
    )
    scene.wire.respond()
    wait()
    scene.wire.session.finish(number, write_dso(DsoMessage(0, False, 0, Tlv(0x42, b"xx"))))
    scene.wire.take()
    wait()
    assert scene.user.ends == []
    scene.timers.advance(5)
    assert scene.end.problem == "closed"


def test_a_retry_delay_ends_the_session_with_the_time_to_wait() -> None:
    scene = Scene()
    scene.wire.notify(DsoType.RETRY_DELAY, retry_delay_tlv(90_000).data)
    assert (scene.wire.state, scene.end.refused, scene.end.retry_after) == ("left", False, 90.0)


def test_nothing_happens_after_the_end() -> None:
    scene = Scene()
    rcodes: list[tuple[int, float]] = []
    ident = scene.wire.session.request(
        lambda ident: write_dso(DsoMessage(ident, False, 0, Tlv(0x40, b""))), lambda *got: rcodes.append(got)
    )
    scene.wire.session.close()
    assert not scene.wire.say(write_dso_response(ident, 0))
    scene.wire.session.lost()
    assert (scene.wire.session.is_over, scene.wire.reserved, rcodes, len(scene.user.ends)) == (True, set(), [], 1)
