"""A reader of the log that stalls or goes, or a full disk, costs lines of the log, and no answer."""

import os
import pty
import re
import socket
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.event_loops import PATIENCE
from tests.support.server_process import HEALTH, METRICS, READY, Server, launched, own_address, until
from topodns.app.standard_streams import AT_EXIT, CAPACITY

PORT = 5300
LINE = 2000  # octets
SOME = 200  # queries whose lines fill every pipe, socket and terminal
MANY = CAPACITY // LINE + 2 * SOME  # queries whose lines do not fit into what waits either
NAMES = " ".join(["{name}"] * 20)  # of a name of 100 octets
COREFILE = f"""
. {{
    bind HERE
    health HERE:{HEALTH} {{
        lameduck 0s
    }}
    ready HERE:{READY}
    prometheus HERE:{METRICS}
    log . "{NAMES}"
    template IN A {{
        answer "{{{{ .Name }}}} 0 IN A 192.0.2.1"
    }}
}}
"""


class Reader:
    """The other end of a server's stdout and stderr, which reads when the test wants it to."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._data = b""
        self._thread = threading.Thread(target=self._read_all, daemon=True)

    def start(self) -> None:
        """Read from now on, until there is no writer."""
        self._thread.start()

    def _read_all(self) -> None:
        with suppress(OSError):  # a terminal without a process, EIO
            while data := self._read(1 << 16):
                self._data += data

    def lines(self, word: str = "") -> list[str]:
        return [line for line in self._data.decode().splitlines() if word in line]

    def to_the_end(self) -> list[str]:
        """All lines, once the process has ended."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        assert self._data.endswith(b"\n")
        return self.lines()


@contextmanager
def connected(kind: str) -> Iterator[tuple[int, Reader]]:
    """A descriptor to write to, of this kind, and its reader."""
    if kind == "socket":
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.shutdown(socket.SHUT_WR)
            yield theirs.detach(), Reader(ours.recv)
        return
    read_end, write_end = os.pipe() if kind == "pipe" else pty.openpty()
    if kind == "terminal":
        tty.setraw(write_end)
    try:
        yield write_end, Reader(lambda size: os.read(read_end, size))
    finally:
        os.close(read_end)


@contextmanager
def unread(directory: Path, kind: str, corefile: str = COREFILE, *arguments: str) -> Iterator[tuple[Server, Reader]]:
    """A server that answers, and whose output has no reader yet."""
    address = own_address()
    (directory / "Corefile").write_text(corefile.replace("HERE", address))
    given = arguments or ("-conf", "Corefile", "-dns.port", str(PORT))
    given = tuple(each.replace("HERE", address) for each in given)
    with (
        connected(kind) as (descriptor, reader),
        launched(directory, *given, address=address, output=descriptor) as server,
    ):
        os.close(descriptor)
        server.port = PORT
        until(lambda: answers(server, "first"), "an answer")
        yield server, reader


def answers(server: Server, name: str) -> bool:
    with suppress(ConnectionError):
        return server.ask(f"{name}.{'x' * (98 - len(name)):.60}.example A").rcode == "NOERROR"
    return False


def stop(server: Server) -> None:
    server.process.terminate()
    assert server.wait() == 0


@pytest.mark.parametrize("kind", ["pipe", "socket", "terminal"])
def test_a_reader_that_stalls_costs_no_answer_and_later_learns_how_many_lines_it_missed(
    tmp_path: Path, kind: str
) -> None:
    with unread(tmp_path, kind) as (server, reader):
        for number in range(MANY):
            assert answers(server, f"n{number}")
        assert server.get("/health", HEALTH) == (200, "OK")
        assert server.get("/ready", READY)[0] == 200
        until(lambda: server.metric("topodns_log_lines_dropped_total") > 0, "lines dropped")
        reader.start()
        until(lambda: reader.lines("left out"), "the line of what was dropped")
        assert answers(server, "last")
        until(lambda: reader.lines("last."), "the log goes on")
        dropped = server.metric("topodns_log_lines_dropped_total")
        stop(server)
        lines = reader.to_the_end()
    (said,) = [line for line in lines if "left out" in line]
    assert re.fullmatch(rf"\[WARNING\] {dropped:.0f} lines of the log were left out.*", said)
    logged = [line for line in lines if line.startswith("[INFO] ") and "example." in line]
    numbers = [int(line.split(".")[0].removeprefix("[INFO] n")) for line in logged if line.startswith("[INFO] n")]
    assert numbers == sorted(set(numbers))  # in order, each once
    assert len(logged) + dropped == MANY + 2
    assert {len(line.split()) for line in logged} == {21}  # whole


