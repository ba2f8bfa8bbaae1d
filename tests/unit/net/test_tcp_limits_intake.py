"""The messages that a connection takes: up to a number of them, and after its end only those that began before."""

import pytest

from topodns.dns.tcp_framing import frame
from topodns.net.tcp_limits import TcpIntake

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
