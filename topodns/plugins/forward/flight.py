"""One exchange with the upstreams: which is asked next, hedging, failover, further rounds and the deadline.

`single_flight` hands its answer to the queries that wait for it.
"""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from topodns.dns.message import Ede, EdeCode, Flag, RRset
from topodns.dns.name import name_text, wire_labels
from topodns.dns.response_reader import UpstreamReply, read_plain, read_reply
from topodns.dns.rrtype import Rcode, rcode_text
from topodns.dns.wire_format import HEADER_SIZE, pack_question_tail
from topodns.dns.wire_reader import WireError
from topodns.plugins.forward.sanitize import MAX_TTL, PLAIN_RECORDS, Wanted, clean, extended_error, sane_ttl
from topodns.plugins.forward.settings import Forward
from topodns.plugins.forward.upstreams import Candidate, ForwardCounts, UpstreamPool
from topodns.query.deferred import Timers
from topodns.query.upstream import QUESTION_AT, Failure, Transport, UpstreamQuery

log = logging.getLogger(__name__)


@dataclass(slots=True)  # not frozen: one is created per query, and a frozen one takes four times as long
class UpstreamAnswer:
    """Result of a flight.

    Without a usable reply, `failed` is set, `rcode` is SERVFAIL, and `upstream` lists the upstreams that failed, or all
    if none was asked because all were down.
    """

    rcode: int
    flags: int
    answer: tuple[RRset, ...] = ()
    authority: tuple[RRset, ...] = ()
    additional: tuple[RRset, ...] = ()
    ede: Ede | None = None
    upstream: str = ""
    failed: bool = False
    problem: str = ""  # of a failed flight, with the addresses of upstreams: for the log only
    options: tuple[tuple[int, bytes], ...] = ()  # EDNS options of the reply, of the codes that the query forwards


DEADLINE: Final = 4.0  # seconds for the whole flight: a stub resolver with a timeout of 5 gets SERVFAIL, not silence
# Seconds between two rounds of all upstreams: one that refuses connections may be restarting, and with
# `max_connect_attempts 0` nothing else limits the rate of attempts.
PAUSE: Final = 0.1
# Seconds by which a hedged attempt may be late. A timer for each of 20,000 queries a second costs more than those.
SLACK: Final = 0.05
HEDGED_AT_ONCE: Final = 32  # late replies handled in one turn of the event loop; each takes about 50 us

PASSED_ON: Final = Flag.AA | Flag.TC | Flag.RA | Flag.AD  # flags of a reply that clients get

_QDCOUNT_END: Final = 6  # offset in a message
_ARCOUNT_AT: Final = QUESTION_AT - 2  # in a message without its id
_WITHOUT_EDNS: Final = frozenset({Rcode.FORMERR, Rcode.NOTIMP, Rcode.BADVERS})
_ALL_DOWN: Final = "all upstreams are down"
_NO_REPLY: Final = "no upstream has answered in time"
_UNREACHED: Final = "no upstream could be reached"
_UNUSABLE: Final = "no upstream has given an answer that can be used"
_UDP, _TCP = Transport.UDP, Transport.TCP  # attribute access on an Enum is slow


class HedgedWait(Protocol):
    """A wait that may be hedged."""

    @property
    def over(self) -> bool:
        """Whether the wait has ended."""

    def hedge(self) -> bool:
        """Act on a late reply; whether to call this again after the same time."""


class HedgeTimer:
    """Calls `hedge` of each watched wait that is not over after `seconds`, or a little later.

    It is called again after each further `seconds` as long as it returns True.
    """

    def __init__(self, seconds: float, timers: Timers) -> None:
        self._seconds = seconds
        self._timers = timers
        self._waiting: deque[tuple[float, HedgedWait]] = deque()  # with their due times, monotonic
        self._armed = False

    def watch(self, waiting: HedgedWait, now: float) -> None:
        queue = self._waiting
        while queue and queue[0][1].over:  # as most are, which keeps the queue short
            queue.popleft()
        queue.append((now + self._seconds, waiting))
        if not self._armed:
            self._armed = True
            self._timers.call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        now = self._timers.time()
        left = HEDGED_AT_ONCE
        while left and self._waiting and self._waiting[0][0] <= now:
            _, waiting = self._waiting.popleft()
            if waiting.over:
                continue
            left -= 1
            if waiting.hedge():
                self._waiting.append((now + self._seconds, waiting))
        self._armed = bool(self._waiting)
        if self._armed:
            self._timers.call_later(max(self._waiting[0][0] - now, SLACK) if left else 0.0, self._expire)


