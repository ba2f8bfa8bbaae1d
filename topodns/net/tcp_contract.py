"""The contract between a TCP listener and its connections."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from topodns.net.tcp_limits import TcpCounts, TcpLimits
from topodns.net.tcp_scheduler import TcpSchedule
from topodns.query.deferred import DeferredReply
from topodns.query.session import OpenSession

if TYPE_CHECKING:
    from topodns.net.tcp_connection import TcpConnection

Answer = Callable[[bytes, bytes, int], bytes | DeferredReply | None]
"""(query, packed client address, port) -> the reply, None for no reply, or a deferred one. Must not raise."""


class Listener(Protocol):
    """The state that the connections of a listener share, and the functions of the listener that they call.

    `unfinished`: octets of incomplete queries, beyond `TcpLimits.begun` of each connection; `unread`: octets of replies
    that clients have not read. Each connection adds its own, and later subtracts them.
    """

    answer: Answer
    open_session: OpenSession | None  # for DSO messages; None: they go to `answer`, as queries do
    limits: TcpLimits
    counts: TcpCounts
    schedule: TcpSchedule
    read_buffer: memoryview
    unfinished: int
    unread: int

    def admit(self, connection: "TcpConnection") -> bool:
        """Whether the connection is admitted; if so, it is counted until `leave`."""

    def hold(self, connection: "TcpConnection") -> None:
        """The connection has a session, which has limits of its own; it counts as no other client's any more."""

    def release(self, connection: "TcpConnection") -> None:
        """The session ends, and its connection soon; until then it counts as other clients' again."""

    def leave(self, connection: "TcpConnection") -> None: ...

    def bound_unread(self) -> None:
        """If `unread` exceeds its limit, measure it and drop the connections with the most, perhaps the caller."""
