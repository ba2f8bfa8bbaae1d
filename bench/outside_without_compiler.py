"""`outside.c` in Python, for machines without a C compiler: a tenth of the speed, else the same.

The resolver is then mostly idle and its batches are small, so that each query costs it more.
"""

import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from bench.questions import client_socket, read_questions

PATIENCE: Final = 5.0  # seconds without an answer, after which queries without one are lost
LIMIT: Final = 15.0  # seconds in which queries of a file are sent

_QUESTION: Final = 12  # octet at which the question section begins
_TYPE_A: Final = b"\0\1"
_ADDRESS: Final = bytes.fromhex("c00c000100010000012c0004c0000201")
_SOA: Final = bytes.fromhex("c00c000600010000012c00160000000000010000000100000001000000010000012c")
_OPT: Final = bytes.fromhex("00002904d0000000000000")
_COUNTS: Final = struct.Struct("!HHHH")


class Upstream:
    """The upstream: answers queries for A with one address, others with NODATA, and none before `silent_until`."""

    def __init__(self, port: int) -> None:
        self.asked = 0
        self.silent_until = 0.0
        self._selector = selectors.DefaultSelector()
        self._udp = socket.socket(type=socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", port))
        self._listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self._watch(sys.stdin.fileno(), lambda: None)
        self._watch(self._udp, self._answer_datagram)
        self._watch(self._listener, self._accept)

    def serve(self, timeout: float | None) -> bool:
        """Answer the messages that have arrived, or wait for one. Returns whether stdin has a line."""
        has_command = False
        silent = time.monotonic() < self.silent_until
        for key, _ in self._selector.select(0.001 if silent else timeout):
            has_command = has_command or key.fd == sys.stdin.fileno()
            if not silent or key.fileobj is self._listener:
                key.data()
        return has_command

    def _watch(self, source: socket.socket | int, act: Callable[[], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, act)

    def _answer_datagram(self) -> None:
        message, peer = self._udp.recvfrom(4096)
        self._udp.sendto(self._answer(message), peer)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        self._watch(connection, partial(self._answer_stream, connection, bytearray()))

    def _answer_stream(self, connection: socket.socket, pending: bytearray) -> None:
        try:
            data = connection.recv(65536)
            pending += data
            connection.sendall(b"".join(self._framed_answers(pending)))
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(connection)
            connection.close()

    def _framed_answers(self, pending: bytearray) -> list[bytes]:
        """The framed answers to the complete messages in `pending`, which are removed."""
        answers = []
        while len(pending) >= 2 and len(pending) >= (end := 2 + int.from_bytes(pending[:2], "big")):
            answer = self._answer(bytes(pending[2:end]))
            answers.append(len(answer).to_bytes(2, "big") + answer)
            del pending[:end]
        return answers

    def _answer(self, query: bytes) -> bytes:
        end = query.index(0, _QUESTION) + 5
        is_address, has_opt = query[end - 4 : end - 2] == _TYPE_A, query[11] != 0
        self.asked += is_address
        counts = _COUNTS.pack(1, is_address, not is_address, has_opt)
        head = query[:2] + bytes((query[2] & 0x79 | 0x80, 0x80)) + counts
        return head + query[_QUESTION:end] + (_ADDRESS if is_address else _SOA) + _OPT * has_opt


class Clients:
    """The clients: a socket for each source address of the file, connected to the resolver."""

    def __init__(self, path: Path, address: str, port: int) -> None:
        self.questions = read_questions(path)
        self.answers = self.with_records = 0
        self._selector = selectors.DefaultSelector()
        self._sockets = {source: client_socket(source, port, address) for source, _ in self.questions}
        for sock in self._sockets.values():
            self._selector.register(sock, selectors.EVENT_READ)

    def ask(self, source: bytes, message: bytes) -> None:
        self._sockets[source].send(message)

    def take_answers(self) -> int:
        """Read the answers that have arrived, and count them. Returns their number."""
        ready = self._selector.select(0)
        for key, _ in ready:
            assert isinstance(key.fileobj, socket.socket)
            answer = key.fileobj.recv(4096)
            self.answers += 1
            self.with_records += answer[3] & 0x0F == 0 and answer[6:8] != b"\0\0"
        return len(ready)

    def close(self) -> None:
        self._selector.close()
        for sock in self._sockets.values():
            sock.close()


def _ask_all(clients: Clients, upstream: Upstream, window: int) -> int:
    """Send all queries of the clients, `window` in flight. Returns the number of those without an answer."""
    waiting, began = 0, time.monotonic()
    heard, questions = began, iter(clients.questions)
    while time.monotonic() < heard + PATIENCE:
        more = list(islice(questions, window - waiting)) if time.monotonic() < began + LIMIT else []
        for source, message in more:
            clients.ask(source, message)
        waiting += len(more)
        if not waiting:
            break
        upstream.serve(0)
        on_reply = clients.take_answers()
        waiting -= on_reply
        if on_reply:
            heard = time.monotonic()
    return waiting


def _run_command(line: str, upstream: Upstream) -> None:
    address, port, path, window, silence = line.split()
    clients = Clients(Path(path), address, int(port))
    upstream.asked, upstream.silent_until = 0, time.monotonic() + float(silence)
    lost = _ask_all(clients, upstream, int(window))
    clients.close()
    print(clients.answers, clients.with_records, lost, upstream.asked, flush=True)


def main(port: int) -> None:
    """Serve as the upstream, and run the commands on stdin, until it ends."""
    upstream = Upstream(port)
    while True:
        if upstream.serve(None):
            line = sys.stdin.readline()
            if not line:
                return
            _run_command(line, upstream)


if __name__ == "__main__":
    main(int(sys.argv[1]))
