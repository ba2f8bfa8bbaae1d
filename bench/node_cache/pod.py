"""What a pod on the node asks, and what became of it."""

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import cycle, islice
from typing import Final

from tests.support.dns_messages import query
from tests.support.namespaced_node import Namespace
from tests.support.stub_resolver_load import Outcome, Question, asking, fresh_names

RATE: Final = 1_000.0  # questions a second

_HOT: Final = tuple(islice(fresh_names(), 50))
_AT_ONCE: Final = 0.02  # seconds that an answer may take to what is asked again and again until it is answered


def hot() -> Iterator[Question]:
    """A few that are asked again and again."""
    return cycle(_HOT)


def ask_all(pod: Namespace, server: str, questions: Sequence[Question]) -> Outcome:
    """Each once, at RATE."""
    with asking(pod, (server,), RATE, lambda: cycle(questions)) as outcome:
        while len(outcome.asked) < len(questions):
            time.sleep(0.01)
    return Outcome(outcome.asked[: len(questions)])


def outage(outcome: Outcome, moment: float) -> float | None:
    """Seconds from then to the last question that failed; 0.0 where none did, None where none succeeded after it."""
    last = max((each.sent for each in outcome.asked if not each.right), default=moment)
    return max(0.0, last - moment) if outcome.right_after(last) else None


def answers(where: Namespace, server: str) -> bool:
    """Whether a question there is answered at once, and rightly."""
    with where.entered(), socket.socket(type=socket.SOCK_DGRAM) as sock, suppress(OSError):
        sock.settimeout(_AT_ONCE)
        sock.connect((server, 53))
        sock.send(query(f"{_HOT[0].name} A"))
        return sock.recv(4096).endswith(socket.inet_aton(_HOT[0].right))
    return False
