"""A client that asks at a steady pace while a test attacks the server (the victim), and the cost of its questions.

The judge of an attack is CPU time of the server, not wall time, which on a busy machine says nothing about the server:
between a question of the victim and its reply the server may have worked so long and no longer. Where the victim itself
is kept from a CPU, before it sends or after the reply has arrived (by the kernel's timestamp), the server goes on with
the attack: that time is taken off, so that the figure is what the server has surely spent on the victim's reply.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.arrival_times import receive_stamped, stamping
from tests.support.dns_messages import Reply, query
from tests.support.server_process import Server, open_tcp, open_udp, send_framed
from tests.support.stub_resolvers import stub_address

PATIENCE: Final = 2.0  # seconds without a reply, then a question counts as lost
MIN_ASKED: Final = 20  # questions that a verdict takes

_OWN_TIME: Final = 0.001  # seconds that sending and receiving may take the victim without being taken off


def cpu_seconds(pid: int) -> float:
    """CPU seconds that the main thread of a process has taken so far, to the nanosecond (proc(5), schedstat)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


@dataclass(slots=True)
class Victim:
    """The fate of a victim's questions so far."""

    lost: int = 0  # no reply within PATIENCE, or a broken connection
    wrong: list[str] = field(default_factory=list)  # replies other than the right one, as text
    seconds: list[float] = field(default_factory=list)  # from question to reply, on the clock
    # CPU seconds of the server from question to reply or loss, without what it may have used while the victim was late.
    server_cpu: list[float] = field(default_factory=list)

    @property
    def asked(self) -> int:
        return len(self.server_cpu)

    def cpu(self, percent: float) -> float:
        """This percentile of the server's CPU seconds per question; fails where too little was asked to say so."""
        assert self.asked >= MIN_ASKED, f"only {self.asked} questions were asked"
        return sorted(self.server_cpu)[round(percent / 100 * (self.asked - 1))]

    def __str__(self) -> str:
        """For a failed assertion."""
        slowest = max(self.seconds, default=0.0)
        return (
            f"{self.asked} asked, {self.lost} lost, {len(self.wrong)} wrong {self.wrong[:3]}, slowest {slowest:.3f} s, "
            f"most CPU of the server {max(self.server_cpu, default=0.0):.4f} s"
        )


@contextmanager
def victim(
    server: Server, question: str, right: str, per_second: float = 50, tcp: bool = False, source: str = ""
) -> Iterator[Victim]:
    """Ask `NAME TYPE` again and again until the block ends, from one address, each time by a new socket.

    A reply is right if its rcode is NOERROR and `right` is among its data. The next question waits for the reply to the
    last, so `per_second` is the most that is asked.
    """
    fate = Victim()
    stop = threading.Event()
    thread = threading.Thread(
        target=_ask_on, args=(fate, stop, server, question, right, 1 / per_second, tcp, source or stub_address())
    )
    thread.start()
    try:
        yield fate
    finally:
        stop.set()
        thread.join()


def _ask_on(
    fate: Victim, stop: threading.Event, server: Server, question: str, right: str, pause: float, tcp: bool, source: str
) -> None:
    with stamping(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)):  # the kernel stamps while some socket asks for it
        while not stop.is_set():
            began, spent = time.monotonic(), cpu_seconds(server.pid)
            exchange: _Exchange | None = None
            with suppress(TimeoutError, OSError):
                exchange = _exchange(server, query(question), tcp, source)
            spent = cpu_seconds(server.pid) - spent
            if exchange is None:
                fate.server_cpu.append(spent)
                fate.lost += 1
            else:
                late = exchange.sent - began + max(0.0, time.time() - exchange.arrived / 1e9)
                fate.server_cpu.append(max(0.0, spent - max(0.0, late - _OWN_TIME)))
                fate.seconds.append(time.monotonic() - began)
                reply = Reply(exchange.reply)
                if reply.rcode != "NOERROR" or right not in reply.data:
                    fate.wrong.append(str(reply))
            stop.wait(max(0.0, began + pause - time.monotonic()))


class _Exchange(NamedTuple):
    reply: bytes
    sent: float  # when the question was sent, on the monotonic clock
    arrived: int  # when the kernel had the end of the reply, in nanoseconds of the wall clock


def _exchange(server: Server, message: bytes, tcp: bool, source: str) -> _Exchange:
    with stamping((open_tcp if tcp else open_udp)((server.address, server.port), source)) as sock:
        sock.settimeout(PATIENCE)
        if not tcp:
            sock.send(message)
            sent = time.monotonic()
            reply, arrived = receive_stamped(sock)
            return _Exchange(reply, sent, arrived)
        send_framed(sock, message)
        sent = time.monotonic()
        data = b""
        while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2], "big"):
            part, arrived = receive_stamped(sock)
            if not part:
                raise ConnectionError("closed before the end of the reply")
            data += part
        return _Exchange(data[2:], sent, arrived)
