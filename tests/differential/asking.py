"""Many questions to one server, a window of them in flight at a time."""

import socket
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Final

from tests.differential.questions import Question
from tests.support.process import open_tcp, open_udp, receive_framed, send_framed

WINDOW: Final = 32  # questions in flight
SILENCE: Final = 0.4  # seconds without a reply, as often as it is tried, that are taken for none
TRIES: Final = 2

Address = tuple[str, int]
Replies = dict[int, bytes]  # by the question's position


def ask_all(server: Address, questions: Sequence[Question]) -> list[bytes | None]:
    """The reply to each; None where there is none, also when asked again."""
    replies: Replies = {}
    idents = count(1)
    everything = range(len(questions))
    for _ in range(TRIES):
        missing = [at for at in everything if at not in replies]
        for window in _windows(missing):
            replies |= _ask(server, questions, [at for at in window if not questions[at].tcp], idents)
            replies |= _ask(server, questions, [at for at in window if questions[at].tcp], idents)
    return [replies.get(at) for at in everything]


def _windows(positions: Sequence[int]) -> Iterator[Sequence[int]]:
    return (positions[start : start + WINDOW] for start in range(0, len(positions), WINDOW))


def _ask(server: Address, questions: Sequence[Question], window: Sequence[int], idents: Iterator[int]) -> Replies:
    """These, which are all over UDP or all over TCP."""
    if not window:
        return {}
    waiting = {next(idents) & 0xFFFF: at for at in window}
    messages = [questions[at].wire(ident) for ident, at in waiting.items()]
    if not questions[window[0]].tcp:
        return _over_udp(server, messages, waiting)
    return _over_tcp(server, messages, waiting)


def _over_udp(server: Address, messages: Sequence[bytes], waiting: dict[int, int]) -> Replies:
    with open_udp(server) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        for message in messages:
            sock.send(message)
        return _collected(sock, lambda: sock.recv(65535), waiting)


def _over_tcp(server: Address, messages: Sequence[bytes], waiting: dict[int, int]) -> Replies:
    with open_tcp(server) as sock:
        send_framed(sock, *messages)
        return _collected(sock, lambda: receive_framed(sock), waiting)


def _collected(sock: socket.socket, receive: Callable[[], bytes], waiting: dict[int, int]) -> Replies:
    replies: Replies = {}
    sock.settimeout(SILENCE)
    while len(replies) < len(waiting):
        try:
            message = receive()
        except (TimeoutError, ConnectionError):
            break
        at = waiting.get(int.from_bytes(message[:2], "big"))
        assert at is not None, f"a reply to nothing that was asked: {message!r}"
        replies[at] = message
    return replies
