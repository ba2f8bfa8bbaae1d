"""`echo.c` and `ask.c` in Python, for machines without a C compiler: a tenth of the speed, else the same.

The server is then mostly idle and its batches are small, so that each query costs it more. Compare figures only with
other runs without a compiler.
"""

import select
import socket
import sys
import time
from collections import Counter
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from bench.questions import client_socket, read_questions

WINDOW: Final = 64  # queries in flight
PATIENCE: Final = 0.5  # seconds without an answer, after which queries without one are lost


def echo(port: int) -> None:
    """Send every datagram back, until killed."""
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", port))
        while True:
            data, peer = sock.recvfrom(4096)
            sock.sendto(data, peer)


def ask(port: int, path: Path, seconds: float) -> None:
    """Send the queries of the file as `ask.c` does, and print its six numbers."""
    questions = read_questions(path)
    sockets = {client: client_socket(client, port) for client, _ in questions}
    watch = select.epoll()
    by_number = {sock.fileno(): sock for sock in sockets.values()}
    for number in by_number:
        watch.register(number, select.EPOLLIN)
    counts, lost, end = Counter[str](), 0, time.monotonic() + seconds
    asked = cycle(questions) if seconds else iter(questions)
    while time.monotonic() < end or not seconds:
        waiting = 0
        for client, message in islice(asked, WINDOW):
            sockets[client].send(message)
            waiting += 1
        if not waiting:
            break
        lost += _collect(watch, by_number, waiting, counts)
    kinds = ("with_records", "no_data", "name_error", "other")
    print(counts.total(), *(counts[kind] for kind in kinds), lost)


def _collect(watch: select.epoll, sockets: dict[int, socket.socket], waiting: int, counts: Counter[str]) -> int:
    """Read this many answers, and count them by kind. Returns the number of those that did not come."""
    while waiting > 0:
        ready = watch.poll(PATIENCE)
        if not ready:
            return waiting
        for number, _ in ready:
            counts[_kind(sockets[number].recv(4096))] += 1
            waiting -= 1
    return 0


def _kind(answer: bytes) -> str:
    rcode = answer[3] & 0x0F
    if rcode == 0:
        return "with_records" if answer[6:8] != b"\0\0" else "no_data"
    return "name_error" if rcode == 3 else "other"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["echo", number]:
            echo(int(number))
        case ["ask", number, file, duration]:
            ask(int(number), Path(file), float(duration))
