"""A query sent a second time because no reply to it has arrived (RFC 1035 section 4.2.1): its retransmission.

Over UDP it is sent to the same upstream from another port, over TCP (hedging) over another connection. Both stay in
flight until the first reply to either.
"""

from math import inf

from topodns.query.upstream import Failure, UpstreamQuery


class Retransmission(UpstreamQuery):
    """The same query with an id of its own. A reply to it is delivered as the reply to the original.

    Callers know the original only, which has the deadline. Of the two, each has the other as its `twin`.
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
    """Make an original and its retransmission independent of each other, given either. Returns the other one."""
    twin = query.twin
    assert twin is not None
    query.twin = twin.twin = None
    return twin