@dataclass(frozen=True, slots=True)
class FlightContext:
    """Settings and state shared by the flights of one directive. `hedge_timer`: None switches hedging off."""

    settings: Forward
    pool: UpstreamPool
    timers: Timers
    counts: ForwardCounts
    hedge_timer: HedgeTimer | None
    max_attempts: int  # failed attempts per flight; 0: no limit
    deadline: float = DEADLINE  # seconds for each flight
    names_upstreams: bool = False  # in the extended error that clients get for a failed flight
    may_hedge: Callable[[], bool] = lambda: True  # whether a hedged attempt may be made now


class Attempt(UpstreamQuery):
    """One attempt of an exchange: its query to one upstream over one transport."""

    __slots__ = ("candidate", "started", "transport")

    candidate: Candidate
    transport: Transport
    started: float  # monotonic seconds


def take_plain(context: FlightContext, attempt: Attempt, data: bytes) -> UpstreamAnswer | None:
    """The answer of a plain reply (`read_plain`), which needs no cleaning; it is counted. None for other replies."""
    plain = read_plain(data, attempt.question)
    if plain is None:
        return None
    candidate = attempt.candidate
    candidate.answered(0, context.timers.time() - attempt.started)
    flags, rrset = plain
    if rrset.ttl > MAX_TTL:
        rrset = rrset._replace(ttl=sane_ttl(rrset.ttl))
    return UpstreamAnswer(
        rcode=0,
        flags=flags & PASSED_ON,
        answer=(rrset,),
        authority=(),
        additional=(),
        ede=None,
        upstream=candidate.name,
    )


Key = tuple[bytes, bool]
"""Identity of a flight: the message (without its id), and whether it goes over TCP (rather than UDP) to upstreams
without TLS.
"""


class _OfFlight(Attempt):
    """An attempt whose result goes to its flight."""

    __slots__ = ("_flight",)

    def __init__(
        self, flight: "Flight", candidate: Candidate, transport: Transport, message: bytes, question: bytes, now: float
    ) -> None:
        self.message, self.question = message, question
        self.carrier = self.twin = None
        self.candidate, self.transport, self.started = candidate, transport, now
        self._flight = flight

    def on_reply(self, result: bytes | Failure) -> None:
        self._flight.on_reply(self, result)


