"""A query sent a second time, and its original."""

from math import inf

import pytest

from topodns.net.upstream.in_flight import Retransmission, separate
from topodns.query.upstream import Failure, UpstreamQuery


class Original(UpstreamQuery):
    __slots__ = ("results",)

    def __init__(self) -> None:
        self.message, self.question = b"message", b"question"
        self.carrier = self.twin = None
        self.deadline = self.due = 5.0
        self.results: list[bytes | Failure] = []

    def on_reply(self, result: bytes | Failure) -> None:
        self.results.append(result)


def test_it_asks_the_same_and_the_reply_to_it_is_that_of_the_original() -> None:
    original = Original()
    again = Retransmission(original)
    assert (again.message, again.question, again.carrier) == (b"message", b"question", None)
    again.on_reply(b"reply")
    assert original.results == [b"reply"]


def test_only_the_original_has_a_time_at_which_it_is_due() -> None:
    assert Retransmission(Original()).due == inf


@pytest.mark.parametrize("of_the_original", [True, False])
def test_each_gives_the_other_one_until_they_are_separated(of_the_original: bool) -> None:
    original = Original()
    again = Retransmission(original)
    assert (original.twin, again.twin) == (again, original)
    one, other = (original, again) if of_the_original else (again, original)
    assert separate(one) is other
    assert (original.twin, again.twin) == (None, None)
