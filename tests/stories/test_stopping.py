"""How the program ends: SIGTERM with its lameduck, SIGINT at once, and nothing left behind."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dns_messages import query
from tests.support.server_process import (
    HEALTH,
    READY,
    Server,
    launched,
    open_tcp,
    receive_framed,
    send_framed,
    serving,
    until,
)

COREFILE = """
. {
    bind HERE
    health HERE:8080 {
        lameduck %s
    }
    ready HERE:8181
    whoami
}
"""


@pytest.fixture
def lame(tmp_path: Path) -> Iterator[Server]:
    """A server whose lameduck is longer than any story; an interrupt cuts it short."""
    with serving(tmp_path, COREFILE % "60s", "-pidfile", str(tmp_path / "pid")) as server:
        yield server


def test_sigterm_is_first_not_ready_then_still_answers_and_only_then_ends_with_0(tmp_path: Path) -> None:
    with serving(tmp_path, COREFILE % "1s") as server:
        assert server.get("/ready", READY) == (200, "OK")
        server.signal(signal.SIGTERM)
        until(lambda: server.get("/ready", READY) == (503, "Shutting down"), "/ready to say no")
        assert server.get("/health", HEALTH) == (200, "OK")
        for tcp in (False, True):
            assert server.ask("example.org A", tcp=tcp).rcode == "NOERROR"
        assert server.process.poll() is None
        assert server.lines("lameduck") == ["[INFO] plugin/health: Going into lameduck mode for 1s"]
        assert server.wait() == 0


def test_a_second_sigterm_does_not_cut_the_lameduck_short_but_an_interrupt_does(lame: Server) -> None:
    lame.signal(signal.SIGTERM)
    lame.wait_for_line("lameduck")
    lame.signal(signal.SIGTERM)
    assert [lame.ask("example.org A").rcode for _ in range(50)] == ["NOERROR"] * 50
    assert lame.process.poll() is None
    lame.signal(signal.SIGINT)
    assert lame.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_an_interrupt_ends_it_without_the_lameduck(lame: Server, number: signal.Signals) -> None:
    lame.signal(number)
    assert lame.wait() == 0
    assert lame.lines("lameduck") == []


def test_a_second_interrupt_ends_it_at_once_with_2(lame: Server) -> None:
    with open_tcp((lame.address, lame.port)) as sock:
        sock.sendall(b"\0")  # half of a length: for its sake the drain would go on for seconds
        assert lame.ask("example.org A", tcp=True).rcode == "NOERROR"  # by now that octet has been read
        lame.signal(signal.SIGINT)
        until(lambda: lame_is_draining(lame), "the drain")
        lame.signal(signal.SIGINT)
        assert lame.wait() == 2


def lame_is_draining(server: Server) -> bool:
    """Whether new connections are refused already."""
    try:
        with open_tcp((server.address, server.port)):
            return False
    except ConnectionRefusedError:
        return True


def test_a_begun_tcp_query_is_answered_before_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, COREFILE % "0s") as server, open_tcp((server.address, server.port)) as sock:
        message = query("example.org A")
        sock.sendall(len(message).to_bytes(2, "big") + message[:5])
        server.ask("example.org A", tcp=True)
        server.signal(signal.SIGTERM)
        until(lambda: lame_is_draining(server), "the drain")
        sock.sendall(message[5:])
        assert receive_framed(sock)[:2] == message[:2]
        assert sock.recv(1) == b""
        assert server.wait() == 0


def test_queries_in_flight_at_the_end_are_answered(tmp_path: Path) -> None:
    with serving(tmp_path, COREFILE % "0s") as server, open_tcp((server.address, server.port)) as sock:
        send_framed(sock, *(query("example.org A", ident=ident) for ident in range(300)))
        first = receive_framed(sock)
        reader = threading.Thread(target=lambda: rest.extend(receive_framed(sock) for _ in range(299)))
        rest: list[bytes] = []
        server.signal(signal.SIGTERM)
        reader.start()
        reader.join()
        assert {int.from_bytes(wire[:2], "big") for wire in [first, *rest]} == set(range(300))
        assert server.wait() == 0


def test_the_pid_file_is_there_while_it_serves_and_gone_after(tmp_path: Path, lame: Server) -> None:
    assert (tmp_path / "pid").read_text() == f"{lame.pid}\n"
    lame.signal(signal.SIGINT)
    assert lame.wait() == 0
    assert not (tmp_path / "pid").exists()


def test_signals_that_coredns_survives_are_survived(lame: Server) -> None:
    for number in (signal.SIGHUP, signal.SIGUSR2):
        lame.signal(number)
    lame.wait_for_line("SIGUSR2")
    assert lame.ask("example.org A").rcode == "NOERROR"
    assert lame.process.poll() is None
    lame.signal(signal.SIGINT)
    assert lame.wait() == 0


def minds(server: Server, number: signal.Signals) -> bool:
    """Whether the process has a handler for this signal already."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def test_signals_that_come_during_the_start_do_not_kill_it_and_sigterm_ends_it_with_0(tmp_path: Path) -> None:
    (tmp_path / "Corefile").write_text(". {\n    bind 127.0.0.1\n    whoami\n}\n")
    with launched(tmp_path, "-p", "0") as server:
        until(lambda: minds(server, signal.SIGTERM), "a handler of SIGTERM")
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM):
            server.signal(number)
        assert server.wait() == 0
