"""The sockets of queries over UDP are used again, and their ports are not."""

import asyncio
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.event_loops import PATIENCE, either_loop, eventually
from tests.support.faulty_upstream import ANSWER, Act, Asked, bad_upstream
from tests.support.upstream_faults import answers
from tests.support.upstream_queries import UDP, addresses, ask, open_files, upstream_at
from topodns.net.upstream import udp_transport
from topodns.net.upstream.address import resolve_endpoint
from topodns.net.upstream.udp_transport import KEPT, SourcePorts, UdpSockets

pytestmark = either_loop


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(PATIENCE)
        yield sock


@contextmanager
def ports_to(peer: socket.socket, budget: UdpSockets, source: str = "") -> Iterator[SourcePorts]:
    endpoint = resolve_endpoint("127.0.0.1", peer.getsockname()[1], None, "", source)
    ports = SourcePorts(asyncio.get_running_loop(), endpoint, budget)
    try:
        yield ports
    finally:
        ports.close()


async def test_one_after_another_queries_share_a_socket_and_no_port(loop_name: str) -> None:
    before = open_files()
    with bad_upstream(answers) as server:
        async with upstream_at(server.port) as upstream:
            await addresses(ask(upstream, UDP))
            opened = open_files()
            for _ in range(100):
                assert await addresses(ask(upstream, UDP)) == [ANSWER]
            assert open_files() == opened
        assert len({asked.port for asked in server.asked}) > 90  # of 28,000 ports: a few may well be equal
    assert open_files() == before


def sent(ports: SourcePorts, message: bytes = b"query") -> tuple[int, socket.SocketType]:
    """The socket from which the message is sent, after its file descriptor."""
    descriptor = ports.send(message)
    assert descriptor is not None, "no socket left"
    return descriptor, ports.sockets[descriptor]


@pytest.mark.parametrize("source", ["", "127.0.0.9"])
async def test_the_port_of_a_released_socket_is_closed_and_its_address_is_kept(loop_name: str, source: str) -> None:
    with listening() as peer, ports_to(peer, UdpSockets(), source) as ports:
        used = set()
        for _ in range(20):
            descriptor, sock = sent(ports)
            _, client = peer.recvfrom(512)
            assert client == sock.getsockname()
            assert client[0] == (source or "127.0.0.1")
            used.add(client)
            ports.release(descriptor)
            assert sock.getsockname()[1] == 0
            assert is_refused(client)
        assert len(used) > 15


async def test_a_second_datagram_in_a_released_socket_closes_it(loop_name: str) -> None:
    budget = UdpSockets()
    with listening() as peer, ports_to(peer, budget) as ports:
        descriptor, sock = sent(ports)
        _, client = peer.recvfrom(512)
        peer.sendto(b"reply", client)
        peer.sendto(b"reply", client)
        assert sock.recv(512) == b"reply"
        ports.release(descriptor)
        ((readable, _),) = ports.epoll.poll(5)
        assert readable == descriptor
        ports.close_idle(descriptor)
        assert budget.open == 0
        assert ports.epoll.poll(0) == []


async def test_replies_that_come_twice_leave_nothing_behind(loop_name: str) -> None:
    with bad_upstream(twice) as server:
        async with upstream_at(server.port) as upstream:
            for number in range(50):
                assert await addresses(ask(upstream, UDP, f"n{number}.example.org A")) == [ANSWER]
    assert len(server.asked) == 50


def twice(asked: Asked) -> list[Act]:
    return [*answers(asked), *answers(asked)]


async def test_no_more_than_so_many_sockets_are_kept_and_none_when_descriptors_are_short(loop_name: str) -> None:
    budget = UdpSockets()
    with listening() as peer, ports_to(peer, budget) as ports:
        sockets = [sent(ports) for _ in range(KEPT + 10)]
        for descriptor, _ in sockets:
            ports.release(descriptor)
        assert budget.open == KEPT
        budget.most = 2 * KEPT
        ports.release(sent(ports)[0])
        assert budget.open == KEPT - 1
        budget.most = 0
        used = [sent(ports) for _ in range(KEPT - 1)]
        assert ports.send(b"query") is None
        for descriptor, _ in used:
            ports.close_socket(descriptor)
    assert budget.open == 0


async def test_sockets_without_a_query_are_closed_in_time(loop_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp_transport, "IDLE", 0.05)
    budget = UdpSockets()
    with listening() as peer, ports_to(peer, budget) as ports:
        for descriptor, _ in [sent(ports) for _ in range(3)]:
            ports.release(descriptor)
        assert budget.open == 3
        await eventually(lambda: budget.open == 0)
        ports.release(sent(ports)[0])
        await eventually(lambda: budget.open == 0)


async def test_an_error_that_waits_in_a_kept_socket_is_not_the_next_query_s(loop_name: str) -> None:
    budget = UdpSockets()
    with listening() as peer, ports_to(peer, budget) as ports:
        descriptor, sock = sent(ports)
        closed = peer.getsockname()
        peer.close()
        sock.send(b"refused")
        assert is_readable(sock), "the kernel's ICMP error is pending"
        with socket.socket(type=socket.SOCK_DGRAM) as again:
            again.bind(closed)
            again.settimeout(PATIENCE)
            ports.release(descriptor)
            number, following = sent(ports, b"next")
            assert following is not sock
            assert again.recvfrom(512)[0] == b"next"
        assert budget.open == 1
        ports.close_socket(number)


def is_refused(address: tuple[str, int]) -> bool:
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE)
        sock.connect(address)
        sock.send(b"late")
        try:
            sock.recv(512)
        except ConnectionRefusedError:  # the kernel's ICMP error
            return True
    return False


def is_readable(sock: socket.SocketType) -> bool:
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(5000))
