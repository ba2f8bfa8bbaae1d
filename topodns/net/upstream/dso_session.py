"""One DSO session (RFC 8490) with an upstream, over a connection that also carries queries.

It begins with a Keepalive request, answers what the upstream sends, and ends on errors and silence. The messages of the
operation that it exists for, such as DNS Push Notifications, are its user's. No I/O: the connection is an argument.
"""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final, NamedTuple, Protocol

from topodns.dns.dso import (
    INFINITE,
    MIN_KEEPALIVE,
    OPCODE,
    DsoMessage,
    DsoType,
    SessionTimeouts,
    keepalive_tlv,
    read_dso,
    read_keepalive,
    read_retry_delay,
    write_dso,
    write_dso_response,
)
from topodns.dns.rrtype import Rcode
from topodns.dns.wire_reader import WireError
from topodns.query.deferred import Timer, Timers

PATIENCE: Final = 5.0  # seconds for the response to the first Keepalive
WISHED: Final = SessionTimeouts(INFINITE, 15_000)  # milliseconds: inactivity timeout and keepalive interval
AT_ONCE: Final = 1 << 14  # octets of messages for the user in one turn of the loop, or one message
MAX_INBOX: Final = 1 << 21  # octets of messages that wait for later turns
MAX_INTERVAL: Final = 60.0  # seconds: the longest keepalive interval here, whatever the upstream allows

_DSO_TYPE_NOT_IMPLEMENTED: Final = 11  # RFC 8490 section 10.2
_OPCODE_OCTET: Final = OPCODE << 3
_OPCODE_MASK: Final = 0x78


class DsoEnd(NamedTuple):
    """The end of a session. `refused`: the upstream does not know DSO, or did not answer the first Keepalive.

    `retry_after`: seconds that the upstream wants its client to wait (RFC 8490 section 7.2), 0.0 without a wish.
    """

    refused: bool
    retry_after: float
    problem: str


class SessionUser(Protocol):
    """The operation for which a session exists."""

    @property
    def active(self) -> bool:
        """Whether an operation, such as a subscription, needs the session (RFC 8490 section 6.4)."""

    def established(self, session: "DsoSession") -> None:
        """The session has begun: requests may be sent."""

    def received(self, kind: int, octets: bytes) -> None:
        """A unidirectional message whose first TLV has this type, which DSO itself does not define.

        Raises WireError, which ends the session: the message is malformed, or of a type that the user does not know.
        """

    def ended(self, end: DsoEnd) -> None:
        """The session has ended, or could not begin. Called once."""


class SessionLine(Protocol):
    """The connection of a session (`UpstreamConnection`)."""

    def reserve(self) -> bytes:
        """A message id that no query and no other request uses, until it is released."""

    def keep(self, ident: bytes) -> None:
        """The request with this id is answered, its operation goes on: the id stays in use until `release`."""

    def release(self, ident: bytes) -> None:
        """End the use of this id."""

    def post(self, message: bytes) -> None:
        """Send a message with all others of this turn of the loop."""

    def abort(self) -> None:
        """Close at once; queries in flight are sent again over another connection. Calls `DsoSession.lost`."""

    def leave(self) -> None:
        """Close once the queries in flight are answered. May call `DsoSession.lost`."""


OnResponse = Callable[[int, float], object]
"""Takes the rcode of a response, and its Retry Delay in seconds, 0.0 without one (RFC 8490 section 7.2.2)."""


class _Request(NamedTuple):
    on_response: OnResponse
    sent: float
    goes_on: bool


