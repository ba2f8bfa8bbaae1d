"""Limits of DNS clients over TCP: deadlines, messages of a connection, and which one makes room for a new one."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.support.virtual_timers import VirtualTimers
from topodns.dns.tcp_framing import frame
from topodns.net.tcp_limits import Admission, AdmissionVerdict, ConnectionDeadline, TcpIntake, TcpLimits, prefix_of


@pytest.mark.parametrize(
    ("connections", "expected"),
    [(1000, (1000, 500, 300)), (100, (100, 50, 30)), (1, (1, 1, 1))],
)
def test_limits_of_a_client_are_reduced_in_proportion(connections: int, expected: tuple[int, int, int]) -> None:
    limits = TcpLimits().within(connections)
    assert (limits.connections, limits.per_prefix, limits.per_address) == expected
    assert limits.idle == TcpLimits().idle
    assert TcpLimits().within(5000) == TcpLimits()


LIMITS = TcpLimits(connections=6, per_prefix=4, per_address=3)


@dataclass(eq=False)
class Connection:
    address: bytes
    deadline: ConnectionDeadline
    busy: bool = False

    def is_idle(self) -> bool:
        return not self.busy


def at(host: str) -> bytes:
    return bytes(map(int, host.split(".")))


def due(seconds: int) -> ConnectionDeadline:
    """A deadline so many seconds after a fixed time."""
    timers = VirtualTimers()
    timers.advance(seconds)
    return ConnectionDeadline(LIMITS, timers)


def opened(*hosts: str, busy: bool = False) -> tuple[Admission[Connection], list[Connection]]:
    """Connections from these addresses, the first with the least time left."""
    admission: Admission[Connection] = Admission(Connection.is_idle, lambda connection: connection.deadline.at)
    connections = [Connection(at(host), due(number), busy) for number, host in enumerate(hosts)]
    for connection in connections:
        admission.add(connection.address, connection)
    return admission, connections


def judged(admission: Admission[Connection], host: str, limits: TcpLimits = LIMITS) -> AdmissionVerdict[Connection]:
    return admission.judge(at(host), limits)


def test_where_there_is_room_nothing_makes_any() -> None:
    admission, _ = opened("10.0.0.1", "10.0.0.1", "10.0.1.1")
    assert judged(admission, "10.0.0.1") == (True, None)


def test_above_an_address_s_share_its_own_connection_with_the_least_time_left_makes_room() -> None:
    admission, (other, first, second, _) = opened("10.0.0.2", *["10.0.0.1"] * 3)
    assert judged(admission, "10.0.0.1") == (True, first)
    first.deadline = due(9)
    assert judged(admission, "10.0.0.1") == (True, second)
    assert other in list(admission)


def test_one_that_is_being_answered_makes_no_room_for_its_own_address() -> None:
    admission, connections = opened(*["10.0.0.1"] * 3, busy=True)
    assert judged(admission, "10.0.0.1") == (False, None)
    connections[2].busy = False
    assert judged(admission, "10.0.0.1") == (True, connections[2])


def test_above_a_network_s_share_its_address_with_most_makes_room() -> None:
    admission, connections = opened("10.0.0.1", *["10.0.0.2"] * 3)
    assert judged(admission, "10.0.0.3") == (True, connections[1])


def test_above_a_network_s_share_an_idle_one_of_another_address_goes_before_a_busy_one_of_the_heaviest() -> None:
    admission, connections = opened("10.0.0.1", *["10.0.0.2"] * 3, busy=True)
    connections[0].busy = False
    assert judged(admission, "10.0.0.3") == (True, connections[0])


def test_where_all_of_a_network_are_being_answered_the_heaviest_address_gives_one_to_a_lighter_one() -> None:
    admission, connections = opened("10.0.0.1", *["10.0.0.2"] * 3, busy=True)
    assert judged(admission, "10.0.0.3") == (True, connections[1])
    assert judged(admission, "10.0.0.1") == (True, connections[1])
    evenly, _ = opened("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2", busy=True)
    assert judged(evenly, "10.0.0.1") == (False, None)


@pytest.mark.parametrize("busy", [False, True])
def test_a_full_listener_has_room_for_a_network_with_few(busy: bool) -> None:
    admission, connections = opened("10.0.1.1", "10.0.1.1", *["10.0.2.1"] * 3, "10.0.2.2", busy=busy)
    assert judged(admission, "10.0.3.1") == (True, connections[2])
    assert judged(admission, "10.0.1.1") == (True, connections[2])


def test_a_full_listener_has_none_for_one_more_of_the_heaviest_where_all_are_being_answered() -> None:
    admission, _ = opened(*["10.0.1.1"] * 3, *["10.0.2.1"] * 3, busy=True)
    assert judged(admission, "10.0.1.2") == (False, None)


def test_one_with_a_session_counts_for_no_limit_and_makes_no_room() -> None:
    admission, connections = opened(*["10.0.0.1"] * 3, "10.0.0.2")
    for connection in connections[:3]:
        admission.hold(connection.address, connection)
    assert (len(admission), set(admission)) == (4, set(connections))
    assert judged(admission, "10.0.0.1") == (True, None)
    for number in range(3):
        host = at(f"10.0.0.{3 + number}")
        admission.add(host, Connection(host, due(9)))
    assert judged(admission, "10.0.0.9") == (True, connections[3])


def test_one_whose_session_ends_counts_again_and_makes_room_even_above_a_limit() -> None:
    admission, connections = opened(*["10.0.0.1"] * 4)
    first, *others = connections
    admission.hold(first.address, first)
    admission.hold(first.address, first)
    assert judged(admission, "10.0.0.1") == (True, others[0])
    admission.release(first.address, first)
    admission.release(first.address, first)
    assert (len(admission), judged(admission, "10.0.0.1")) == (4, (True, first))
    for connection in others[:2]:
        admission.remove(connection.address, connection)
    assert judged(admission, "10.0.0.1") == (True, None)


def test_one_that_is_gone_is_not_held() -> None:
    admission, (first, second) = opened("10.0.0.1", "10.0.0.1")
    admission.remove(first.address, first)
    admission.hold(first.address, first)
    admission.hold(second.address, second)
    assert [admission.remove(each.address, each) for each in (first, second, second)] == [False, True, False]
    assert (len(admission), list(admission)) == (0, [])


def test_networks_are_a_24_and_a_64() -> None:
    assert prefix_of(at("10.1.2.3")) == at("10.1.2.0")[:3]
    assert prefix_of(bytes(range(16))) == bytes(range(8))


def test_a_removed_connection_is_forgotten_once() -> None:
    admission, connections = opened("10.0.0.1", "10.0.0.1", "10.0.1.1")
    assert [admission.remove(each.address, each) for each in connections] == [True] * 3
    assert [admission.remove(each.address, each) for each in connections] == [False] * 3
    assert (len(admission), list(admission)) == (0, [])
    assert not admission.remove(b"", Connection(b"", due(0)))  # one whose address was never known


TIMES = TcpLimits(idle=10.0, message=3.0, write=7.0, awaited=5.0)


def accepted() -> tuple[ConnectionDeadline, VirtualTimers]:
    """The deadline of a connection that was accepted two seconds ago."""
    timers = VirtualTimers()
    deadline = ConnectionDeadline(TIMES, timers)
    timers.advance(2.0)
    return deadline, timers


def left(deadline: ConnectionDeadline, timers: VirtualTimers) -> float:
    return deadline.at - timers.time()


def test_a_connection_without_a_message_has_the_idle_time_from_its_start() -> None:
    deadline, timers = accepted()
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
    deadline, timers = accepted()
    event(deadline)
    assert left(deadline, timers) == seconds


def test_a_tls_handshake_has_the_time_of_a_message_and_is_followed_by_idle_time() -> None:
    deadline, timers = accepted()
    deadline.handshake_begins()
    assert left(deadline, timers) == 3.0
    deadline.handshake_ended()
    assert left(deadline, timers) == 10.0


def test_a_session_has_an_idle_time_of_its_own_from_its_start_on() -> None:
    deadline, timers = accepted()
    deadline.hold_open(30.0)
    assert left(deadline, timers) == 30.0
    deadline.data_read(1, False)
    assert left(deadline, timers) == 3.0
    deadline.data_read(0, True)
    assert left(deadline, timers) == 30.0


def test_a_message_that_drips_keeps_the_deadline_of_its_first_octet() -> None:
    deadline, timers = accepted()
    deadline.data_read(1, False)
    for pending in range(2, 6):
        timers.advance(0.5)
        deadline.data_read(pending, True)
    assert left(deadline, timers) == 1.0


def test_a_close_of_the_listener_gives_no_connection_more_time_than_it_had() -> None:
    deadline, timers = accepted()
    deadline.data_read(1, False)
    timers.advance(2.0)
    deadline.listener_closes(awaited=True)
    assert left(deadline, timers) == 1.0


def test_no_event_changes_a_fixed_deadline() -> None:
    deadline, timers = accepted()
    deadline.fixed = True
    deadline.data_read(0, False)
    deadline.data_read(1, False)
    deadline.buffer_full()
    deadline.replies_written()
    deadline.listener_closes(awaited=False)
    assert left(deadline, timers) == 8.0


def test_a_deadline_costs_each_connection_at_most_64_octets() -> None:
    deadline, _ = accepted()
    assert sys.getsizeof(deadline) <= 64


ONE, TWO, THREE = b"one", b"two", b"three"
STREAM = b"".join(map(frame, (ONE, TWO, THREE)))


def finishing(arrived: int, queries: int = 0) -> TcpIntake:
    """An intake that has ended when the kernel had so many octets."""
    intake = TcpIntake(queries)
    intake.finishing, intake.arrived = True, arrived
    return intake


def test_messages_are_complete_in_whatever_pieces_they_come() -> None:
    intake = TcpIntake(0)
    assert intake.receive(STREAM[:8]) == [ONE]
    assert (intake.reader.pending, intake.is_over) == (3, False)
    assert intake.receive(STREAM[8:]) == [TWO, THREE]
    assert intake.limited([TWO, THREE]) == [TWO, THREE]


def test_after_the_last_of_so_many_messages_nothing_is_taken_any_more() -> None:
    intake = TcpIntake(2)
    assert intake.limited(intake.receive(STREAM[:5])) == [ONE]
    assert not intake.finishing
    assert intake.limited(intake.receive(STREAM[5:] + b"\0")) == [TWO]
    assert (intake.is_over, intake.reader.pending) == (True, 0)


@pytest.mark.parametrize(
    ("arrived", "taken"),
    [(0, []), (1, [ONE]), (5, [ONE]), (6, [ONE, TWO]), (len(STREAM), [ONE, TWO, THREE])],
)
def test_at_the_end_messages_that_begin_in_what_the_kernel_had_are_taken(arrived: int, taken: list[bytes]) -> None:
    assert finishing(arrived).receive(STREAM) == taken


def test_at_the_end_a_message_that_has_begun_is_still_taken() -> None:
    intake = TcpIntake(0)
    assert intake.receive(STREAM[:2]) == []
    intake.finishing = True
    assert not intake.is_over
    assert intake.receive(STREAM[2:]) == [ONE]
    assert intake.is_over


def test_what_the_kernel_had_may_come_in_several_reads() -> None:
    intake = finishing(8)
    assert intake.receive(STREAM[:5]) == [ONE]
    assert intake.arrived == 3
    assert intake.receive(STREAM[5:]) == [TWO]
    assert intake.is_over


def test_the_rest_of_a_message_can_be_dropped() -> None:
    intake = finishing(100)
    intake.receive(STREAM[:3])
    intake.drop_rest()
    assert (intake.reader.pending, intake.arrived, intake.is_over) == (0, 0, True)


READS = [frame(ONE), STREAM, frame(ONE)[:4], frame(b""), b"\0", frame(ONE) + b"\0"]


@pytest.mark.parametrize("read", READS)
def test_a_read_that_is_exactly_one_message_is_a_lone_message(read: bytes) -> None:
    lone = TcpIntake(0).lone_message(memoryview(read.ljust(64, b"x")), len(read))
    assert lone == (ONE if read == frame(ONE) else None)
    assert lone is None or TcpIntake(0).receive(read) == [lone]


def test_no_message_is_lone_behind_an_incomplete_one_with_a_limit_of_queries_or_at_the_end() -> None:
    begun = TcpIntake(0)
    begun.receive(b"\0")
    for intake in (begun, TcpIntake(5), finishing(arrived=100)):
        assert intake.lone_message(memoryview(frame(ONE)), len(frame(ONE))) is None
