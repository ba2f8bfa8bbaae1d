"""A DSO session in virtual time: the connection, the upstream's end of it, and a user that notes what it learns."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

from tests.support.virtual_timers import VirtualTimers
from topodns.dns.dso import (
    INFINITE,
    DsoMessage,
    DsoType,
    SessionTimeouts,
    Tlv,
    keepalive_tlv,
    read_dso,
    write_dso,
    write_dso_response,
)
from topodns.dns.wire_reader import WireError
from topodns.net.upstream.dso_session import DsoEnd, DsoSession, SessionUser

KNOWN: Final = 0x41  # the type of unidirectional message that `Noted` knows


class Wire:
    """The connection, and the upstream at its other end: a `SessionLine`. `clock`: that of the session's slices."""

    def __init__(self, user: SessionUser, timers: VirtualTimers, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.session = DsoSession(user, self, timers, clock)
        self.replies = 0  # to queries
        self.query_waits = False
        self._timers = timers
        self._last_query = 0.0
        self.sent: list[DsoMessage] = []  # to the upstream, without a response so far
        self.reserved: set[bytes] = set()
        self.state = "open"
        self._idents = count(1)

    def last_query(self) -> float:
        return self._timers.time() if self.query_waits else self._last_query

    def reply(self) -> None:
        """The reply to a query that was sent just now."""
        self.replies += 1
        self._last_query = self._timers.time()

    def reserve(self) -> bytes:
        ident = next(self._idents).to_bytes(2, "big")
        self.reserved.add(ident)
        return ident

    def keep(self, ident: bytes) -> None:
        assert ident in self.reserved

    def release(self, ident: bytes) -> None:
        self.reserved.remove(ident)

    def post(self, message: bytes) -> None:
        self.sent.append(read_dso(message))

    def abort(self) -> None:
        self.state = "aborted"
        self.session.lost()

    def leave(self) -> None:
        self.state = "left"
        self.session.lost()

    def take(self) -> DsoMessage:
        """The oldest message that was sent and not taken."""
        return self.sent.pop(0)

    def say(self, message: bytes) -> bool:
        return self.session.receive(message)

    def respond(self, rcode: int = 0, *tlvs: Tlv) -> DsoMessage:
        """Answer the oldest message; returns that."""
        message = self.take()
        self.say(write_dso_response(message.ident, rcode, *tlvs))
        return message

    def establish(self, keepalive: int = 15_000, inactivity: int = INFINITE) -> None:
        self.respond(0, keepalive_tlv(SessionTimeouts(inactivity, keepalive)))

    def notify(self, kind: int, data: bytes) -> None:
        """A unidirectional message."""
        self.say(write_dso(DsoMessage(0, False, 0, Tlv(kind, data))))

    def kinds(self) -> list[int]:
        return [message.primary.kind for message in self.sent if message.primary is not None]


class Noted:
    """A user that notes what it learns."""

    def __init__(self) -> None:
        self.active = True
        self.steps = 0  # of the work on one message, beside the first
        self.session: DsoSession | None = None
        self.got: list[bytes] = []
        self.ends: list[DsoEnd] = []

    def established(self, session: DsoSession) -> None:
        self.session = session

    def received(self, kind: int, octets: bytes) -> Iterator[None]:
        if kind != KNOWN:
            raise WireError("of another type")
        for _ in range(self.steps):
            yield
        self.got.append(octets)

    def ended(self, end: DsoEnd) -> None:
        self.ends.append(end)


class Connecting:
    """An upstream with which sessions are begun, each over a connection of its own in `wires`."""

    def __init__(self, timers: VirtualTimers) -> None:
        self.name = "192.0.2.53:53"
        self.wires: list[Wire] = []
        self.accepts = True
        self._timers = timers

    def begin_session(self, user: SessionUser) -> bool:
        if self.accepts:
            self.wires.append(Wire(user, self._timers))
            self.wires[-1].session.begin()
        return self.accepts


KEEPALIVE: Final = DsoType.KEEPALIVE
