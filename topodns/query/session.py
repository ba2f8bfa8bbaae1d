"""The contract between a client's TCP connection and a DSO session on it (RFC 8490), and the limits of sessions.

Its two Protocols are here, as `net.tcp_connection` and `dnsserver.push.session`, which implement one each, must not
import each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from topodns.dns.name import Name


class SessionConnection(Protocol):
    """The connection, as the session sees it. `address` is packed."""

    @property
    def address(self) -> bytes: ...

    @property
    def port(self) -> int: ...

    def send(self, framed: bytes) -> bool:
        """Write messages, each after its length, soon; nothing if the connection is closing.

        False: the client does not read, and its connection is closed for that.
        """

    def hold_open(self, seconds: float) -> None:
        """From now on the connection is closed only after so many seconds without a message in either direction."""

    def finish(self) -> None:
        """Close once all queries that have arrived are answered; the session's `farewell` is the last message."""


class StatefulSession(Protocol):
    """The session, as the connection sees it."""

    def receive(self, message: bytes) -> list[bytes] | None:
        """Handle one DSO message. Returns the messages to send; None: a fatal error, abort the connection."""

    def query_exchanged(self) -> None:
        """A query that is no DSO message has arrived on the connection, or its reply leaves."""

    def farewell(self) -> list[bytes]:
        """The last message (or none) of a connection that this server closes."""

    def closed(self) -> None:
        """The connection is lost."""


OpenSession = Callable[[SessionConnection], StatefulSession]
"""Makes the session of a connection, when its first DSO message arrives."""


@dataclass(frozen=True, slots=True)
class PushLimits:
    """Limits of all listeners of the process together. A client address has twice the `subscriptions` of a session."""

    sessions: int = 1000
    subscriptions: int = 10_000  # of one session
    memory: int = 64 << 20  # octets of subscriptions and of what they follow


@dataclass(frozen=True, slots=True)
class PushedZones:
    """The zones of a server block whose names may be subscribed to."""

    origins: tuple[Name, ...]
    limits: PushLimits
