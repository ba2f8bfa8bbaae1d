"""Upstream pool of one directive: which upstreams are up, and which is asked next by the policy."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random

from topodns.plugins.forward.counts import ForwardCounts, UpstreamCounts
from topodns.plugins.forward.health import IDLE_CHECK_INTERVAL, UpstreamHealth
from topodns.plugins.forward.settings import Forward, UpstreamPolicy, UpstreamTransport
from topodns.query.deferred import Timer, Timers
from topodns.query.upstream import Transport, Upstream


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One upstream with its health and its counters."""

    name: str
    upstream: Upstream
    transports: tuple[Transport, Transport]  # for queries over UDP and over TCP; with TLS, twice TLS
    health: UpstreamHealth
    counts: UpstreamCounts

    def answered(self, rcode: int, seconds: float) -> None:
        """Count a reply that took `seconds`; the upstream is reachable."""
        counts = self.counts
        counts.replied(rcode, seconds)
        if self.health.suspected or not counts.reachable:
            self.health.answered()


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
            self._candidate(settings, address.transport is UpstreamTransport.TLS, upstream, timers, counts)
            for address, upstream in zip(settings.upstreams, upstreams, strict=True)
        )
        self._up = self._preferred = self.candidates
        self._alike = settings.policy is not UpstreamPolicy.SEQUENTIAL
        self.only = self.candidates[0] if len(self.candidates) == 1 else None  # None where there is a choice
        self._timers = timers
        self._next_check: Timer | None = None

    def _candidate(
        self, settings: Forward, tls: bool, upstream: Upstream, timers: Timers, counts: ForwardCounts
    ) -> Candidate:
        counted = counts.upstream(upstream.name)
        transport = Transport.TLS if tls else Transport.TCP if settings.force_tcp else Transport.UDP
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
        transports = (transport, transport) if tls else (Transport.UDP, Transport.TCP)
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
