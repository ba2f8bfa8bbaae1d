"""Many questions to one server, a window of them in flight at a time."""

import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from selectors import EVENT_READ, DefaultSelector
from typing import Final

from tests.differential.questions import Question
from tests.support.server_process import open_tcp, open_udp, receive_framed, send_framed

OVERTAKEN: Final = 200  # later questions after which one without a reply takes no place in the window
OF_CONNECTION: Final = 100  # questions over one TCP connection, of which CoreDNS takes 128
PASSES: Final = ((32, 0.4), (200, 2.0))
"""(questions in flight, seconds of silence that are taken for no reply) when all are asked, and when those without a
reply are asked again, most of which get none.
"""

Address = tuple[str, int]


def ask_all(server: Address, questions: Sequence[Question]) -> list[bytes | None]:
    """The reply to each; None where there is none, also when asked again."""
    replies: dict[int, bytes] = {}
    for window, patience in PASSES:
        with ExitStack() as stack:
            asker = _Asker(server, replies, window, patience, stack)
            for at, question in enumerate(questions):
                if at not in replies:
                    asker.ask(at, question)
            asker.finish()
    return [replies.get(at) for at in range(len(questions))]


class _Asker:
    """Puts into `replies` those to the questions it sends, by their positions.

    All sockets stay open, so that the silence of one question is waited for at the end, once for all.
    """

    def __init__(
        self, server: Address, replies: dict[int, bytes], window: int, patience: float, stack: ExitStack
    ) -> None:
        self._server = server
        self._replies = replies
        self._window = window
        self._patience = patience
        self._stack = stack
        self._selector = stack.enter_context(DefaultSelector())
        self._waiting: dict[int, int] = {}  # positions by ids, which count up: the first has waited longest
        self._sent = 0
        self._given_up = 0  # ids up to this one take no place in the window
        self._udp: socket.socket | None = None
        self._tcp: socket.socket | None = None
        self._left = 0  # questions that `_tcp` takes

    def ask(self, at: int, question: Question) -> None:
        self._sent += 1
        assert self._sent <= 0xFFFF, "an id for each question"
        self._waiting[self._sent] = at
        self._send(question, question.wire(self._sent))
        while self._in_flight() >= self._window:
            if not self._receive():
                self._given_up = self._sent

    def finish(self) -> None:
        """Until there is a reply to each, or no more come."""
        while self._waiting and self._receive():
            pass

    def _in_flight(self) -> int:
        oldest = max(self._given_up, self._sent - OVERTAKEN)
        return sum(ident > oldest for ident in self._waiting)

    def _send(self, question: Question, message: bytes) -> None:
        if question.tcp:
            with suppress(ConnectionError):  # it is asked again
                send_framed(self._connection(), message)
            return
        if self._udp is None:
            self._udp = udp = self._opened(open_udp(self._server), lambda: udp.recv(65535))
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._udp.send(message)

    def _connection(self) -> socket.socket:
        if self._tcp is None or not self._left:
            self._tcp = tcp = self._opened(open_tcp(self._server), lambda: receive_framed(tcp))
            self._left = OF_CONNECTION
        self._left -= 1
        return self._tcp

    def _opened(self, sock: socket.socket, receive: Callable[[], bytes]) -> socket.socket:
        self._stack.enter_context(sock)
        self._selector.register(sock, EVENT_READ, receive)
        return sock

    def _receive(self) -> bool:
        """Take a message from each socket that has one; False if none has for as long as the patience lasts."""
        ready = self._selector.select(self._patience)
        for key, _ in ready:
            try:
                message = key.data()
            except ConnectionError:
                self._selector.unregister(key.fileobj)
                self._tcp = None if key.fileobj is self._tcp else self._tcp
                continue
            at = self._waiting.pop(int.from_bytes(message[:2], "big"))
            self._replies[at] = message
        return bool(ready)
