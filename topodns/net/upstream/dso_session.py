"""One DSO session (RFC 8490) with an upstream, over a connection that also carries queries.

It begins with a Keepalive request, answers what the upstream sends, and ends on errors and silence. The messages of the
operation that it exists for, such as DNS Push Notifications, are its user's. No I/O: the connection is an argument.
`SessionBackoff` decides when the next session begins, and with which upstream.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from random import Random
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
SLICE: Final = 0.001  # seconds of work on messages of the upstream between two pauses
PAUSE: Final = 0.001  # seconds: at most half of the time is for them
MAX_INBOX: Final = 1 << 22  # octets of messages that wait, with MESSAGE_OVERHEAD for each
MESSAGE_OVERHEAD: Final = 128  # octets of the objects of a message beside its own
UNSOLICITED: Final = 16  # responses to no request, and requests, which no upstream needs to send
MAX_INTERVAL: Final = 60.0  # seconds: the longest keepalive interval here, whatever the upstream allows

RETRY_REFUSED: Final = 60.0  # seconds until an upstream that has refused is asked again, unless it wants another time
RETRY_LOST: Final = 1.0  # seconds after a lost session; doubled with each failure, up to RETRY_REFUSED
MAX_RETRY_DELAY: Final = 3600.0  # seconds: the longest wait that an upstream may ask for

_MOST_DOUBLED: Final = 8
_DSO_TYPE_NOT_IMPLEMENTED: Final = 11  # RFC 8490 section 10.2
_DONE: Final = object()
_OPCODE_OCTET: Final = OPCODE << 3
_OPCODE_MASK: Final = 0x78


class DsoEnd(NamedTuple):
    """The end of a session. `refused`: the upstream does not know DSO, or did not allow the session.

    It has said so, or has answered queries on the same connection but no Keepalive. Unlike in RFC 8490 section 5.1.1, a
    connection that was lost or silent is no refusal: while replicas of an upstream are replaced, connections are lost.

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

    def received(self, kind: int, octets: bytes) -> Iterator[object]:
        """Take a unidirectional message whose first TLV has this type, which DSO itself does not define.

        In steps, between which other work may be done and the session may end; each takes a few milliseconds at most.
        Raises WireError, which ends the session: the message is malformed, or of a type that the user does not know.
        """

    def ended(self, end: DsoEnd) -> None:
        """The session has ended, or could not begin. Called once."""


