"""Connections that ask as fast as they are answered, or never read: a process of its own, beside that of the test.

`python -m tests.support.tcp_flood HOST PORT SOURCE CONNECTIONS NAME read|deaf` runs until it is killed. Connections
that the server closes are opened anew.
"""

import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.dns_messages import query
from tests.support.server_process import ROOT, Server
from topodns.dns.tcp_framing import frame

_AT_ONCE = 400  # questions of one write


@contextmanager
def tcp_flood(server: Server, source: str, connections: int, name: str, deaf: bool = False) -> Iterator[None]:
    """So many connections from one address that ask for `NAME TYPE` without end; `deaf` ones never read."""
    arguments = (server.address, str(server.port), source, str(connections), name, "deaf" if deaf else "read")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.tcp_flood", *arguments], cwd=ROOT, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"flooding\n"
            yield
            assert process.poll() is None, "the flood ended by itself"
        finally:
            process.kill()


class _Client:
    def __init__(self, at: tuple[str, int], source: str, deaf: bool) -> None:
        self.sock = socket.socket()
        if deaf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.bind((source, 0))
        self.sock.connect(at)
        self.sock.setblocking(False)
        self.left = memoryview(b"")


def _flood(at: tuple[str, int], source: str, connections: int, name: str, deaf: bool) -> None:
    questions = memoryview(frame(query(name)) * _AT_ONCE)
    selector = selectors.DefaultSelector()

    def add() -> None:
        client = _Client(at, source, deaf)
        events = selectors.EVENT_WRITE if deaf else selectors.EVENT_READ | selectors.EVENT_WRITE
        selector.register(client.sock, events, client)

    for _ in range(connections):
        add()
    print("flooding", flush=True)
    while True:
        for key, events in selector.select():
            client = key.data
            try:
                _serve(client, events, questions)
            except OSError:
                selector.unregister(client.sock)
                client.sock.close()
                with suppress(OSError):
                    add()


def _serve(client: _Client, events: int, questions: memoryview) -> None:
    """Raises OSError where the server has closed the connection."""
    if events & selectors.EVENT_READ and not client.sock.recv(1 << 16):
        raise ConnectionResetError
    if events & selectors.EVENT_WRITE:
        client.left = (client.left or questions)[client.sock.send(client.left or questions) :]


if __name__ == "__main__":
    host, port, source, connections, name, mode = sys.argv[1:]
    _flood((host, int(port)), source, int(connections), name, mode == "deaf")
