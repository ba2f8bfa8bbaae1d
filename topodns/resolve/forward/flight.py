"""One question on its way: from upstream to upstream until one of them gives an answer, or time is up."""

import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from topodns.dns.message import Ede, EdeCode, Flag, Rcode, RRset
from topodns.dns.names import name_text, wire_labels
from topodns.dns.plain_reply import PlainReply, read_plain
from topodns.dns.reply import Reply, read_reply
from topodns.dns.wire import HEADER_SIZE, WireError
from topodns.resolve.course import Outcome, Timers
from topodns.resolve.exchange import Failure, Transport
from topodns.resolve.forward.cleaning import clean, extended_error, sane_ttl
from topodns.resolve.forward.counts import ForwardCounts, rcode_label
from topodns.resolve.forward.impatience import Impatience
from topodns.resolve.forward.outgoing import without_edns
from topodns.resolve.forward.pool import Candidate, Pool
from topodns.settings.forward import Forward

log = logging.getLogger(__name__)

DEADLINE: Final = 4.0  # seconds for the whole flight: a stub that waits for 5 gets SERVFAIL from us, not silence
# Between one round of all upstreams and the next: one that refuses connections may be restarting, and with
# `max_connect_attempts 0` nothing else keeps the flight from asking without a pause.
PAUSE: Final = 0.1

_PASSED_ON: Final = int(Flag.AA | Flag.TC | Flag.RA | Flag.AD)
_TC: Final = int(Flag.TC)
_WITHOUT_EDNS: Final = frozenset({int(Rcode.FORMERR), int(Rcode.NOTIMP), int(Rcode.BADVERS)})
_question_tail: Final = struct.Struct("!HH")
_UDP, _TCP, _TLS = Transport.UDP, Transport.TCP, Transport.TLS  # members of an enum are slow to get at


