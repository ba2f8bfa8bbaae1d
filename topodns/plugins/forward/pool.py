"""The upstreams of one directive: which of them are up, and which is asked next."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random

from topodns.resolve.course import Timer, Timers
from topodns.resolve.exchange import Transport, Upstream
from topodns.resolve.forward.counts import ForwardCounts, UpstreamCounts
from topodns.resolve.forward.health import LOOK_INTERVAL, Health
from topodns.settings.forward import Forward, Policy, UpstreamTransport


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One upstream with its health and its counts."""

    name: str
    upstream: Upstream
    transports: tuple[Transport, Transport]  # for a question that goes over UDP, and for one over TCP
    health: Health
    counts: UpstreamCounts


Choice = Callable[[Sequence[Candidate]], Candidate]
"""One of those given, of which there is at least one."""


class Pool:
    """`candidates` in the order of the directive; those that are up are kept apart, so that choosing costs little."""

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
        self.candidates = tuple(
            self._candidate(settings, address.transport is UpstreamTransport.TLS, upstream, timers, counts)
            for address, upstream in zip(settings.upstreams, upstreams, strict=True)
        )
        self._up = self.candidates
        self.only = self.candidates[0] if len(self.candidates) == 1 else None  # where there is no choice, and it is up
        self._timers = timers
        self._next_look: Timer | None = None

    def _candidate(
        self, settings: Forward, tls: bool, upstream: Upstream, timers: Timers, counts: ForwardCounts
    ) -> Candidate:
        counted = counts.upstream(upstream.name)
        transport = Transport.TLS if tls else Transport.TCP if settings.force_tcp else Transport.UDP
        check, max_fails = settings.health_check, settings.max_fails
        health = Health(upstream, transport, check, max_fails, timers, counted, self._health_changed)
        transports = (transport, transport) if tls else (Transport.UDP, Transport.TCP)
        return Candidate(upstream.name, upstream, transports, health, counted)

    def pick(self, tried: Collection[Candidate]) -> Candidate | None:
        """One that is up and was not tried, by the policy; None where there is none."""
        left = [each for each in self._up if each not in tried] if tried else self._up
        return self._choose(left) if left else None

    def pick_any(self) -> Candidate:
        """One at random, whatever is known about it: all being down may mean that the probes are what is broken."""
        return self._rng.choice(self.candidates)

    @property
    def all_down(self) -> bool:
        return not self._up

    def watch(self) -> None:
        """Find out now, and on until `close`, whether upstreams answer that nobody asks."""
        for candidate in self.candidates:
            candidate.health.look()
        self._next_look = self._timers.call_later(LOOK_INTERVAL, self.watch)

    def close(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        for candidate in self.candidates:
            candidate.health.close()

    def _health_changed(self) -> None:
        self._up = tuple(each for each in self.candidates if not each.health.down)
        self.only = self._up[0] if len(self._up) == 1 else None


def _choice(policy: Policy, rng: Random) -> Choice:
    match policy:
        case Policy.SEQUENTIAL:
            return lambda candidates: candidates[0]
        case Policy.ROUND_ROBIN:
            return _RoundRobin()
        case Policy.RANDOM:
            chance = rng.random  # and not rng.choice, which takes five times as long
            return lambda candidates: candidates[int(chance() * len(candidates))]


class _RoundRobin:
    """Each call the one after the last call's."""

    def __init__(self) -> None:
        self._turn = 0

    def __call__(self, candidates: Sequence[Candidate]) -> Candidate:
        self._turn += 1
        return candidates[self._turn % len(candidates)]
