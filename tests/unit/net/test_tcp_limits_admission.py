"""Which connection makes room for a new one: shares by address, by network, and of all."""

from dataclasses import dataclass

import pytest

from tests.support.virtual_timers import VirtualTimers
from topodns.net.tcp_limits import Admission, AdmissionVerdict, ConnectionDeadline, TcpLimits, prefix_of

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


def test_with_fewer_connections_the_shares_are_as_many_times_fewer() -> None:
    limits = TcpLimits().within(100)
    assert (limits.connections, limits.per_prefix, limits.per_address) == (100, 50, 30)
    assert TcpLimits().within(5000) == TcpLimits()
    few = TcpLimits().within(1)
    assert (few.connections, few.per_prefix, few.per_address) == (1, 1, 1)
