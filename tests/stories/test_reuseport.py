"""Instances that share a port: who may join, and that the one that leaves first loses nothing."""

import socket
from collections.abc import Callable, Iterable

import pytest

from tests.support.event_loops import PATIENCE, has_ipv6
from topodns.net.reuseport import FIRST_PROCESS, Binding, Instance, Sharing, leave_group, share, take_all_again
from topodns.net.sockets import ListenError, open_tcp, open_udp

HOST = "127.0.0.1"
MANY = 64  # as many that each of two gets some, but for one time in 2**63

Opener = Callable[[str, int, Binding], list[socket.socket]]
FIRST, JOINED = Binding(Sharing.FIRST), Binding(Sharing.JOINED)
OPENERS = pytest.mark.parametrize("opener", [open_udp, open_tcp], ids=["udp", "tcp"])


def pair(opener: Opener) -> tuple[socket.socket, socket.socket]:
    """The first on a port, and one that joined."""
    (first,) = opener(HOST, 0, FIRST)
    (second,) = opener(HOST, first.getsockname()[1], JOINED)
    for sock in (first, second):
        if sock.type == socket.SOCK_STREAM:
            sock.listen(2 * MANY)
    return first, second


def call(to: socket.socket) -> list[socket.socket]:
    """As many clients, each with something to say."""
    clients = [socket.socket(to.family, to.type) for _ in range(MANY)]
    for client in clients:
        client.connect(to.getsockname())
        client.send(b"?")
    return clients


def heard(sock: socket.socket) -> int:
    """How many clients have come there."""
    count = 0
    while True:
        try:
            if sock.type == socket.SOCK_STREAM:
                sock.accept()[0].close()
            else:
                sock.recv(16)
        except BlockingIOError:
            return count
        count += 1


@OPENERS
def test_of_two_that_share_a_port_each_gets_a_part(opener: Opener) -> None:
    first, second = pair(opener)
    with first, second:
        clients = call(first)
        parts = heard(first), heard(second)
        assert sum(parts) == MANY
        assert all(parts)
        for client in clients:
            client.close()


@OPENERS
@pytest.mark.parametrize("leaver", [0, 1], ids=["the older", "the younger"])
def test_a_leaving_instance_gets_no_new_queries_and_keeps_those_that_have_arrived(opener: Opener, leaver: int) -> None:
    both = pair(opener)
    leaving, staying = both[leaver], both[1 - leaver]
    with leaving, staying:
        clients = call(leaving)
        leave_group(leaving, 1 - leaver)
        clients += call(staying)
        before = heard(leaving)
        assert 0 < before < MANY
        assert before + heard(staying) == 2 * MANY
        for client in clients:
            client.close()


@OPENERS
def test_after_the_older_is_gone_a_third_can_join_and_the_second_leave(opener: Opener) -> None:
    first, second = pair(opener)
    leave_group(first, 1)
    first.close()
    (third,) = opener(HOST, second.getsockname()[1], JOINED)
    with second, third:
        if third.type == socket.SOCK_STREAM:
            third.listen(2 * MANY)
        leave_group(second, 1)
        clients = call(third)
        assert (heard(second), heard(third)) == (0, MANY)
        for client in clients:
            client.close()


def test_a_leaving_instance_can_still_answer_queries_that_have_arrived() -> None:
    first, second = pair(open_udp)
    with first, second, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.bind((HOST, 0))
        client.settimeout(PATIENCE)
        leave_group(first, 1)
        first.sendto(b"!", client.getsockname())
        assert client.recvfrom(16) == (b"!", first.getsockname())


@OPENERS
def test_the_first_instance_is_refused_a_port_that_another_program_shares(opener: Opener) -> None:
    """A NodeLocal DNSCache, for instance: CoreDNS opens all of its ports so."""
    (theirs,) = opener(HOST, 0, JOINED)
    with theirs:
        if theirs.type == socket.SOCK_STREAM:
            theirs.listen()
        with pytest.raises(ListenError, match="already in use"):
            opener(HOST, theirs.getsockname()[1], FIRST)


@OPENERS
def test_no_instance_joins_a_port_that_was_opened_alone(opener: Opener) -> None:
    (alone,) = opener(HOST, 0, Binding())
    with alone:
        if alone.type == socket.SOCK_STREAM:
            alone.listen()
        with pytest.raises(ListenError, match="already in use"):
            opener(HOST, alone.getsockname()[1], JOINED)


@OPENERS
def test_a_port_that_was_opened_alone_can_be_shared_later_and_each_gets_a_part(opener: Opener) -> None:
    (first,) = opener(HOST, 0, Binding())
    if first.type == socket.SOCK_STREAM:
        first.listen(2 * MANY)
    share([first])
    (second,) = opener(HOST, first.getsockname()[1], FIRST_PROCESS.binding(HOST))
    with first, second:
        if second.type == socket.SOCK_STREAM:
            second.listen(2 * MANY)
        clients = call(first)
        parts = heard(first), heard(second)
        assert sum(parts) == MANY
        assert all(parts)
        for client in clients:
            client.close()


@OPENERS
def test_a_worker_leaves_to_the_first_process_and_the_rest_share_the_port_again(opener: Opener) -> None:
    first, second = pair(opener)
    (third,) = opener(HOST, first.getsockname()[1], JOINED)
    with first, second, third:
        if third.type == socket.SOCK_STREAM:
            third.listen(2 * MANY)
        stays = FIRST_PROCESS.peers.successor()
        assert stays == 0
        leave_group(second, stays)
        clients = call(first)
        assert heard(second) == 0
        second.close()
        for sock in (first, third):
            heard(sock)
        take_all_again([first])
        take_all_again([first])  # nothing to undo
        clients += call(first)
        assert heard(first) + heard(third) == MANY
        for client in clients:
            client.close()


def test_an_instance_joins_where_there_are_others() -> None:
    class Some:
        def __init__(self, others: bool) -> None:
            self._others = others

        def others(self) -> bool:
            return self._others

        def opened(self, sockets: Iterable[socket.socket]) -> None:
            pass

        def successor(self) -> int | None:
            return None

    for others, expected in ((True, Sharing.JOINED), (False, Sharing.FIRST)):
        instance = Instance(("a",), Some(others), frozenset({"192.0.2.1"}))
        assert instance.binding("192.0.2.1") == (expected, True)
        assert instance.binding("192.0.2.2") == (expected, False)


@OPENERS
def test_an_address_that_is_kept_may_be_away_for_now(opener: Opener) -> None:
    for host in ("192.0.2.1", *(["2001:db8::1"] if has_ipv6() else [])):
        with pytest.raises(ListenError, match="cannot assign"):
            opener(host, 5353, FIRST)
        (sock,) = opener(host, 5353, Binding(Sharing.FIRST, free=True))
        sock.close()
