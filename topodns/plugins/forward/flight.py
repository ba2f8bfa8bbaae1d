"""One question on its way: from upstream to upstream until one of them gives an answer, or time is up."""

import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from topodns.dns.message import Ede, EdeCode, Flag, Rcode
from topodns.dns.names import name_text, wire_labels
from topodns.dns.plain_reply import read_plain
from topodns.dns.reply import Reply, read_reply
from topodns.dns.wire import HEADER_SIZE, WireError
from topodns.resolve.course import Outcome, Timers
from topodns.resolve.exchange import Failure, Transport
from topodns.resolve.forward.answer import Answer
from topodns.resolve.forward.cleaning import MAX_TTL, clean, extended_error, sane_ttl
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
_UDP, _TCP = Transport.UDP, Transport.TCP  # members of an enum are slow to get at


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


class Flight(Outcome[Answer]):
    """Asks one upstream after the other; and one more beside it when that one takes long, where they are all alike.

    It is settled within the plan's deadline, whatever upstreams do, and `landed` is called just before. `addresses`
    are those of the clients that wait for it.
    """

    __slots__ = (
        *("_deadline", "_dnssec_ok", "_failed", "_landed", "_pending", "_plan", "_problems", "_question", "_reached"),
        *("_second_best", "_tried", "addresses", "key"),
    )

    def __init__(
        self,
        plan: Plan,
        key: Key,
        question: bytes,
        dnssec_ok: bool,
        address: bytes,
        landed: Callable[["Flight"], object],
        then: Callable[[Answer], object] | None = None,
    ) -> None:
        """`question` is the question section of the message of `key`; `dnssec_ok` is its DO bit.

        `then` waits from the start.
        """
        self._settled = False  # as in Outcome.__init__: a call of it is 2 % of a forwarded query
        self._waiting = then
        self.key = key
        self.addresses = [address]
        self._plan = plan
        self._question = question
        self._dnssec_ok = dnssec_ok
        self._landed = landed
        self._tried: list[Candidate] = []  # in this round
        self._pending = 0  # attempts under way
        self._failed = 0  # attempts
        self._problems: dict[str, str] | None = None  # upstream -> its latest problem
        self._reached = False  # some upstream has failed in another way than by silence
        self._second_best: Answer | None = None  # one with an rcode that asks for another upstream's opinion

    @property
    def over(self) -> bool:
        return self._settled

    def start(self, asked: float) -> None:
        """Take off, for a client that has waited since `asked`."""
        plan = self._plan
        now = plan.timers.time()
        self._deadline = (asked or now) + plan.deadline
        candidate = plan.pool.only or plan.pool.pick(())
        if candidate is None:
            self._ask_although_all_are_down()
        else:
            message, tcp = self.key
            self._ask(candidate, candidate.transports[tcp], message, now)
        if plan.impatience is not None and not self._settled:
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
        message, tcp = self.key
        self._ask(candidate, candidate.transports[tcp], message, self._plan.timers.time())

    def _ask_again(self, candidate: Candidate, transport: Transport, message: bytes) -> None:
        """The same upstream, because of what its reply says."""
        self._ask(candidate, transport, message, self._plan.timers.time())

    def _ask(self, candidate: Candidate, transport: Transport, message: bytes, now: float) -> None:
        self._tried.append(candidate)
        timeout, left = self._plan.settings.read_timeout, self._deadline - now
        if left < timeout:
            timeout = max(left, 0.0)
        self._pending += 1
        came = partial(self._came, candidate, transport, message, now)
        candidate.upstream.exchange(message, self._question, transport, timeout, came)

    def _came(
        self, candidate: Candidate, transport: Transport, message: bytes, started: float, result: bytes | Failure
    ) -> None:
        """What came of one attempt; perhaps long after another one has ended the flight."""
        self._pending -= 1
        try:
            if not isinstance(result, bytes):
                self._miss(candidate, result.problem, result.timed_out)
            elif not self._take_plain(candidate, started, result):
                self._read(candidate, transport, message, started, result)
        except Exception:  # the clients that wait get an answer all the same
            log.exception("bug: what %s said of %s", candidate.name, name_text(wire_labels(self._question)))
            self._give_up()

    def _read(self, candidate: Candidate, transport: Transport, message: bytes, started: float, data: bytes) -> None:
        if len(data) == HEADER_SIZE:
            self._read_bare(candidate, transport, message, data[3] & 0x0F)
            return
        try:
            reply = read_reply(data)
        except WireError as unreadable:
            self._miss(candidate, f"reply that cannot be read: {unreadable}", False)
            return
        candidate.counts.replied(reply.rcode, self._plan.timers.time() - started)
        candidate.health.answered()
        if self._settled:
            return
        if not self._is_mine(reply):
            self._miss(candidate, "reply to another question", False)
        elif reply.flags & _TC and transport is _UDP and self._plan.settings.prefer_udp:
            self._ask_again(candidate, _TCP, message)
        elif reply.rcode in _WITHOUT_EDNS and message[11]:  # ARCOUNT: it had EDNS (RFC 6891 sections 6.1.3 and 7)
            self._ask_again(candidate, transport, without_edns(message, self._question))
        else:
            self._weigh(candidate, reply)

    def _read_bare(self, candidate: Candidate, transport: Transport, message: bytes, rcode: int) -> None:
        """An error without a question: often of a server that knows no EDNS."""
        candidate.health.answered()
        if self._settled:
            return
        if rcode in _WITHOUT_EDNS and message[11]:
            self._ask_again(candidate, transport, without_edns(message, self._question))
        else:
            self._miss(candidate, f"{rcode_label(rcode)} without a question", False)

    def _take_plain(self, candidate: Candidate, started: float, data: bytes) -> bool:
        """Whether this is what most replies are: nothing to clean, and nothing to weigh."""
        # What DNSSEC proves stands behind the answer.
        if self._settled or self._dnssec_ok or self._plan.settings.failover:
            return False
        plain = read_plain(data, self._question)
        if plain is None:
            return False
        candidate.counts.replied(0, self._plan.timers.time() - started)
        if candidate.health.fails or not candidate.counts.reachable:
            candidate.health.answered()
        flags, rrset = plain
        if rrset.ttl > MAX_TTL:
            rrset = rrset._replace(ttl=sane_ttl(rrset.ttl))
        self._landed(self)
        self.settle(Answer(0, flags & _PASSED_ON, (rrset,), (), (), None, candidate.name, False, True))
        return True

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
        if self._settled:
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
        if not self._settled:
            self._landed(self)
            self.settle(answer)
