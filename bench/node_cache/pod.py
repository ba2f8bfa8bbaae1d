"""What a pod on the node asks, from its own namespace, and what became of it."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle
from typing import Final

from tests.support.messages import query
from tests.support.namespaces import Namespace
from tests.support.stub_load import Asked, Outcome, Question, StubLoad

RATE: Final = 1_000.0  # questions a second
PATIENCE: Final = 2.0  # seconds that an answer may take

_AT_ONCE: Final = 0.02  # seconds, likewise, for what is asked again and again until it is answered


@contextmanager
def asking(pod: Namespace, servers: Sequence[str], questions: Iterator[Question]) -> Iterator[Outcome]:
    """RATE questions a second meanwhile, to the servers by turns; at the end the last answers are waited for."""
    load = StubLoad(servers, questions, RATE, patience=PATIENCE)

    def run() -> None:
        with pod.entered():
            load.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield load.outcome
    finally:
        load.stop()
        thread.join()


def ask_all(pod: Namespace, server: str, questions: Sequence[Question]) -> Outcome:
    """Each once, at RATE."""
    with asking(pod, (server,), cycle(questions)) as outcome:
        while len(outcome.asked) < len(questions):
            time.sleep(0.01)
    return Outcome(outcome.asked[: len(questions)])


def failed(outcome: Outcome) -> list[Asked]:
    return [each for each in outcome.asked if not each.right]


def outage(outcome: Outcome, moment: float) -> float | None:
    """Seconds from then to the last question that failed; 0.0 where none did, None where none succeeded after it."""
    last = max((each.sent for each in failed(outcome)), default=moment)
    if last > max((each.sent for each in outcome.asked if each.right), default=0.0):
        return None
    return max(0.0, last - moment)


def is_answered(where: Namespace, server: str, question: Question) -> bool:
    """Whether it is, at once and rightly."""
    with where.entered(), socket.socket(type=socket.SOCK_DGRAM) as sock, suppress(OSError):
        sock.settimeout(_AT_ONCE)
        sock.connect((server, 53))
        sock.send(query(f"{question.name} A"))
        return sock.recv(4096).endswith(socket.inet_aton(question.right))
    return False
