"""The whole program as a process of its own on loopback, for stories: started, asked, signalled, ended by its id.

Each server has a loopback address to itself, so that its ports, fixed ones too, collide with no other.
"""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from tests.support.dns_messages import Opt, Reply, query
from tests.support.event_loops import PATIENCE
from tests.support.forked_server import ForkedProcess, is_at_home
from tests.support.forked_server import environment as variables
from tests.support.scraped_metrics import Scrape, fresh

ROOT: Final = Path(__file__).parents[2]
HEALTH, READY, METRICS = 8080, 8181, 9153  # the default ports

COMMAND: Final = (sys.executable, "-m", "topodns")
_counter = count(1)


def own_address() -> str:
    """A loopback address that no other test of this machine uses now, and no client of a story."""
    number = os.getpid() * 61 + next(_counter)
    return f"127.{200 + number // 62500 % 50}.{1 + number // 250 % 250}.{1 + number % 250}"


def until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Return once the condition holds; fail after `patience` seconds. Looks more seldom the longer it waits."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < patience, f"not within {patience:g} s: {what}"
        time.sleep(min(0.05, 0.005 + waited / 20))


def topodns(*arguments: str, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A run of the program that ends by itself, as a fork (`tests.support.forked_server`)."""
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        process = ForkedProcess(arguments, cwd or ROOT, (given, out, err))
        try:
            status = process.wait()
        finally:
            process.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read().decode(), err.read().decode())


class Server:
    """A running server. `address` and `port` are where it is asked unless said otherwise."""

    def __init__(self, process: subprocess.Popen[bytes] | ForkedProcess, directory: Path, address: str) -> None:
        self.process = process
        self.address = address
        self.port = 0
        self._stdout, self._stderr = directory / "stdout", directory / "stderr"

    @property
    def pid(self) -> int:
        return self.process.pid

    def output(self) -> str:
        return self._stdout.read_text()

    def errors(self) -> str:
        return self._stderr.read_text()

    def lines(self, word: str = "") -> list[str]:
        """The lines of the output with this word in it."""
        return [line for line in self.output().splitlines() if word in line]

    def wait_for_line(self, word: str) -> str:
        until(lambda: self.lines(word), f"{word!r} in the output:\n{self.output()}{self.errors()}")
        return self.lines(word)[0]

    def ask(
        self,
        question: str,
        source: str = "",
        opt: Opt | None = None,
        tcp: bool = False,
        to: str = "",
        port: int = 0,
        patience: float = PATIENCE,
    ) -> Reply:
        """The reply to `NAME [CLASS] TYPE`, asked from this source address; over UDP within `patience` seconds."""
        message = query(question, opt)
        at = (to or self.address, port or self.port)
        wire = exchange_tcp(message, at, source) if tcp else exchange_udp(message, at, source, patience)
        reply = Reply(wire)
        assert wire[:2] == message[:2]
        return reply

    def get(self, path: str, port: int) -> tuple[int, str]:
        """Status and body of an HTTP GET."""
        connection = http.client.HTTPConnection(self.address, port, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def metric(self, sample_name: str, /, **labels: str) -> float:
        """The sum of the samples with this name and these labels as they are now; 0.0 where there are none."""
        return self.scrape().sum(sample_name, **labels)

    def scrape(self) -> Scrape:
        """The samples of /metrics of now, which may take a second: a test of many samples takes one scrape of them."""
        return fresh(self._get_metrics)

    def _get_metrics(self) -> str:
        status, text = self.get("/metrics", METRICS)
        assert status == 200
        return text

    def resident_bytes(self) -> int:
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def peak_resident_bytes(self) -> int:
        """The largest resident set so far (proc_pid_status(5), VmHWM)."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit status."""
        return self.process.wait(PATIENCE)

    def started(self) -> bool:
        """Whether the banner is out, from which the port is read."""
        assert self.process.poll() is None, self.output() + self.errors()
        banner = self.output()
        if "\ntopodns-" not in banner or not banner.endswith("\n"):
            return False
        first = next(line for line in banner.splitlines() if not line.startswith("["))  # .:5353 on 127.0.0.1
        self.port = int(first.split()[0].rpartition(":")[2])
        return True


@contextmanager
def launched(
    directory: Path,
    *arguments: str,
    address: str = "127.0.0.1",
    stdin: str = "",
    command: Sequence[str] = COMMAND,
    environment: Mapping[str, str] | None = None,
    output: int | None = None,
) -> Iterator[Server]:
    """A process that may or may not get as far as serving; killed at the end if it is still there.

    `command`: how it starts, () as a fork (`tests.support.forked_server`), but in another network namespace by COMMAND.
    `environment`: variables beside those that each process gets. `output`: the descriptor of its stdout and stderr, in
    place of files. A fork has neither.
    """
    given = directory / "stdin"
    given.write_text(stdin)
    process: subprocess.Popen[bytes] | ForkedProcess
    with open(given, "rb") as source, open(directory / "stdout", "wb") as out, open(directory / "stderr", "wb") as err:
        if not command and is_at_home():
            assert environment is None
            assert output is None
            process = ForkedProcess(arguments, directory, (source, out, err))
        else:
            process = subprocess.Popen(
                [*(command or COMMAND), *arguments],
                stdin=source,
                stdout=out if output is None else output,
                stderr=err if output is None else output,
                cwd=directory,
                env=variables() | dict(environment or {}),
            )
    try:
        yield Server(process, directory, address)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@contextmanager
def serving(
    directory: Path,
    corefile: str,
    *arguments: str,
    address: str = "",
    port: int = 0,
    stdin: str = "",
    patience: float = PATIENCE,
    command: Sequence[str] = (),
) -> Iterator[Server]:
    """A server of this Corefile, in which HERE means the server's own address; started within `patience` seconds.

    It is a fork, unless there is a `command`. It has to live well: end with 0 on SIGTERM (unless it ended before), with
    no traceback in its output and nothing on stderr.
    """
    address = address or own_address()
    (directory / "Corefile").write_text(corefile.replace("HERE", address))
    conf = () if "-conf" in arguments else ("-conf", str(directory / "Corefile"))
    options = (*conf, "-dns.port", str(port), *arguments)
    with launched(directory, *options, address=address, stdin=stdin, command=command) as server:
        until(server.started, f"the banner; there is\n{server.output()}{server.errors()}", patience)
        yield server
        if server.process.poll() is None:
            server.signal(signal.SIGTERM)
            assert server.wait() == 0, server.output()
        assert "Traceback" not in server.output()
        assert server.errors() == ""


def exchange_udp(message: bytes, at: tuple[str, int], source: str = "", patience: float = PATIENCE) -> bytes:
    with open_udp(at, source) as sock:
        sock.settimeout(patience)
        sock.send(message)
        return sock.recv(65535)


def exchange_tcp(message: bytes, at: tuple[str, int], source: str = "") -> bytes:
    with open_tcp(at, source) as sock:
        send_framed(sock, message)
        return receive_framed(sock)


def open_udp(at: tuple[str, int], source: str = "") -> socket.socket:
    """A socket that is connected to a server, and gives up waiting for it in the end."""
    sock = socket.socket(socket.AF_INET6 if ":" in at[0] else socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(PATIENCE)
    if source:
        sock.bind((source, 0))
    sock.connect(at)
    return sock


def open_tcp(at: tuple[str, int], source: str = "") -> socket.socket:
    return socket.create_connection(at, PATIENCE, (source, 0) if source else None)


def send_framed(sock: socket.socket, *messages: bytes) -> None:
    """One write, each message with its length in front (RFC 1035 section 4.2.2)."""
    sock.sendall(b"".join(len(message).to_bytes(2, "big") + message for message in messages))


def receive_framed(sock: socket.socket) -> bytes:
    return _receive(sock, int.from_bytes(_receive(sock, 2), "big"))


def _receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise ConnectionError(f"closed after {len(data)} of {size} octets")
        data += part
    return data
