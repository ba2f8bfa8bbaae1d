"""A subscriber and the answers that it follows: what a publisher knows of a session, and how it sends to it."""

from collections.abc import Callable
from typing import Final, NamedTuple

from topodns.dependency import Fact
from topodns.dns.dso import retry_delay_tlv, write_dso_response
from topodns.dns.rrtype import Rcode
from topodns.dns.tcp_framing import frame
from topodns.dnsserver.push.difference import PushedRecords
from topodns.plugins.push import PushCounts, PushRefusal, SessionEnd
from topodns.query.session import SessionConnection

MINUTE: Final = 60_000  # milliseconds
_RCODES: Final = {
    PushRefusal.MALFORMED: (Rcode.FORMERR, 5 * MINUTE),
    PushRefusal.UNKNOWN: (Rcode.DSOTYPENI, 0),
    PushRefusal.SESSIONS: (Rcode.REFUSED, MINUTE),
    PushRefusal.SUBSCRIPTIONS: (Rcode.REFUSED, MINUTE),
    PushRefusal.MEMORY: (Rcode.REFUSED, MINUTE),
    PushRefusal.SHARE: (Rcode.REFUSED, MINUTE),
    PushRefusal.NAME: (Rcode.NOTAUTH, 5 * MINUTE),
    PushRefusal.TYPE: (Rcode.REFUSED, 0),
    PushRefusal.CLIENT: (Rcode.REFUSED, 0),
    PushRefusal.NOT_READY: (Rcode.SERVFAIL, 5_000),
}
"""The rcode of each refusal, and its Retry Delay in milliseconds; 0 for those that concern one name or type alone."""


class Viewer(NamedTuple):
    """The client of an answer, as far as the answer may depend on it. `node_name`: its claim, b"" for none."""

    address: bytes  # packed
    node_name: bytes


class PushedAnswer:
    """An answer to which sessions are subscribed.

    `viewer`: the client for which it is made; None: the same for all clients. `records` None: the first answer is
    awaited. `withheld`: the reason why the records are those of `WITHHELD`; None: they are not. `owner`: the address of
    a subscriber, for which the memory counts: that of the first one which still has its subscription.
    """

    __slots__ = (
        *("again", "due", "facts", "octets", "owner", "pending"),
        *("qname", "qtype", "records", "subscribers", "viewer", "waiting", "withheld"),
    )

    def __init__(self, qname: bytes, qtype: int, viewer: Viewer | None, owner: bytes) -> None:
        self.qname = qname
        self.qtype = qtype
        self.viewer = viewer
        self.owner = owner
        self.subscribers: dict[Subscriber, int] = {}  # -> the id of its SUBSCRIBE
        self.waiting: dict[Subscriber, int] = {}  # those without a response yet
        self.records: PushedRecords | None = None
        self.withheld: PushRefusal | None = None
        self.facts: frozenset[Fact] = frozenset()
        self.octets = 0  # as counted
        self.due = False  # in `DueAnswers`, touched by a change
        self.pending = False  # being made, by a deferred answer
        self.again = False  # to be made once more when that is done

    def __repr__(self) -> str:
        return f"<PushedAnswer {self.qname!r} {self.qtype}, {len(self.subscribers)} subscribers>"


class Subscriber:
    """The client of one session, whose messages `session.PushSession` reads.

    `answers`: the answer that each subscription follows, by the id of its SUBSCRIBE. `leave` is called when an
    established session is closed.
    """

    def __init__(
        self, connection: SessionConnection, counts: PushCounts, leave: "Callable[[Subscriber], object]"
    ) -> None:
        self.connection = connection
        self.viewer = Viewer(connection.address, b"")
        self.answers: dict[int, PushedAnswer] = {}
        self.is_established = False
        self.is_closed = False
        self.end = SessionEnd.CLOSED  # the reason, once it is closed
        self.last_rcode: int = Rcode.NOERROR  # of the last message, `farewell`
        self.replies: list[bytes] | None = None  # while a message is handled
        self._counts = counts
        self._leave = leave

    def write(self, messages: list[bytes]) -> None:
        """Send messages: with the reply to the message that is being handled, else by themselves."""
        if self.replies is not None:
            self.replies += messages
        else:
            self.deliver(b"".join(map(frame, messages)))

    def deliver(self, framed: bytes) -> None:
        """Send messages that have their lengths before them. A client that does not read loses its session."""
        if not self.is_closed and not self.connection.send(framed):
            self.end = SessionEnd.SLOW

    def respond(self, ident: int, refusal: PushRefusal | None = None) -> None:
        """Send the response to the request with this id."""
        if refusal is None:
            self.write([write_dso_response(ident)])
            return
        self._counts.refused[refusal] += 1
        rcode, delay = _RCODES[refusal]
        self.write([write_dso_response(ident, rcode, *((retry_delay_tlv(delay),) if delay else ()))])

    def finish(self, rcode: int = Rcode.NOERROR) -> None:
        """End the session with the connection, in good order; `farewell` is the last message, with this rcode."""
        self.end = SessionEnd.SERVER
        self.last_rcode = rcode
        self.connection.finish()

    def evict(self) -> None:
        """End the session in favour of another one, in good order; it is not counted any more from now on.

        The last message has SERVFAIL, for an overloaded server (RFC 8490 section 7.2.1).
        """
        self.end = SessionEnd.EVICTED
        self.last_rcode = Rcode.SERVFAIL
        self.closed()
        self.connection.finish()

    def closed(self) -> None:
        """Implements `StatefulSession`."""
        if not self.is_closed and self.is_established:
            self._leave(self)
        self.is_closed = True