class Flight(ABC):
    """One exchange: asks the upstreams in turn, and hedges with a further one when a reply is late.

    `FlightContext.hedge_timer` decides when a reply is late. The exchange ends within the context's deadline, whatever
    the upstreams do. A subclass (`single_flight.SharedFlight`) hands on the answer: one object per query costs less
    than two.
    """

    __slots__ = (
        *("_context", "_deadline", "_failed", "_failover_answer", "_pending", "_problems", "_question"),
        *("_reached", "_replied", "_sent", "_tried", "_wanted", "key", "over"),
    )

    def __init__(
        self,
        context: FlightContext,
        key: Key,
        question: bytes,
        wanted: Wanted,
        asked: float,
        first: Attempt | None = None,
    ) -> None:
        """Send the first query, unless `first` is the attempt that has done so; its result goes to `on_reply`.

        `question`: the question section of the message in `key`; `wanted`: what of a reply its clients may get;
        `asked`: the time from which a client waits, and the deadline counts (monotonic seconds; 0.0: now). The answer
        may be there before this returns.
        """
        self.key = key
        self.over = False
        self._context = context
        self._question = question
        self._wanted = wanted
        self._tried: list[Candidate] = []  # candidates asked in this round
        self._sent: tuple[Attempt, ...] = ()  # attempts in progress, and possibly some that are finished
        self._pending = 0  # attempts in progress
        self._failed = 0  # failed attempts
        self._problems: dict[str, str] | None = None  # upstream -> its latest problem
        self._reached = False  # some attempt failed otherwise than by a timeout
        self._replied = False  # some upstream replied
        self._failover_answer: UpstreamAnswer | None = (
            None  # with an rcode of `failover`; used if no upstream has a better one
        )
        if first is None:
            self._start(asked)
        else:
            self._resume(asked, first)

    @abstractmethod
    def _ended(self, answer: UpstreamAnswer) -> None:
        """Hand on the answer. Called once, when `over` is set, but not for a flight that is cancelled."""

    def cancel(self) -> None:
        """End the flight without an answer, since no query waits for it, and cancel the exchanges in progress."""
        self.over = True
        sent, self._sent = self._sent, ()
        for each in sent:
            each.cancel()

    def _start(self, asked: float) -> None:
        context = self._context
        now = context.timers.time()
        self._deadline = (asked or now) + context.deadline
        candidate = context.pool.only or context.pool.pick(())
        if candidate is None:
            self._ask_although_all_are_down()
        else:
            message, tcp = self.key
            self._ask(candidate, candidate.transports[tcp], message, now)
        if context.hedge_timer is not None and not self.over:
            context.hedge_timer.watch(self, now)

    def _resume(self, asked: float, first: Attempt) -> None:
        self._deadline = asked + self._context.deadline
        self._tried.append(first.candidate)
        self._pending = 1
        self._sent = (first,)

    def hedge(self) -> bool:
        """Hedge, as no answer has come in time: suspect the upstreams asked, and ask one more if `may_hedge`.

        False, without effect, if no other upstream is up or `max_attempts` would be exceeded. True: call this again if
        the answer is still late after the same time.
        """
        context = self._context
        candidate = context.pool.pick(self._tried)
        if candidate is None or 0 < context.max_attempts <= self._failed + self._pending:
            return False
        for late in self._tried:
            late.health.suspect()
        if context.may_hedge():
            self._try(candidate)
        return True

    def _ask_next(self) -> None:
        """Ask an upstream not asked in this round, else wait for attempts in progress, else begin another round.

        Instead of another round, an answer with an rcode of `failover` ends the flight, if there was one.
        """
        candidate = self._context.pool.pick(self._tried)
        if candidate is not None:
            self._try(candidate)
        elif self._pending:
            return
        elif self._failover_answer is not None:
            self._finish(self._failover_answer)
        elif self._tried:
            self._pause()
        else:
            self._ask_although_all_are_down()

    def _ask_although_all_are_down(self) -> None:
        context = self._context
        context.counts.healthcheck_broken += 1
        if context.settings.failfast:
            self._give_up()
        else:
            self._try(context.pool.pick_any())

    def _pause(self) -> None:
        timers = self._context.timers
        if timers.time() + PAUSE >= self._deadline:
            self._give_up()
        else:
            timers.call_later(PAUSE, self._next_round)

    def _next_round(self) -> None:
        if not self.over:
            self._tried = []
            self._ask_next()

    def _try(self, candidate: Candidate) -> None:
        message, tcp = self.key
        self._ask(candidate, candidate.transports[tcp], message, self._context.timers.time())

    def _ask_again(self, attempt: Attempt, transport: Transport, message: bytes) -> None:
        """Ask the same upstream again: over TCP after a truncated reply, or without EDNS after an EDNS error."""
        self._ask(attempt.candidate, transport, message, self._context.timers.time())

    def _ask(self, candidate: Candidate, transport: Transport, message: bytes, now: float) -> None:
        self._tried.append(candidate)
        timeout, left = self._context.settings.read_timeout, self._deadline - now
        if left < timeout:
            timeout = max(left, 0.0)
        self._pending += 1
        attempt = _OfFlight(self, candidate, transport, message, self._question, now)
        carrier = candidate.upstream.carriers.get(transport)
        if carrier is None:
            candidate.upstream.exchange(attempt, transport, timeout, now)
        else:
            carrier.exchange(attempt, timeout, now)
        if attempt.carrier is not None and not self.over:
            self._sent = (*self._sent, attempt) if self._sent else (attempt,)

    def on_reply(self, attempt: Attempt, result: bytes | Failure) -> None:
        """Handle the result of one attempt, which may arrive long after another attempt has ended the flight."""
        self._pending -= 1
        try:
            if not isinstance(result, bytes):
                self._fail(attempt.candidate, result.problem, result.timed_out)
                return
            self._replied = True
            if not self._take_plain(attempt, result):
                self._read(attempt, result)
        except Exception:  # the waiting clients still get an answer
            name = name_text(wire_labels(self._question))
            log.exception("bug: the response of %s for %s", attempt.candidate.name, name)
            if not self.over:
                self._give_up()

    def _read(self, attempt: Attempt, data: bytes) -> None:
        candidate = attempt.candidate
        if len(data) == HEADER_SIZE:
            self._read_bare(attempt, data[3] & 0x0F)
            return
        try:
            reply = self._readable(attempt, data)
        except WireError as unreadable:
            self._fail(candidate, f"reply that cannot be read: {unreadable}", False)
            return
        candidate.answered(reply.rcode, self._context.timers.time() - attempt.started)
        if self.over:
            return
        if not self._is_of_our_question(reply):
            self._fail(candidate, "reply to another question", False)
        elif reply.flags & Flag.TC and attempt.transport is _UDP and self._context.settings.prefer_udp:
            self._ask_again(attempt, _TCP, attempt.message)
        elif reply.rcode in _WITHOUT_EDNS and has_edns(attempt.message):  # RFC 6891 sections 6.1.3 and 7
            self._ask_again(attempt, attempt.transport, without_edns(attempt.message, self._question))
        else:
            self._accept(candidate, reply)

    def _readable(self, attempt: Attempt, data: bytes) -> UpstreamReply:
        """The decoded reply. One truncated over UDP may end within a record: then without all its records, which are of
        no use (RFC 2181 section 9). Raises WireError.
        """
        try:
            return read_reply(data)
        except WireError:
            if attempt.transport is not _UDP or not int.from_bytes(data[2:4], "big") & Flag.TC:
                raise
        return read_reply(data[:_QDCOUNT_END] + bytes(6) + data[HEADER_SIZE : HEADER_SIZE + len(self._question)])

    def _read_bare(self, attempt: Attempt, rcode: int) -> None:
        """Handle a reply that is only a header: often FORMERR of a server that does not support EDNS."""
        attempt.candidate.health.answered()
        if self.over:
            return
        if rcode in _WITHOUT_EDNS and has_edns(attempt.message):
            self._ask_again(attempt, attempt.transport, without_edns(attempt.message, self._question))
        else:
            self._fail(attempt.candidate, f"{rcode_text(rcode)} without a question", False)

    def _take_plain(self, attempt: Attempt, data: bytes) -> bool:
        """Shortcut for most replies, which need neither `clean` nor failover: end the flight. False: no such reply."""
        # DNSSEC records and EDNS options follow the answer, so a reply with these needs `_read`.
        if self.over or self._wanted is not PLAIN_RECORDS or self._context.settings.failover:
            return False
        answer = take_plain(self._context, attempt, data)
        if answer is None:
            return False
        self._finish(answer)
        return True

    def _is_of_our_question(self, reply: UpstreamReply) -> bool:
        """Whether the reply's question is the one sent, in which the name is lower-case."""
        return reply.qname.lower() + pack_question_tail(reply.qtype, reply.qclass) == self._question

    def _accept(self, candidate: Candidate, reply: UpstreamReply) -> None:
        try:
            records, authority, additional = clean(reply, self._wanted.dnssec_ok)
        except WireError as useless:
            self._fail(candidate, f"reply that is of no use: {useless}", False)
            return
        flags = reply.flags & PASSED_ON
        answer = UpstreamAnswer(
            rcode=reply.rcode,
            flags=flags,
            answer=records,
            authority=authority,
            additional=additional,
            upstream=candidate.name,
        )
        if reply.edns is not None:
            answer.ede = extended_error(reply.edns)
            answer.options = tuple(option for option in reply.edns.options if option[0] in self._wanted.codes)
        if reply.rcode in self._context.settings.failover:
            self._failover_answer = answer
            self._ask_next()
        else:
            self._finish(answer)

    def _fail(self, candidate: Candidate, problem: str, timed_out: bool) -> None:
        candidate.health.suspect()
        if self.over:
            return
        if self._problems is None:
            self._problems = {}
        self._problems[candidate.name] = problem
        self._reached = self._reached or not timed_out
        self._failed += 1
        if not 0 < self._context.max_attempts <= self._failed:
            self._ask_next()
        elif not self._pending:
            self._give_up()

    def _give_up(self) -> None:
        self._finish(self._failover_answer or self._failure())

    def _failure(self) -> UpstreamAnswer:
        """SERVFAIL with an extended error about the upstreams (RFC 8914 sections 4.23 and 4.24).

        Only with `names_upstreams` its text has the problems: they contain addresses, also those of certificates, which
        would disclose the cluster's network to clients.
        """
        names = ", ".join(self._problems or [each.name for each in self._context.pool.candidates])
        if self._problems is None:
            text, problem = _ALL_DOWN, f"{_ALL_DOWN}: {names}"
        else:
            text = _UNUSABLE if self._replied else _UNREACHED if self._reached else _NO_REPLY
            problem = "; ".join(f"{name}: {problem}" for name, problem in self._problems.items())
        code = EdeCode.NETWORK_ERROR if self._reached else EdeCode.NO_REACHABLE_AUTHORITY
        ede = Ede(code, problem if self._context.names_upstreams else text)
        return UpstreamAnswer(Rcode.SERVFAIL, 0, ede=ede, upstream=names, failed=True, problem=problem)

    def _finish(self, answer: UpstreamAnswer) -> None:
        """End the flight, which must not be over."""
        self.over, self._sent = True, ()
        self._ended(answer)


def has_edns(message: bytes) -> bool:
    """Whether the message has an OPT record: no message to an upstream has any other record."""
    return message[QUESTION_AT - 1] != 0


def without_edns(message: bytes, question: bytes) -> bytes:
    """`message`, whose question section is `question`, without an OPT record."""
    return message[:_ARCOUNT_AT] + b"\0\0" + question