class SessionLine(Protocol):
    """The connection of a session (`UpstreamConnection`)."""

    @property
    def replies(self) -> int:
        """The number of replies to queries so far."""

    def last_query(self) -> float:
        """The time, by the clock of the timers, when the latest query had its reply; now, while one has none."""

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

    def __init__(
        self, user: SessionUser, line: SessionLine, timers: Timers, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """`clock` gives seconds, also within a turn of the loop, in which the time of some timers does not advance."""
        self.is_established = False
        self._user = user
        self._line = line
        self._timers = timers
        self._requests: dict[bytes, _Request] = {}  # in the order in which they were sent
        self._operations: set[bytes] = set()  # ids of requests whose operation goes on
        self._interval = 0.0  # seconds; 0.0: not known yet
        self._inactivity = inf  # seconds
        self._active_at = timers.time()  # of the latest message that is no Keepalive, or when an operation went on
        self._retry_after = 0.0
        self._timer: Timer | None = None
        self._clock = clock
        self._inbox: deque[bytes] = deque()  # messages of the upstream, which are taken in their order
        self._inbox_octets = 0  # with MESSAGE_OVERHEAD
        self._work: Iterator[object] | None = None  # on the message before those in `_inbox`
        self._left = SLICE  # seconds of work until `_next_slice`
        self._next_slice: Timer | None = None
        self._replies = 0  # to queries, before the first Keepalive
        self._unsolicited = 0
        self._over = False

    def begin(self) -> None:
        """Send the first Keepalive. Called once the connection is open."""
        self._timer = self._timers.call_later(PATIENCE, self._give_up)
        self._replies = self._line.replies
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
        self._active_at = self._timers.time()
        return self._request(write, on_response, goes_on)

    def finish(self, number: int, message: bytes) -> None:
        """End the operation with this id by this unidirectional message."""
        ident = number.to_bytes(2, "big")
        self._active_at = self._timers.time()
        self._operations.discard(ident)
        self._line.post(message)
        self._line.release(ident)

    def receive(self, message: bytes) -> bool:
        """Take a message that is no reply to a query, of at least a header; False if it is not for the session."""
        if self._over:
            return False
        if message[2] & _OPCODE_MASK != _OPCODE_OCTET:
            if self.is_established or not message[2] & 0x80 or message[:2] not in self._requests:
                return False
            self._end("the upstream does not know DSO", refused=True)  # an error without the opcode of the request
            return True
        self._inbox.append(message)
        self._inbox_octets += len(message) + MESSAGE_OVERHEAD
        if self._inbox_octets > MAX_INBOX:
            self._fail(f"more than {MAX_INBOX} octets of messages at once")
        else:
            self._do_work()
        return True

    def lost(self) -> None:
        """The connection is closed."""
        self._end("connection closed", refused=False)

    def close(self) -> None:
        """End the session, which is no longer needed, and let the connection close."""
        self._end("closed", refused=False)
        self._line.leave()

    def _request(self, write: Callable[[int], bytes], on_response: OnResponse, goes_on: bool = False) -> int:
        ident = self._line.reserve()
        self._requests[ident] = _Request(on_response, self._timers.time(), goes_on)
        number = int.from_bytes(ident, "big")
        self._line.post(write(number))
        return number

    def _do_work(self) -> None:
        """Take messages of the upstream until none is left, or this slice of time is over.

        The next slice begins PAUSE later, so that a flood of messages delays no query by more than a slice and the
        longest step, and takes half of the time at most.
        """
        began = self._clock()
        while self._left > 0 and not self._over:
            if self._work is None:
                if not self._inbox:
                    break
                message = self._inbox.popleft()
                self._inbox_octets -= len(message) + MESSAGE_OVERHEAD
                self._work = self._take(message)
            try:
                if next(self._work, _DONE) is _DONE:
                    self._work = None
            except WireError as problem:
                self._reject(problem)
            now = self._clock()
            self._left -= now - began
            began = now
        if self._next_slice is None and not self._over:
            self._next_slice = self._timers.call_later(PAUSE, self._begin_slice)

    def _begin_slice(self) -> None:
        self._next_slice, self._left = None, SLICE
        if self._work is not None or self._inbox:
            self._do_work()

    def _take(self, octets: bytes) -> Iterator[object]:
        """The steps of the work on a message. Raises WireError."""
        message = read_dso(octets)
        if message.response:
            self._take_response(message, octets[:2])
        elif not self.is_established:
            raise WireError("message before the session")
        elif message.ident:
            self._note_unsolicited()
            self._line.post(write_dso_response(message.ident, _DSO_TYPE_NOT_IMPLEMENTED))
        else:
            yield from self._take_unidirectional(message, octets)

    def _take_response(self, message: DsoMessage, ident: bytes) -> None:
        request = self._requests.pop(ident, None)
        if request is None:
            self._note_unsolicited()
            return
        if request.goes_on and message.rcode == Rcode.NOERROR:
            self._operations.add(ident)
            self._line.keep(ident)
        else:
            self._line.release(ident)
        if message.rcode == Rcode.NOERROR and message.primary and message.primary.kind == DsoType.KEEPALIVE:
            self._set_timeouts(read_keepalive(message.primary.data))
        tlvs = message.additional if message.primary is None else (message.primary, *message.additional)
        delays = [read_retry_delay(data) for kind, data in tlvs if kind == DsoType.RETRY_DELAY]
        request.on_response(message.rcode, max(delays, default=0) / 1000)

    def _note_unsolicited(self) -> None:
        """Count a message that has no place in a session. Raises WireError for more than UNSOLICITED."""
        self._unsolicited += 1
        if self._unsolicited > UNSOLICITED:
            raise WireError(f"more than {UNSOLICITED} requests, and responses to none")

    def _take_unidirectional(self, message: DsoMessage, octets: bytes) -> Iterator[object]:
        assert message.primary is not None
        kind, data = message.primary
        if kind == DsoType.KEEPALIVE:
            self._set_timeouts(read_keepalive(data))
            return
        self._active_at = self._timers.time()
        if kind == DsoType.RETRY_DELAY:
            self._retry_after = read_retry_delay(data) / 1000
            self._end("the upstream wants the session to end", refused=False)
            self._line.leave()
        else:
            yield from self._user.received(kind, octets)

    def _reject(self, problem: WireError) -> None:
        if self.is_established:
            self._fail(f"malformed message: {problem}")
        else:
            self._end(f"malformed response: {problem}", refused=True)

    def _give_up(self) -> None:
        """The first Keepalive has had no response: from an upstream that lives, since it answers queries, a refusal."""
        self._end("no response to Keepalive", refused=self._line.replies != self._replies)
        self._line.abort()

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
        self._request(lambda ident: write_dso(DsoMessage(ident, False, Rcode.NOERROR, wished)), on_response)

    def _watch(self) -> None:
        """Look half an interval from now whether the upstream responds, and whether the session is still needed."""
        self._timer = self._timers.call_later(self._interval / 2, self._look)

    def _look(self) -> None:
        now, half = self._timers.time(), self._interval / 2
        if self._user.active:
            self._active_at = now
        # RFC 8490 section 6.3: queries and replies to them count as well, and Keepalives do not.
        if now - max(self._active_at, self._line.last_query()) > self._inactivity:
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
        for timer in (self._timer, self._next_slice):
            if timer is not None:
                timer.cancel()
        self._inbox.clear()
        self._work = None
        for ident in (*self._requests, *self._operations):
            self._line.release(ident)
        self._requests, self._operations = {}, set()
        self._user.ended(DsoEnd(refused, self._retry_after, problem))


def _ignored(_: int, __: float) -> None:
    """A response without new values."""


class SessionBackoff:
    """The upstreams, by index, in turns: after the end of a session it is the turn of the next one.

    An upstream waits for as long as it wants to be left alone (RFC 8490 section 7.2.1), and so delays no other one; all
    wait while sessions are lost again and again. All times are of one clock, in seconds.
    """

    def __init__(self, upstreams: int, rng: Random) -> None:
        self._rng = rng
        self._turn = 0
        self._not_before = [0.0] * upstreams
        self._paused_until = 0.0
        self._failures = 0  # sessions that were lost since one was established

    @property
    def due(self) -> float:
        """The time from which on a session may begin."""
        return max(self._paused_until, min(self._not_before))

    def choose(self, now: float) -> int:
        """The upstream for a session that begins now, at `due` or later."""
        while self._not_before[self._turn] > now:
            self._next_turn()
        return self._turn

    def established(self) -> None:
        self._failures = 0

    def refused(self, now: float, wanted: float) -> None:
        """The upstream chosen last has refused; it wants its clients to wait for `wanted` seconds."""
        delay = max(RETRY_REFUSED, min(wanted, MAX_RETRY_DELAY))
        self._not_before[self._turn] = now + delay * (1 + self._rng.random() / 4)
        self._next_turn()

    def lost(self, now: float, wanted: float = 0.0) -> None:
        """The session with the upstream chosen last is lost, or could not begin."""
        own = min(RETRY_LOST * 2**self._failures, RETRY_REFUSED)
        self._failures = min(self._failures + 1, _MOST_DOUBLED)
        jitter = own * self._rng.random()
        self._paused_until = now + own + jitter
        self._not_before[self._turn] = now + min(wanted, MAX_RETRY_DELAY) + jitter
        self._next_turn()

    def _next_turn(self) -> None:
        self._turn = (self._turn + 1) % len(self._not_before)
