"""The upstreams of one directive: their health and counters, and which is asked next by the policy.

An upstream is healthy until a client's query fails, then probed until it answers again.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Final

from topodns.dns.message import Flag
from topodns.dns.name import name_wire
from topodns.dns.rrtype import RCODE_LABELS, RRClass, RRType
from topodns.dns.wire_format import pack_header_without_id, pack_question_tail
from topodns.plugins.forward.settings import Forward, HealthCheck, UpstreamPolicy, UpstreamTransport
from topodns.query.counters import DURATION_BUCKETS
from topodns.query.deferred import Timer, Timers
from topodns.query.histogram import Histogram
from topodns.query.upstream import QUESTION_AT, Failure, Transport, Upstream, UpstreamQuery

PROBE_TIMEOUT: Final = 1.0  # seconds, as in CoreDNS
MIN_INTERVAL: Final = 0.1  # seconds between probes: `health_check 0` must not flood the upstream
IDLE_CHECK_INTERVAL: Final = 30.0  # seconds between two calls of `UpstreamHealth.check_idle`


class UpstreamCounts:
    """Counters of one upstream address, shared by all directives that forward to it.

    `durations`: reply times in seconds by label of the rcode (`RCODE_LABELS`).
    """

    __slots__ = ("checked", "durations", "healthcheck_failures", "reachable", "replies")

    def __init__(self) -> None:
        self.healthcheck_failures = 0
        self.reachable: bool | None = None  # by the latest reply or failed probe; None: neither so far
        self.replies = 0  # total at the latest `replied_since`
        self.checked = -inf  # time of the latest `replied_since`, in monotonic seconds
        self.durations: dict[str, Histogram] = {}

    def replied(self, rcode: int, seconds: float) -> None:
        """Count a reply with this rcode that took `seconds`."""
        label = RCODE_LABELS[rcode]
        durations = self.durations.get(label)
        if durations is None:
            durations = self.durations[label] = Histogram(DURATION_BUCKETS)
        # `Histogram.observe`, written out because each forwarded query is counted here.
        durations.counts[bisect_left(DURATION_BUCKETS, seconds)] += 1
        durations.sum += seconds

    def replied_since(self, now: float) -> bool:
        """Whether replies to any directive have arrived since the previous call by any. `now` becomes `checked`."""
        replies = sum(durations.count() for durations in self.durations.values())
        replied, self.replies, self.checked = replies != self.replies, replies, now
        return replied


class ForwardCounts:
    """Counters of all `forward` directives; one object per process, so that a reload keeps the counts."""

    __slots__ = ("healthcheck_broken", "max_concurrent_rejects", "upstreams")

    def __init__(self) -> None:
        self.healthcheck_broken = 0  # times that a query found all upstreams of its directive down
        self.max_concurrent_rejects = 0
        self.upstreams: dict[str, UpstreamCounts] = {}  # by name

    def upstream(self, name: str) -> UpstreamCounts:
        """The counters of this address, created at the first call."""
        return self.upstreams.setdefault(name, UpstreamCounts())


class UpstreamHealth:
    """Health of one upstream: down once more than `max_fails` probes in a row fail; 0 means never down, and no probes.

    `changed` is called when `down` or `suspected` may have changed.
    """

    def __init__(
        self,
        upstream: Upstream,
        transport: Transport,
        check: HealthCheck,
        max_fails: int,
        timers: Timers,
        counts: UpstreamCounts,
        changed: Callable[[], None],
    ) -> None:
        self._upstream = upstream
        self._transport = transport
        self.message = probe_message(check)
        self._interval = max(check.interval, MIN_INTERVAL)
        self._max_fails = max_fails
        self._timers = timers
        self._counts = counts
        self._changed = changed
        self._probing = False
        self._closed = False
        self._timer: Timer | None = None
        self.fails = 0  # probes that failed since the latest reply of the upstream
        self.suspected = False  # a query or a probe has failed, and no reply has arrived since

    @property
    def down(self) -> bool:
        return self.fails > self._max_fails > 0

    def suspect(self) -> None:
        """After a failed query: probe now and repeatedly until a probe is answered, unless that is in progress.

        With `max_fails` 0 only `reachable` is set. Without effect after `close`.
        """
        if self._closed:
            return
        if not self._max_fails:
            self._counts.reachable = False  # no probe will find out
        elif not self._probing:
            self._probing = True
            self.suspected = True
            self._changed()
            self._probe()

    def check_idle(self) -> None:
        """Suspect the upstream, and so probe it, unless it has replied since the previous check, or `max_fails` is 0.

        All directives that use this upstream share the checks: those soon after that of another directive do nothing.
        """
        now = self._timers.time()
        counts = self._counts
        if now - counts.checked < IDLE_CHECK_INTERVAL / 2:
            return  # another directive with this upstream has checked
        if not counts.replied_since(now) and self._max_fails:
            self.suspect()

    def answered(self) -> None:
        """A reply, of any rcode, to a probe or query arrived: the upstream is reachable, neither suspected nor down."""
        if self.suspected:
            self.suspected, self.fails = False, 0
            self._changed()
        if not self._counts.reachable and not self._closed:
            self._counts.reachable = True

    def close(self) -> None:
        """Stop the probes; `UpstreamCounts.reachable` is unknown again."""
        self._closed = True
        self._counts.reachable, self._counts.checked = None, -inf
        if self._timer is not None:
            self._timer.cancel()

    def _probe(self) -> None:
        self._upstream.exchange(_Probe(self), self._transport, PROBE_TIMEOUT, self._timers.time())

    def probed(self, result: bytes | Failure) -> None:
        """Take the result of a probe."""
        if isinstance(result, bytes):
            self._probing = False
            self.answered()
            return
        self._counts.healthcheck_failures += 1
        if not self._closed:
            self._counts.reachable = False
        self.fails += 1
        self.suspected = True
        self._changed()
        if not self._closed:
            self._timer = self._timers.call_later(self._interval, self._probe)


def probe_message(check: HealthCheck) -> bytes:
    """The query of a health check: `domain IN NS`."""
    header = pack_header_without_id(Flag.RD if check.recursion_desired else 0, 1, 0, 0, 0)
    return header + name_wire(check.domain) + pack_question_tail(RRType.NS, RRClass.IN)


class _Probe(UpstreamQuery):
    """One query of a health check."""

    __slots__ = ("_health",)

    def __init__(self, health: UpstreamHealth) -> None:
        self.message, self.question = health.message, health.message[QUESTION_AT:]
        self.carrier = self.twin = None
        self._health = health

    def on_reply(self, result: bytes | Failure) -> None:
        self._health.probed(result)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One upstream with its health and its counters."""

    name: str
    upstream: Upstream
    transports: tuple[Transport, Transport]  # for queries over UDP and over TCP; with TLS or HTTPS, twice that
    health: UpstreamHealth
    counts: UpstreamCounts

    def answered(self, rcode: int, seconds: float) -> None:
        """Count a reply that took `seconds`; the upstream is reachable."""
        counts = self.counts
        counts.replied(rcode, seconds)
        if self.health.suspected or not counts.reachable:
            self.health.answered()


