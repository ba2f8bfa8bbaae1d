"""Many questions to one server, a window of them in flight at a time."""

import socket
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

from tests.differential.questions import Question
from tests.support.server_process import open_tcp, open_udp, receive_framed, send_framed

WINDOW: Final = 32  # questions in flight
PATIENCE: Final = (0.4, 2.0)  # seconds of silence that are taken for no reply, when asked first and when asked again

Address = tuple[str, int]


def ask_all(server: Address, questions: Sequence[Question]) -> list[bytes | None]:
    """The reply to each; None where there is none, also when asked again."""
    asker = _Asker(server, questions)
    for patience in PATIENCE:
        asker.ask_missing(patience)
    return [asker.replies.get(at) for at in range(len(questions))]


class _Asker:
    """`replies` is by the position of the question. Each message has an id of its own, so that late ones are known."""

    def __init__(self, server: Address, questions: Sequence[Question]) -> None:
        self.replies: dict[int, bytes] = {}
        self._server = server
        self._questions = questions
        self._idents = count(1)

    def ask_missing(self, patience: float) -> None:
        missing = [at for at in range(len(self._questions)) if at not in self.replies]
        for start in range(0, len(missing), WINDOW):
            window = missing[start : start + WINDOW]
            self._ask_over_udp([at for at in window if not self._questions[at].tcp], patience)
            self._ask_over_tcp([at for at in window if self._questions[at].tcp], patience)

    def _ask_over_udp(self, window: Sequence[int], patience: float) -> None:
        if not window:
            return
        with open_udp(self._server) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            messages = self._messages(window)
            for message in messages.values():
                sock.send(message)
            self._collect(sock, lambda: sock.recv(65535), list(messages), window, patience)

    def _ask_over_tcp(self, window: Sequence[int], patience: float) -> None:
        if not window:
            return
        with open_tcp(self._server) as sock:
            messages = self._messages(window)
            send_framed(sock, *messages.values())
            self._collect(sock, lambda: receive_framed(sock), list(messages), window, patience)

    def _messages(self, window: Sequence[int]) -> dict[int, bytes]:
        """By their ids."""
        idents = [next(self._idents) & 0xFFFF for _ in window]
        return {ident: self._questions[at].wire(ident) for ident, at in zip(idents, window, strict=True)}

    def _collect(
        self,
        sock: socket.socket,
        receive: Callable[[], bytes],
        idents: Sequence[int],
        window: Sequence[int],
        patience: float,
    ) -> None:
        """Until there is a reply to each, or no more come."""
        waiting = dict(zip(idents, window, strict=True))
        sock.settimeout(patience)
        while waiting:
            try:
                message = receive()
            except (TimeoutError, ConnectionError):
                return
            self.replies[waiting.pop(int.from_bytes(message[:2], "big"))] = message