@dataclass(slots=True)  # not frozen: one is made per question, and that takes four times as long
class Answer:
    """What came of a flight. Where nothing came, it `failed`, `rcode` is SERVFAIL, and `upstream` names all asked."""

    rcode: int
    flags: int
    answer: tuple[RRset, ...] = ()
    authority: tuple[RRset, ...] = ()
    additional: tuple[RRset, ...] = ()
    ede: Ede | None = None
    upstream: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What the flights of one directive have in common. `impatience`: None where a slow upstream is waited for."""

    settings: Forward
    pool: Pool
    timers: Timers
    counts: ForwardCounts
    impatience: Impatience | None
    max_attempts: int  # that fail; 0: no limit
    deadline: float = DEADLINE  # seconds for each flight


Key = tuple[bytes, bool]
"""What is asked: the message, and whether over TCP rather than UDP, where an upstream knows both."""


class Flight:
    """Asks one upstream after the other; and one more beside it when that one takes long, where they are all alike.

    `outcome` is settled within the plan's deadline, whatever upstreams do, and `landed` is called just before.
    `addresses` are those of the clients that wait for it.
    """

    __slots__ = (
        *("_deadline", "_dnssec_ok", "_failed", "_landed", "_pending", "_plan", "_problems", "_question", "_reached"),
        *("_second_best", "_tried", "addresses", "key", "outcome", "over"),
    )

    def __init__(
        self, plan: Plan, key: Key, question: bytes, dnssec_ok: bool, landed: Callable[["Flight"], object]
    ) -> None:
        """`question` is the question section of the message of `key`; `dnssec_ok` is its DO bit."""
        self.key = key
        self.over = False
        self.outcome: Outcome[Answer] = Outcome()
        self.addresses: list[bytes] = []
        self._plan = plan
        self._question = question
        self._dnssec_ok = dnssec_ok
        self._landed = landed
        self._deadline = 0.0
        self._tried: list[Candidate] = []  # in this round
        self._pending = 0  # attempts under way
        self._failed = 0  # attempts
        self._problems: dict[str, str] | None = None  # upstream -> its latest problem
        self._reached = False  # some upstream has failed in another way than by silence
        self._second_best: Answer | None = None  # one with an rcode that asks for another upstream's opinion

    def start(self, asked: float) -> None:
        """Take off, for a client that has waited since `asked`."""
        plan = self._plan
        now = plan.timers.time()
        self._deadline = (asked or now) + plan.deadline
        candidate = plan.pool.pick(())
        if candidate is None:
            self._ask_although_all_are_down()
        else:
            self._try(candidate)
        if plan.impatience is not None and not self.over:
            plan.impatience.watch(self, now)

    def hurry(self) -> bool:
        """Nobody has answered so far: ask one more, if there is one, and look after those who are late."""
        plan = self._plan
        candidate = plan.pool.pick(self._tried)
        if candidate is None or 0 < plan.max_attempts <= self._failed + self._pending:
            return False
        for late in self._tried:
            late.health.suspect()
        self._try(candidate)
        return True

    def _ask_next(self) -> None:
        """An upstream not asked in this round; or wait for those under way; or another round."""
        candidate = self._plan.pool.pick(self._tried)
        if candidate is not None:
            self._try(candidate)
        elif self._pending:
            return
        elif self._second_best is not None:
            self._finish(self._second_best)
        elif self._tried:
            self._pause()
        else:
            self._ask_although_all_are_down()

    def _ask_although_all_are_down(self) -> None:
        plan = self._plan
        plan.counts.healthcheck_broken += 1
        if plan.settings.failfast:
            self._give_up()
        else:
            self._try(plan.pool.pick_any())

    def _pause(self) -> None:
        timers = self._plan.timers
        if timers.time() + PAUSE >= self._deadline:
            self._give_up()
        else:
            timers.call_later(PAUSE, self._next_round)

    def _next_round(self) -> None:
        self._tried = []
        self._ask_next()

    def _try(self, candidate: Candidate) -> None:
        self._tried.append(candidate)
        message, tcp = self.key
        self._ask(candidate, _TLS if candidate.tls else _TCP if tcp else _UDP, message)

    def _ask(self, candidate: Candidate, transport: Transport, message: bytes) -> None:
        plan = self._plan
        now = plan.timers.time()
        timeout, left = plan.settings.read_timeout, self._deadline - now
        if left < timeout:
            timeout = max(left, 0.0)
        self._pending += 1
        came = partial(self._came, candidate, transport, message, now)
        candidate.upstream.exchange(message, transport, timeout).then(came)

    def _came(
        self, candidate: Candidate, transport: Transport, message: bytes, started: float, result: bytes | Failure
    ) -> None:
        """What came of one attempt; perhaps long after another one has ended the flight."""
        self._pending -= 1
        try:
            if isinstance(result, bytes):
                self._read(candidate, transport, message, started, result)
            else:
                self._miss(candidate, result.problem, result.timed_out)
        except Exception:  # the clients that wait get an answer all the same
            log.exception("bug: what %s said of %s", candidate.name, name_text(wire_labels(self._question)))
            self._give_up()

    def _read(self, candidate: Candidate, transport: Transport, message: bytes, started: float, data: bytes) -> None:
        if len(data) == HEADER_SIZE:
            self._read_bare(candidate, transport, message, data[3] & 0x0F)
            return
        # What DNSSEC proves stands behind the answer.
        plain = None if self.over or self._dnssec_ok else read_plain(data, self._question)
        if plain is not None and not self._plan.settings.failover:
            self._take_plain(candidate, started, plain)
            return
        try:
            reply = read_reply(data)
        except WireError as unreadable:
            self._miss(candidate, f"reply that cannot be read: {unreadable}", False)
            return
        candidate.counts.replied(reply.rcode, self._plan.timers.time() - started)
        candidate.health.answered()
        if self.over:
            return
        if not self._is_mine(reply):
            self._miss(candidate, "reply to another question", False)
        elif reply.flags & _TC and transport is _UDP and self._plan.settings.prefer_udp:
            self._ask(candidate, _TCP, message)
        elif reply.rcode in _WITHOUT_EDNS and message[11]:  # ARCOUNT: it had EDNS (RFC 6891 sections 6.1.3 and 7)
            self._ask(candidate, transport, without_edns(message, self._question))
        else:
            self._weigh(candidate, reply)

    def _read_bare(self, candidate: Candidate, transport: Transport, message: bytes, rcode: int) -> None:
        """An error without a question: often of a server that knows no EDNS."""
        candidate.health.answered()
        if self.over:
            return
        if rcode in _WITHOUT_EDNS and message[11]:
            self._ask(candidate, transport, without_edns(message, self._question))
        else:
            self._miss(candidate, f"{rcode_label(rcode)} without a question", False)

    def _take_plain(self, candidate: Candidate, started: float, plain: PlainReply) -> None:
        """Most replies: nothing to clean, and nothing to weigh."""
        candidate.counts.replied(0, self._plan.timers.time() - started)
        candidate.health.answered()
        qtype, qclass = _question_tail.unpack_from(self._question, len(self._question) - _question_tail.size)
        rrset = RRset(b"", qtype, sane_ttl(plain.ttl), plain.rdatas, qclass)
        self._finish(Answer(0, plain.flags & _PASSED_ON, (rrset,), upstream=candidate.name))

    def _is_mine(self, reply: Reply) -> bool:
        """The message has the name in lower case."""
        return reply.qname.lower() + _question_tail.pack(reply.qtype, reply.qclass) == self._question

    def _weigh(self, candidate: Candidate, reply: Reply) -> None:
        try:
            records, authority, additional = clean(reply, self._dnssec_ok)
        except WireError as useless:
            self._miss(candidate, f"reply that is of no use: {useless}", False)
            return
        ede = None if reply.edns is None else extended_error(reply.edns)
        flags = reply.flags & _PASSED_ON
        answer = Answer(reply.rcode, flags, records, authority, additional, ede, candidate.name)
        if reply.rcode in self._plan.settings.failover:
            self._second_best = answer
            self._ask_next()
        else:
            self._finish(answer)

    def _miss(self, candidate: Candidate, problem: str, timed_out: bool) -> None:
        candidate.health.suspect()
        if self.over:
            return
        if self._problems is None:
            self._problems = {}
        self._problems[candidate.name] = problem
        self._reached = self._reached or not timed_out
        self._failed += 1
        if not 0 < self._plan.max_attempts <= self._failed:
            self._ask_next()
        elif not self._pending:
            self._give_up()

    def _give_up(self) -> None:
        self._finish(self._second_best or self._failure())

    def _failure(self) -> Answer:
        """SERVFAIL, with what is wrong with the upstreams (RFC 8914 sections 4.23 and 4.24)."""
        names = ", ".join(self._problems or [each.name for each in self._plan.pool.candidates])
        if self._problems is None:
            text = f"all upstreams are down: {names}"
        else:
            text = "; ".join(f"{name}: {problem}" for name, problem in self._problems.items())
        code = EdeCode.NETWORK_ERROR if self._reached else EdeCode.NO_REACHABLE_AUTHORITY
        return Answer(Rcode.SERVFAIL, 0, ede=Ede(code, text), upstream=names, failed=True)

    def _finish(self, answer: Answer) -> None:
        if not self.over:
            self.over = True
            self._landed(self)
            self.outcome.settle(answer)
