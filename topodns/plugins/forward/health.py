"""Whether an upstream answers: believed until a question of a client fails, then probed until it does again."""

from collections.abc import Callable
from math import inf
from typing import Final

from topodns.dns.wire import HEADER_SIZE
from topodns.resolve.course import Timer, Timers
from topodns.resolve.exchange import Failure, Transport, Upstream
from topodns.resolve.forward.counts import UpstreamCounts
from topodns.resolve.forward.outgoing import probe_message
from topodns.settings.forward import HealthCheck

PROBE_TIMEOUT: Final = 1.0  # seconds, as in CoreDNS
MIN_INTERVAL: Final = 0.1  # seconds: `health_check 0` must not become a flood
LOOK_INTERVAL: Final = 30.0  # seconds without a reply after which an upstream is probed, where somebody wants to know


class Health:
    """Of one upstream. It is down once more than `max_fails` probes in a row have failed; 0 means never, and no probes.

    `changed` is called when it goes down and when it comes back.
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
        self._message = probe_message(check)
        self._interval = max(check.interval, MIN_INTERVAL)
        self._max_fails = max_fails
        self._timers = timers
        self._counts = counts
        self._changed = changed
        self._probing = False
        self._closed = False
        self._timer: Timer | None = None
        self.fails = 0  # probes that failed since the upstream last answered anything

    @property
    def down(self) -> bool:
        return self.fails > self._max_fails > 0

    def suspect(self) -> None:
        """A question has failed: probe at once, and on until a probe is answered, unless that goes on already."""
        if self._closed:
            return
        if not self._max_fails:
            self._counts.reachable = False  # there will be no probe to ask
        elif not self._probing:
            self._probing = True
            self._probe()

    def look(self) -> None:
        """Probe an upstream that nobody has heard of since the last look, by whichever directive."""
        now = self._timers.time()
        counts = self._counts
        if now - counts.looked < LOOK_INTERVAL / 2:
            return  # another directive that asks it has looked
        if not counts.heard_since(now) and self._max_fails:
            self.suspect()

    def answered(self) -> None:
        """A reply came, to a probe or a question: whatever it says, somebody is there."""
        if self.fails:
            self._set_fails(0)
        if not self._counts.reachable and not self._closed:
            self._counts.reachable = True

    def close(self) -> None:
        """Probe no more."""
        self._closed = True
        self._counts.reachable, self._counts.looked = None, -inf
        if self._timer is not None:
            self._timer.cancel()

    def _probe(self) -> None:
        message = self._message
        self._upstream.exchange(message, message[HEADER_SIZE:], self._transport, PROBE_TIMEOUT, self._probed)

    def _probed(self, result: bytes | Failure) -> None:
        if isinstance(result, bytes):
            self._probing = False
            self.answered()
            return
        self._counts.healthcheck_failures += 1
        if not self._closed:
            self._counts.reachable = False
        self._set_fails(self.fails + 1)
        if not self._closed:
            self._timer = self._timers.call_later(self._interval, self._probe)

    def _set_fails(self, fails: int) -> None:
        was_down = self.down
        self.fails = fails
        if self.down != was_down:
            self._changed()
