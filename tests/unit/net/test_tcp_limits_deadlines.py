"""The deadline of a client's TCP connection after each event."""

import sys
from collections.abc import Callable

import pytest

from tests.support.virtual_timers import VirtualTimers
from topodns.net.tcp_limits import ConnectionDeadline, TcpLimits

LIMITS = TcpLimits(idle=10.0, message=3.0, write=7.0, awaited=5.0)


def opened() -> tuple[ConnectionDeadline, VirtualTimers]:
    """The deadline of a connection that was accepted two seconds ago."""
    timers = VirtualTimers()
    deadline = ConnectionDeadline(LIMITS, timers)
    timers.advance(2.0)
    return deadline, timers


def left(deadline: ConnectionDeadline, timers: VirtualTimers) -> float:
    return deadline.at - timers.time()


def test_a_connection_without_a_message_has_the_idle_time_from_its_start() -> None:
    deadline, timers = opened()
    assert left(deadline, timers) == 8.0


@pytest.mark.parametrize(
    ("event", "seconds"),
    [
        pytest.param(lambda deadline: deadline.data_read(0, False), 10.0, id="a whole message"),
        pytest.param(lambda deadline: deadline.data_read(0, True), 10.0, id="the rest of a message"),
        pytest.param(lambda deadline: deadline.data_read(1, False), 3.0, id="the first octet of a message"),
        pytest.param(lambda deadline: deadline.data_read(2, True), 8.0, id="another octet of the same message"),
        pytest.param(lambda deadline: deadline.reading_stops(), 10.0, id="the server answers before it reads on"),
        pytest.param(lambda deadline: deadline.reading_resumes(1), 3.0, id="it reads on, in the midst of a message"),
        pytest.param(lambda deadline: deadline.reading_resumes(0), 10.0, id="it reads on, and all was whole"),
        pytest.param(lambda deadline: deadline.postpone(2.5), 10.5, id="the process stood still"),
        pytest.param(lambda deadline: deadline.buffer_full(), 7.0, id="a client that does not read"),
        pytest.param(lambda deadline: deadline.replies_written(), 10.0, id="a client that reads again"),
        pytest.param(lambda deadline: deadline.listener_closes(awaited=True), 5.0, id="a close, replies awaited"),
        pytest.param(lambda deadline: deadline.listener_closes(awaited=False), 3.0, id="a close"),
    ],
)
def test_each_event_sets_the_seconds_that_are_left(event: Callable[[ConnectionDeadline], None], seconds: float) -> None:
    deadline, timers = opened()
    event(deadline)
    assert left(deadline, timers) == seconds


def test_a_session_has_an_idle_time_of_its_own_from_its_start_on() -> None:
    deadline, timers = opened()
    deadline.hold_open(30.0)
    assert left(deadline, timers) == 30.0
    deadline.data_read(1, False)
    assert left(deadline, timers) == 3.0
    deadline.data_read(0, True)
    assert left(deadline, timers) == 30.0


def test_a_message_that_drips_keeps_the_deadline_of_its_first_octet() -> None:
    deadline, timers = opened()
    deadline.data_read(1, False)
    for pending in range(2, 6):
        timers.advance(0.5)
        deadline.data_read(pending, True)
    assert left(deadline, timers) == 1.0


def test_a_close_of_the_listener_gives_no_connection_more_time_than_it_had() -> None:
    deadline, timers = opened()
    deadline.data_read(1, False)
    timers.advance(2.0)
    deadline.listener_closes(awaited=True)
    assert left(deadline, timers) == 1.0


def test_no_event_changes_a_fixed_deadline() -> None:
    deadline, timers = opened()
    deadline.fixed = True
    deadline.data_read(0, False)
    deadline.data_read(1, False)
    deadline.buffer_full()
    deadline.replies_written()
    deadline.listener_closes(awaited=False)
    assert left(deadline, timers) == 8.0


def test_a_deadline_costs_each_connection_at_most_64_octets() -> None:
    deadline, _ = opened()
    assert sys.getsizeof(deadline) <= 64
