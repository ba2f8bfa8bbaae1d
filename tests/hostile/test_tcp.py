"""TCP connections in numbers, connections that do not read, and connections that ask without end."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.dns_messages import Reply, query
from tests.support.server_process import METRICS, Server, open_tcp, receive_framed, send_framed, serving, until
from tests.support.socket_memory import kernel_octets
from tests.support.steady_client import MIN_ASKED, victim
from tests.support.tcp_flood import tcp_flood
from topodns.net.tcp_limits import TcpLimits

ADDRESSES = "\n".join(f"        198.51.{number // 250}.{number % 250} big.example" for number in range(1500))
COREFILE = f"""
. {{
    bind HERE
    prometheus HERE:{METRICS}
    hosts {{
        192.0.2.1 a.example
{ADDRESSES}
    }}
}}
"""
LIMITS = TcpLimits()
Closed = Callable[[str], float]
SECONDS = 1.5  # that an attack lasts


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("tcp"), COREFILE) as server:
        assert server.ask("big.example A", tcp=True).rcode == "NOERROR"
        yield server


@pytest.fixture
def closed(server: Server) -> Closed:
    """How many connections the server has closed since the test began, for this reason."""
    before = {reason: closed_by(server, reason) for reason in ("limit", "evicted", "deadline", "memory")}
    return lambda reason: closed_by(server, reason) - before[reason]


def ask_over(sock: socket.socket) -> list[str]:
    """The addresses that a new question over this connection is answered with."""
    send_framed(sock, query("a.example A"))
    return Reply(receive_framed(sock)).data


def closed_by(server: Server, reason: str) -> float:
    return server.metric("topodns_tcp_connections_closed_total", reason=reason)


@contextmanager
def connections(server: Server, sources: Sequence[str], each: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(open_tcp((server.address, server.port), source))
            for source in sources
            for _ in range(each)
        ]


def test_a_hundred_connections_that_do_not_read_take_a_listener_s_limit_and_no_more(
    server: Server, closed: Closed
) -> None:
    """In the kernel and in the process, and also after they were cut off."""
    before, kernel, resident = server.resident_bytes(), 0, 0
    with tcp_flood(server, "127.66.1.1", 100, "big.example A", deaf=True):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            kernel = max(kernel, kernel_octets(server.address, server.port))
            resident = max(resident, server.resident_bytes() - before)
        assert server.ask("a.example A", tcp=True).data == ["192.0.2.1"]
        assert closed("memory") > 0
    print(f"{kernel / 1e6:.1f} MB of the kernel's, {resident / 1e6:.1f} MB of the server's")
    assert kernel <= LIMITS.unread
    assert resident <= 2 * LIMITS.unread  # freed memory, which the allocator keeps, is part of it


def test_connections_that_were_cut_off_leave_nothing_in_the_kernel(tmp_path: Path) -> None:
    """Not even one whose client has closed its half, so that the answers are all that is left to be done."""
    short = COREFILE.replace("    hosts {", "    timeouts {\n        write 1s\n        idle 1s\n    }\n    hosts {")
    with serving(tmp_path, short) as server, connections(server, ["127.66.1.2"], 20) as deaf:
        for sock in deaf[:10]:
            send_framed(sock, *[query("big.example A")] * 200)
        for sock in deaf[10:]:
            send_framed(sock, *[query("big.example A")] * 200)
            sock.shutdown(socket.SHUT_WR)
        until(lambda: kernel_octets(server.address, server.port) > 1 << 20, "a megabyte that is not read")
        until(lambda: closed_by(server, "deadline") >= 20, "the end of their time")
        until(lambda: kernel_octets(server.address, server.port) < 1 << 16, "memory given back")


@pytest.mark.parametrize("name", ["a.example A", "big.example A"])
def test_a_hundred_pipelining_connections_delay_neither_datagrams_nor_other_connections(
    server: Server, name: str
) -> None:
    """A turn of the loop has half a millisecond for all connections, and each address its turn."""
    with (
        tcp_flood(server, "127.66.1.3", 100, name),
        victim(server, "a.example A", "192.0.2.1") as asked_udp,
        victim(server, "a.example A", "192.0.2.1", tcp=True) as asked_tcp,
    ):
        time.sleep(SECONDS)
        until(lambda: min(asked_udp.asked, asked_tcp.asked) >= MIN_ASKED, "enough asked for a verdict")
    for fate in (asked_udp, asked_tcp):
        print(f"{fate.asked} asked, p50 {fate.cpu(50) * 1e3:.2f} ms, p99 {fate.cpu(99) * 1e3:.2f} ms of CPU")
    assert (asked_udp.lost, asked_udp.wrong, asked_tcp.lost, asked_tcp.wrong) == (0, [], 0, [])
    # Of some fifty questions the 99th percentile is the slowest but one, so the 90th is held.
    assert asked_udp.cpu(50) <= 0.005
    assert asked_udp.cpu(90) <= 0.02
    assert asked_tcp.cpu(50) <= 0.01  # accepting, hearing and answering are turns of their own
    assert asked_tcp.cpu(90) <= 0.05


@pytest.mark.parametrize("number", [300, 600])
def test_all_connections_of_one_address_with_a_question_each_are_answered(
    server: Server, closed: Closed, number: int
) -> None:
    """hostNetwork Pods, those behind SNAT, and a node cache that asks over TCP are one address each."""
    with connections(server, ["127.66.1.4"], number // 2) as first:
        for sock in first:
            send_framed(sock, query("a.example A"))
        # Those that wait for their answer make no room: the second half comes once the first has been answered.
        answers = {tuple(Reply(receive_framed(sock)).data) for sock in first}
        with connections(server, ["127.66.1.4"], number - number // 2) as second:
            for sock in second:
                send_framed(sock, query("a.example A"))
            assert answers | {tuple(Reply(receive_framed(sock)).data) for sock in second} == {("192.0.2.1",)}
    assert closed("limit") == 0


def test_an_idle_connection_makes_room_with_a_fin_and_the_newest_stays(server: Server, closed: Closed) -> None:
    with connections(server, ["127.66.1.5"], LIMITS.per_address) as idle:
        assert {tuple(ask_over(sock)) for sock in idle} == {("192.0.2.1",)}
        with connections(server, ["127.66.1.5"], 1) as (newest,):
            assert ask_over(newest) == ["192.0.2.1"]
            assert idle[0].recv(1) == b""
            assert ask_over(idle[1]) == ["192.0.2.1"]
    assert closed("evicted") == 1


def test_ten_addresses_do_not_fill_a_listener(server: Server, closed: Closed) -> None:
    """Neither for another network nor for their neighbours."""
    crowd = [f"127.66.2.{number}" for number in range(1, 11)]
    with connections(server, crowd, 120) as idle:
        until(lambda: closed("evicted") >= len(idle) - LIMITS.per_prefix, "connections that make room")
        with connections(server, ["127.66.3.1", "127.66.2.200"], 1) as others:
            assert [ask_over(sock) for sock in others] == [["192.0.2.1"]] * 2


def test_a_full_listener_has_room_for_a_network_that_is_not_there_yet(server: Server, closed: Closed) -> None:
    """Also where none of its connections is idle: each has begun a message."""
    crowd = [f"127.66.{network}.1" for network in range(4, 9)]
    with connections(server, crowd, LIMITS.connections // 5) as unfinished:
        for sock in unfinished:
            sock.sendall(b"\x00")
        with connections(server, [f"127.67.{network}.1" for network in range(1, 6)], 1) as others:
            assert [ask_over(sock) for sock in others] == [["192.0.2.1"]] * 5
    assert closed("limit") == 0