_ENCRYPTED: Final = {UpstreamTransport.TLS: Transport.TLS, UpstreamTransport.HTTPS: Transport.HTTPS}

Choice = Callable[[Sequence[Candidate]], Candidate]
"""Picks one of the given candidates, of which there is at least one."""


class UpstreamPool:
    """`candidates` in the order of the directive; those that are up are kept in a tuple of their own for speed.

    A suspected upstream is chosen only after all others that are up, since a query to it would probably wait for a
    timeout. Not so with `sequential`, where the directive gives the order.
    """

    def __init__(
        self,
        settings: Forward,
        upstreams: Sequence[Upstream],
        timers: Timers,
        rng: Random,
        counts: ForwardCounts,
    ) -> None:
        self._rng = rng
        self._choose = _choice(settings.policy, rng)
        # CoreDNS advances its turn once a query: a retry takes the others in the order of the directive.
        self._choose_again = _first if settings.policy is UpstreamPolicy.ROUND_ROBIN else self._choose
        self.candidates = tuple(
            self._candidate(settings, _ENCRYPTED.get(address.transport), upstream, timers, counts)
            for address, upstream in zip(settings.upstreams, upstreams, strict=True)
        )
        self._up = self._preferred = self.candidates
        self._alike = settings.policy is not UpstreamPolicy.SEQUENTIAL
        self.only = self.candidates[0] if len(self.candidates) == 1 else None  # None where there is a choice
        self._timers = timers
        self._next_check: Timer | None = None

    def _candidate(
        self,
        settings: Forward,
        encrypted: Transport | None,
        upstream: Upstream,
        timers: Timers,
        counts: ForwardCounts,
    ) -> Candidate:
        counted = counts.upstream(upstream.name)
        transport = encrypted or (Transport.TCP if settings.force_tcp else Transport.UDP)
        check, max_fails = settings.health_check, settings.max_fails
        health = UpstreamHealth(
            upstream=upstream,
            transport=transport,
            check=check,
            max_fails=max_fails,
            timers=timers,
            counts=counted,
            changed=self._health_changed,
        )
        transports = (transport, transport) if encrypted else (Transport.UDP, Transport.TCP)
        return Candidate(name=upstream.name, upstream=upstream, transports=transports, health=health, counts=counted)

    def pick(self, tried: Collection[Candidate]) -> Candidate | None:
        """A candidate that is up and not in `tried`, by the policy; None if there is none."""
        if not tried:
            return self._choose(self._preferred) if self._preferred else None
        for among in (self._preferred, self._up):
            left = [each for each in among if each not in tried]
            if left:
                return self._choose_again(left)
        return None

    def pick_any(self) -> Candidate:
        """A random candidate, up or down: if all are down, the health check itself may be broken."""
        return self._rng.choice(self.candidates)

    @property
    def all_down(self) -> bool:
        return not self._up

    def watch(self) -> None:
        """Check idle upstreams now and every IDLE_CHECK_INTERVAL seconds until `close`."""
        for candidate in self.candidates:
            candidate.health.check_idle()
        self._next_check = self._timers.call_later(IDLE_CHECK_INTERVAL, self.watch)

    def close(self) -> None:
        if self._next_check is not None:
            self._next_check.cancel()
        for candidate in self.candidates:
            candidate.health.close()

    def _health_changed(self) -> None:
        self._up = tuple(each for each in self.candidates if not each.health.down)
        trusted = tuple(each for each in self._up if not (self._alike and each.health.suspected))
        self._preferred = trusted or self._up
        self.only = self._preferred[0] if len(self._preferred) == 1 else None


def _choice(policy: UpstreamPolicy, rng: Random) -> Choice:
    match policy:
        case UpstreamPolicy.SEQUENTIAL:
            return _first
        case UpstreamPolicy.ROUND_ROBIN:
            return _RoundRobin()
        case UpstreamPolicy.RANDOM:
            chance = rng.random  # and not rng.choice, which takes five times as long
            return lambda candidates: candidates[int(chance() * len(candidates))]


def _first(candidates: Sequence[Candidate]) -> Candidate:
    return candidates[0]


class _RoundRobin:
    """Candidates in turn: call n picks number n modulo how many are given."""

    def __init__(self) -> None:
        self._turn = 0

    def __call__(self, candidates: Sequence[Candidate]) -> Candidate:
        self._turn += 1
        return candidates[self._turn % len(candidates)]
