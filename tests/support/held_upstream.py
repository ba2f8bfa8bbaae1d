"""An upstream that holds its answers until the story releases them."""

from collections.abc import Sequence
from typing import Final

from tests.support.dns_messages import query
from tests.support.faulty_upstream import ANSWER, Act, Asked, BadUpstream
from tests.support.server_process import exchange_udp
from tests.support.upstream_faults import question_of, reply_to, says

_WORD: Final = query("release.example A")


class Held:
    """A behaviour that keeps queries until `release`; then it answers them all, and every later one at once."""

    def __init__(self, address: str = ANSWER) -> None:
        self.kept: list[Asked] = []
        self._answers = says(lambda message: reply_to(message, address))
        self._released = False

    def __call__(self, asked: Asked) -> Sequence[Act]:
        self.kept.append(asked)
        self._released = self._released or question_of(asked.message) == question_of(_WORD)
        if not self._released:
            return []
        acts = [act for each in self.kept for act in self._answers(each)]
        self.kept.clear()
        return acts


def release(upstream: BadUpstream) -> None:
    """Over its socket, so that it is done in its own thread; one more message that it has been asked."""
    exchange_udp(_WORD, (upstream.host, upstream.port))