def test_the_lines_of_workers_are_dropped_and_counted_like_those_of_the_first_process(tmp_path: Path) -> None:
    corefile = COREFILE.replace("    log", "    multisocket 2\n    log")
    with unread(tmp_path, "pipe", corefile) as (server, reader):
        until(lambda: server.get("/ready", READY)[0] == 200, "the worker serves")
        for number in range(2 * MANY):  # each from a port of its own: about half of them reach the worker
            assert answers(server, f"n{number}")
        assert server.get("/health", HEALTH) == (200, "OK")
        reader.start()
        until(lambda: len(reader.lines("left out")) == 2, "the line of each process")
        stop(server)
        lines = reader.to_the_end()
        logged = [line for line in lines if line.startswith("[INFO] ") and "example." in line]
        assert {len(line.split()) for line in logged} == {21}
        dropped = sum(int(line.split()[1]) for line in lines if "left out" in line)
        assert len(logged) + dropped == 2 * MANY + 1


def test_a_node_cache_answers_while_its_log_is_not_read(tmp_path: Path) -> None:
    flags = (
        "node-cache", "-localip=HERE", "-setupinterface=false", "-setupiptables=false", f"-dns.port={PORT}",
        f"-basecorefile={tmp_path}/Corefile", f"-kubednscm={tmp_path}/kube-dns",
    )  # fmt: skip
    with unread(tmp_path, "pipe", COREFILE, *flags) as (server, reader):
        for number in range(MANY):
            assert answers(server, f"n{number}")
        assert server.metric("topodns_log_lines_dropped_total") > 0
        reader.start()
        until(lambda: reader.lines("left out"), "the line of what was dropped")
        stop(server)


def test_a_server_whose_log_is_not_read_stops_soon(tmp_path: Path) -> None:
    with unread(tmp_path, "pipe") as (server, _):
        for number in range(SOME):
            assert answers(server, f"n{number}")
        server.process.terminate()
        assert server.process.wait(AT_EXIT + PATIENCE) == 0


def test_a_server_whose_log_has_lost_its_reader_goes_on_and_logs_for_the_next_one(tmp_path: Path) -> None:
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    first = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    descriptor = os.open(fifo, os.O_WRONLY)
    address = own_address()
    (tmp_path / "Corefile").write_text(COREFILE.replace("HERE", address))
    with launched(tmp_path, "-conf", "Corefile", "-dns.port", str(PORT), address=address, output=descriptor) as server:
        os.close(descriptor)
        server.port = PORT
        until(lambda: answers(server, "first"), "an answer")
        os.close(first)
        for number in range(SOME):
            assert answers(server, f"n{number}")
        again = os.open(fifo, os.O_RDONLY)
        reader = Reader(lambda size: os.read(again, size))
        reader.start()
        until(lambda: reader.lines(f"n{SOME - 1}."), "the lines of the time without a reader")
        stop(server)
        os.close(again)


def test_a_server_whose_log_is_on_a_full_disk_goes_on(tmp_path: Path) -> None:
    address = own_address()
    (tmp_path / "Corefile").write_text(COREFILE.replace("HERE", address))
    full = os.open("/dev/full", os.O_WRONLY)
    with launched(tmp_path, "-conf", "Corefile", "-dns.port", str(PORT), address=address, output=full) as server:
        os.close(full)
        server.port = PORT
        until(lambda: answers(server, "first"), "an answer")
        for number in range(MANY):
            assert answers(server, f"n{number}")
        assert server.metric("topodns_log_lines_dropped_total") > 0
        stop(server)
