"""Health check of an upstream: healthy until a client's query fails, then probed until it answers again."""

from collections.abc import Callable
from math import inf
from typing import Final

from topodns.plugins.forward.counts import UpstreamCounts
from topodns.plugins.forward.messages import QUESTION_AT, probe_message
from topodns.plugins.forward.settings import HealthCheck
from topodns.query.deferred import Timer, Timers
from topodns.query.upstream import Failure, Transport, Upstream, UpstreamQuery

PROBE_TIMEOUT: Final = 1.0  # seconds, as in CoreDNS
MIN_INTERVAL: Final = 0.1  # seconds between probes: `health_check 0` must not flood the upstream
IDLE_CHECK_INTERVAL: Final = 30.0  # seconds between two calls of `UpstreamHealth.check_idle`


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


class _Probe(UpstreamQuery):
    """One query of a health check."""

    __slots__ = ("_health",)

    def __init__(self, health: UpstreamHealth) -> None:
        self.message, self.question = health.message, health.message[QUESTION_AT:]
        self.carrier = self.twin = None
        self._health = health

    def on_reply(self, result: bytes | Failure) -> None:
        self._health.probed(result)
