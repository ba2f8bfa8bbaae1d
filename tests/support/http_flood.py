"""Floods of HTTP requests on a server, and a client of DNS beside them."""

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from tests.support.server_process import Server, until
from tests.support.steady_client import Victim, victim

QUESTION, RIGHT = "web.shop.svc.cluster.local A", "10.96.10.20"  # of config/demo
HTTP_P99: Final = 0.02  # seconds of the server's CPU between a question and its reply
ASKED: Final = 60  # questions of a victim
PROBE_TIMEOUT: Final = 5.0  # seconds: the chart's `timeoutSeconds`


def request(path: str, more: bytes = b"") -> bytes:
    return b"GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n" % (path.encode(), more)


@dataclass
class Flood:
    """Connections that pipeline requests for as long as they are let. A thread of its own moves them all."""

    sockets: list[tuple[socket.socket, bytes]]
    reads: bool = True
    answered: int = 0  # replies seen
    _sent: dict[socket.socket, int] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            events = selectors.EVENT_WRITE | (selectors.EVENT_READ if self.reads else 0)
            for sock, block in self.sockets:
                sock.setblocking(False)
                selector.register(sock, events, block)
            while not self._stop.is_set() and selector.get_map():
                for key, ready in selector.select(0.05):
                    assert isinstance(key.fileobj, socket.socket)
                    with suppress(BlockingIOError):
                        try:
                            self._move(key.fileobj, key.data, ready)
                        except OSError:
                            selector.unregister(key.fileobj)

    def _move(self, sock: socket.socket, block: bytes, ready: int) -> None:
        if ready & selectors.EVENT_READ:
            data = sock.recv(1 << 16)
            if not data:
                raise ConnectionError
            self.answered += data.count(b"HTTP/1.1 ")
        if ready & selectors.EVENT_WRITE:
            at = self._sent.get(sock, 0)
            self._sent[sock] = (at + sock.send(block[at:])) % len(block)

    @contextmanager
    def running(self) -> Iterator["Flood"]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()


@contextmanager
def flooded(server: Server, *targets: tuple[int, bytes, int], reads: bool = True) -> Iterator[Flood]:
    """So many connections to a port, each sending this request again and again; `targets`: (port, request, number)."""
    with ExitStack() as stack:
        sockets = [
            (stack.enter_context(socket.create_connection((server.address, port), PROBE_TIMEOUT)), block * 1000)
            for port, block, number in targets
            for _ in range(number)
        ]
        yield stack.enter_context(Flood(sockets, reads).running())


def bystander(server: Server) -> Victim:
    """A victim that has asked enough."""
    with victim(server, QUESTION, RIGHT, per_second=150) as fate:
        until(lambda: fate.asked >= ASKED, "questions asked")
    return fate
