"""The contract between `forward`, which chooses an upstream for a query, and `net.upstream`, which exchanges it."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol


class Transport(Enum):
    UDP = "udp"
    TCP = "tcp"
    TLS = "tcp-tls"  # CoreDNS's label value

    __hash__ = object.__hash__  # Enum's is a Python function, and each query looks one up


class Failure(NamedTuple):
    """The reason for a missing reply. `timed_out`: no reply in time; else a network error or a refusal."""

    problem: str  # for people: "i/o timeout", "connection refused"
    timed_out: bool


OnReply = Callable[[bytes | Failure], object]
"""Callback for the result of an exchange, called once with the reply or the Failure. Must not raise.

A function and not an Outcome: one more object and two more calls per query are a tenth of its cost.
"""


class Sent(Protocol):
    """A query in flight to an upstream."""

    def cancel(self) -> None:
        """Stop waiting for the reply; `on_reply` is not called any more. Without effect after the reply."""


class Upstream(Protocol):
    """One upstream server, over the transports that its settings allow."""

    @property
    def name(self) -> str:
        """Address and port as metrics show them: "10.0.0.10:53", "[2001:db8::1]:853"."""

    def exchange(
        self, message: bytes, question: bytes, transport: Transport, timeout: float, on_reply: OnReply
    ) -> Sent | None:
        """Send a query and wait at most `timeout` seconds for its reply, a whole message with the query's question.

        `message` has the id 0 and the question section `question`. Each query gets its own id on the wire, and the id
        of the reply passed on is arbitrary. A reply with another id, question or source, or with QR clear, is ignored,
        and the wait goes on (RFC 5452 section 9.1). The question is compared case-insensitively; an error reply
        may lack it (a bare header). Over TCP and TLS, a query whose connection closes is sent again, at most twice and
        within the same timeout, over another open connection or a new one. A slow query may be hedged: over UDP from
        another port, over TCP and TLS over another connection if its own has gone silent; the first reply counts.
        Never raises.
        `on_reply` is always called, perhaps before this returns, unless the returned Sent is cancelled first; None:
        there is nothing to cancel.
        """

    def close(self) -> None:
        """Send no more queries; connections close once the queries in flight are done."""
