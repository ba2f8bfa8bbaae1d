"""The contract between `forward`, which chooses an upstream for a query, and `net.upstream`, which exchanges it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple, Protocol

from topodns.dns.wire_format import HEADER_SIZE

QUESTION_AT: Final = HEADER_SIZE - 2
"""The offset of the question section in `UpstreamQuery.message`."""


class Transport(Enum):
    UDP = "udp"
    TCP = "tcp"
    TLS = "tcp-tls"  # CoreDNS's label value
    HTTPS = "https"

    __hash__ = object.__hash__  # Enum's is a Python function, and each query looks one up


class Failure(NamedTuple):
    """The reason for a missing reply. `timed_out`: no reply in time; else a network error or a refusal."""

    problem: str  # for people: "i/o timeout", "connection refused"
    timed_out: bool


class UpstreamQuery(ABC):
    """A query to an upstream: what the caller sends, and what the transport keeps of it until it has the result.

    A base class, and not a value with a callback: so a forwarded query is one object for its client and its transport,
    which takes 7 % fewer instructions than two.
    """

    __slots__ = (
        "carrier",
        "connection",
        "deadline",
        "descriptor",
        "due",
        "heard",
        "ident",
        "message",
        "question",
        "sends",
        "twin",
    )

    message: bytes  # without its id, which the transport adds
    question: bytes  # the question section of the message
    carrier: "Carrier | None"  # the transport while the query is in flight; None before that and after the result
    # The transport sets the following. Times are by `Timers.time`.
    deadline: float  # when the query times out
    due: float  # when `Carrier.on_due` is next called, at the deadline or earlier
    ident: bytes  # the message id on the wire
    descriptor: int  # over UDP: the file descriptor of its socket
    connection: "PipelinedConnection"  # over TCP and TLS
    sends: int  # over TCP and TLS: how often it was sent, lost connections included
    heard: int  # over TCP and TLS: number of replies on its connection when it was sent, or at the last `heard_since`
    twin: "UpstreamQuery | None"  # of a query that is sent a second time: its other sending; one reply ends both

    @abstractmethod
    def on_reply(self, result: bytes | Failure) -> None:
        """Called once, with the whole reply or the Failure, unless the query is cancelled before. Must not raise.

        The reply has the question of the query, compared without case, except that an error may be a bare header; its
        id is arbitrary.
        """

    def cancel(self) -> None:
        """Stop waiting for the reply: `on_reply` is not called any more. Without effect after the result."""
        carrier = self.carrier
        if carrier is not None:
            carrier.cancel(self)


class Carrier(Protocol):
    """One transport of an upstream."""

    def exchange(self, query: UpstreamQuery, timeout: float, now: float) -> None:
        """As `Upstream.exchange`."""

    def on_due(self, query: UpstreamQuery, now: float) -> None:
        """The time `query.due` has come. Sets a later one, or the query is in flight no longer."""

    def cancel(self, query: UpstreamQuery) -> None:
        """As `UpstreamQuery.cancel`, of a query in flight."""


class PipelinedConnection(Protocol):
    """A connection of an upstream over which a query is in flight, or the queue in which it waits for one."""

    def forget(self, query: UpstreamQuery) -> None:
        """Abandon a query."""

    def give_up(self, query: UpstreamQuery) -> None:
        """Abandon a query that has timed out."""


class Upstream(Protocol):
    """One upstream server, over the transports that its settings allow."""

    @property
    def name(self) -> str:
        """Address and port as metrics show them: "10.0.0.10:53", "[2001:db8::1]:853"."""

    @property
    def carriers(self) -> Mapping[Transport, Carrier]:
        """The open transports. A caller may use one directly, in place of `exchange`, within this turn of the loop."""

    def exchange(self, query: UpstreamQuery, transport: Transport, timeout: float, now: float) -> None:
        """Send a query, once in its life, and wait at most `timeout` seconds from `now` for the reply.

        `query` has message, question, and None as `carrier` and `twin`. `now`: by `Timers.time`. Its `on_reply` is
        called with the result, perhaps before this returns.

        Each query gets its own id on the wire. A reply with another id, question or source, or with QR clear, is
        ignored, and the wait goes on (RFC 5452 section 9.1). Over TCP and TLS, a query whose connection closes is sent
        again, at most twice and within the same timeout, over another open connection or a new one. A slow query may be
        hedged: over UDP from another port, over TCP and TLS over another connection if its own has gone silent; the
        first reply counts. Never raises.
        """

    def close(self) -> None:
        """Send no more queries; connections close once the queries in flight are done."""
