"""The second sending of a query, beside the first, because no reply has come (RFC 1035 section 4.2.1)."""

from math import inf

from topodns.query.upstream import Failure, UpstreamQuery


class Retransmission(UpstreamQuery):
    """The same query once more, with another id. The first reply to either is that of the original.

    Callers know the original only, which has the deadline. `twin` of each is the other one.
    """

    __slots__ = ("original",)

    def __init__(self, original: UpstreamQuery) -> None:
        self.original = original
        self.message, self.question = original.message, original.question
        self.carrier = original.carrier
        self.deadline, self.due = original.deadline, inf
        self.sends = self.heard = 0
        self.twin = original
        original.twin = self

    def on_reply(self, result: bytes | Failure) -> None:
        self.original.on_reply(result)


def separate(query: UpstreamQuery) -> UpstreamQuery:
    """Separate an original and its retransmission, given either. Returns the other one."""
    twin = query.twin
    assert twin is not None
    query.twin = twin.twin = None
    return twin
