"""The queries of a pod on the node, and their results."""

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
_AT_ONCE: Final = 0.02  # seconds for the answer to a query that is repeated until it is answered


def hot() -> Iterator[Question]:
    """The same 50 queries, repeated without end."""
    return cycle(_HOT)


def ask_all(pod: Namespace, server: str, questions: Sequence[Question]) -> Outcome:
    """Send each query once, at RATE, from the pod to this server (an IPv4 address); the results."""
    with asking(pod, (server,), RATE, lambda: cycle(questions)) as outcome:
        while len(outcome.asked) < len(questions):
            time.sleep(0.01)
    return Outcome(outcome.asked[: len(questions)])


def outage(outcome: Outcome, moment: float) -> float | None:
    """Seconds from `moment` (monotonic) to the last failed query: 0.0 if none failed, None if none later succeeded."""
    last = max((each.sent for each in outcome.asked if not each.right), default=moment)
    return max(0.0, last - moment) if outcome.right_after(last) else None


def answers(where: Namespace, server: str) -> bool:
    """Whether a query from this namespace to this server gets the right answer within 20 ms."""
    with where.entered(), socket.socket(type=socket.SOCK_DGRAM) as sock, suppress(OSError):
        sock.settimeout(_AT_ONCE)
        sock.connect((server, 53))
        sock.send(query(f"{_HOT[0].name} A"))
        return sock.recv(4096).endswith(socket.inet_aton(_HOT[0].right))
    return False