class DsoSession:
    """A session from the first Keepalive request to its end, which the user learns once.

    The upstream gets a Keepalive every half interval, and the connection is aborted if a request has no response half
    an interval later: a lost upstream is noticed within one keepalive interval.
    """

    def __init__(self, user: SessionUser, line: SessionLine, timers: Timers) -> None:
        self.is_established = False
        self._user = user
        self._line = line
        self._timers = timers
        self._requests: dict[bytes, _Request] = {}  # in the order in which they were sent
        self._operations: set[bytes] = set()  # ids of requests whose operation goes on
        self._interval = 0.0  # seconds; 0.0: not known yet
        self._inactivity = inf  # seconds
        self._needed = timers.time()  # when the user was last known to be active
        self._retry_after = 0.0
        self._timer: Timer | None = None
        self._inbox: deque[tuple[int, bytes]] = deque()
        self._inbox_octets = 0
        self._taken = 0  # octets handed to the user in this turn of the loop
        self._next_turn: Timer | None = None
        self._over = False

    def begin(self) -> None:
        """Send the first Keepalive. Called once the connection is open."""
        self._timer = self._timers.call_later(PATIENCE, lambda: self._end("no response to Keepalive", refused=True))
        self._send_keepalive(self._answered_first)

    @property
    def is_over(self) -> bool:
        return self._over

    @property
    def needs_connection(self) -> bool:
        """Whether the connection has to stay open for the session, whatever its age."""
        return self.is_established and not self._over and self._user.active

    @property
    def waiting(self) -> int:
        """The number of requests without a response yet."""
        return len(self._requests)

    def request(self, write: Callable[[int], bytes], on_response: OnResponse, goes_on: bool = False) -> int:
        """Send the request that `write` makes with its id, and return the id.

        `on_response` is called once, but not after the end of the session. With `goes_on`, a response without an error
        begins an operation, such as a subscription, whose id nothing else may have (RFC 8765 section 6.2) until
        `finish`.
        """
        ident = self._line.reserve()
        self._requests[ident] = _Request(on_response, self._timers.time(), goes_on)
        number = int.from_bytes(ident, "big")
        self._line.post(write(number))
        return number

    def finish(self, number: int, message: bytes) -> None:
        """End the operation with this id by this unidirectional message."""
        ident = number.to_bytes(2, "big")
        self._operations.discard(ident)
        self._line.post(message)
        self._line.release(ident)

    def receive(self, message: bytes) -> bool:
        """Take a message that is no reply to a query, of at least a header; False if it is not for the session."""
        if self._over:
            return False
        ident = message[:2]
        request = self._requests.get(ident) if message[2] & 0x80 else None
        if message[2] & _OPCODE_MASK != _OPCODE_OCTET:
            if request is None or self.is_established:
                return False
            self._end("the upstream does not know DSO", refused=True)  # an error without the opcode of the request
            return True
        try:
            self._take(read_dso(message), request, message)
        except WireError as problem:
            if self.is_established:
                self._fail(f"malformed message: {problem}")
            else:
                self._end(f"malformed response: {problem}", refused=True)
        return True

    def lost(self) -> None:
        """The connection is closed; instead of a response to the first Keepalive, that is a refusal."""
        self._end("connection closed", refused=self._timer is not None and not self.is_established)

    def close(self) -> None:
        """End the session, which is no longer needed, and let the connection close."""
        self._end("closed", refused=False)
        self._line.leave()

    def _take(self, message: DsoMessage, request: _Request | None, octets: bytes) -> None:
        if message.response:
            if request is not None:
                ident = octets[:2]
                del self._requests[ident]
                if request.goes_on and message.rcode == Rcode.NOERROR:
                    self._operations.add(ident)
                    self._line.keep(ident)
                else:
                    self._line.release(ident)
                self._answer(message, request)
        elif not self.is_established:
            raise WireError("message before the session")
        elif message.ident:
            self._line.post(write_dso_response(message.ident, _DSO_TYPE_NOT_IMPLEMENTED))
        else:
            self._take_unidirectional(message, octets)

    def _answer(self, message: DsoMessage, request: _Request) -> None:
        if message.rcode == Rcode.NOERROR and message.primary and message.primary.kind == DsoType.KEEPALIVE:
            self._set_timeouts(read_keepalive(message.primary.data))
        tlvs = message.additional if message.primary is None else (message.primary, *message.additional)
        delays = [read_retry_delay(data) for kind, data in tlvs if kind == DsoType.RETRY_DELAY]
        request.on_response(message.rcode, max(delays, default=0) / 1000)

    def _take_unidirectional(self, message: DsoMessage, octets: bytes) -> None:
        assert message.primary is not None
        kind, data = message.primary
        if kind == DsoType.KEEPALIVE:
            self._set_timeouts(read_keepalive(data))
        elif kind == DsoType.RETRY_DELAY:
            self._retry_after = read_retry_delay(data) / 1000
            self._end("the upstream wants the session to end", refused=False)
            self._line.leave()
        else:
            self._inbox.append((kind, octets))
            self._inbox_octets += len(octets)
            if self._inbox_octets > MAX_INBOX:
                raise WireError(f"more than {MAX_INBOX} octets at once")
            self._hand_over()

    def _hand_over(self) -> None:
        """Hand messages to the user, AT_ONCE octets in each turn of the loop, since a large one takes milliseconds."""
        while self._inbox and (not self._taken or self._taken + len(self._inbox[0][1]) <= AT_ONCE):
            kind, octets = self._inbox.popleft()
            self._taken += len(octets)
            self._inbox_octets -= len(octets)
            self._user.received(kind, octets)
        if self._next_turn is None:
            self._next_turn = self._timers.call_later(0.0, self._begin_turn)

    def _begin_turn(self) -> None:
        self._next_turn, self._taken = None, 0
        if not self._inbox:
            return
        try:
            self._hand_over()
        except WireError as problem:
            self._fail(f"malformed message: {problem}")

    def _answered_first(self, rcode: int, retry_after: float) -> None:
        if rcode != Rcode.NOERROR or not self._interval:
            self._retry_after = retry_after
            self._end(f"rcode {rcode} for Keepalive", refused=True)
            return
        self.is_established = True
        if self._timer is not None:
            self._timer.cancel()
        self._watch()
        self._user.established(self)

    def _set_timeouts(self, timeouts: SessionTimeouts) -> None:
        """Take over the upstream's values. An interval below RFC 8490's minimum is fatal (section 6.5.2)."""
        if timeouts.keepalive < MIN_KEEPALIVE:
            raise WireError(f"keepalive interval of {timeouts.keepalive} ms, at least {MIN_KEEPALIVE} expected")
        self._interval = min(timeouts.keepalive / 1000, MAX_INTERVAL)
        self._inactivity = inf if timeouts.inactivity == INFINITE else timeouts.inactivity / 1000

    def _send_keepalive(self, on_response: OnResponse) -> None:
        wished = keepalive_tlv(WISHED)
        self.request(lambda ident: write_dso(DsoMessage(ident, False, Rcode.NOERROR, wished)), on_response)

    def _watch(self) -> None:
        """Look half an interval from now whether the upstream responds, and whether the session is still needed."""
        self._timer = self._timers.call_later(self._interval / 2, self._look)

    def _look(self) -> None:
        now, half = self._timers.time(), self._interval / 2
        if self._user.active:
            self._needed = now
        if now - self._needed > self._inactivity:
            self.close()
            return
        oldest = next(iter(self._requests.values()), None)
        if oldest is not None and now - oldest.sent >= half:
            self._fail("no response")
            return
        # The upstream, too, expects a message within the interval (section 6.5).
        self._send_keepalive(_ignored)
        self._watch()

    def _fail(self, problem: str) -> None:
        self._end(problem, refused=False)
        self._line.abort()

    def _end(self, problem: str, refused: bool) -> None:
        if self._over:
            return
        self._over = True
        for timer in (self._timer, self._next_turn):
            if timer is not None:
                timer.cancel()
        self._inbox.clear()
        for ident in (*self._requests, *self._operations):
            self._line.release(ident)
        self._requests, self._operations = {}, set()
        self._user.ended(DsoEnd(refused, self._retry_after, problem))


def _ignored(_: int, __: float) -> None:
    """A response without new values."""
