"""The `reload` plugin: when the Corefile is read again, and whether the text read is loaded."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from topodns.corefile.arguments import duration, no_body, wrong
from topodns.corefile.errors import ConfigError
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reload:
    interval: float = 30.0  # seconds
    jitter: float = 15.0  # seconds; 0 for none


_MIN_INTERVAL: Final = 2.0  # seconds; CoreDNS's limits
_MIN_JITTER: Final = 1.0


def parse_reload(directive: Directive, _: Context) -> Reload | None:
    """`reload [INTERVAL] [JITTER]`; a jitter of more than half the interval becomes half of it. None: `reload off`.

    Raises ConfigError.
    """
    no_body(directive)
    if directive.args == ("off",):
        return None
    if len(directive.args) > 2:
        raise wrong(directive, "an interval and a jitter at most, or off")
    times = [duration(directive, text) for text in directive.args]
    interval, jitter = (*times, *(Reload().interval, Reload().jitter)[len(times) :])
    if interval < _MIN_INTERVAL:
        raise directive.error(f"'reload' has the interval {directive.args[0]}, expected at least 2s")
    if 0 < jitter < _MIN_JITTER:
        raise directive.error(f"'reload' has the jitter {directive.args[1]}, expected 0 or at least 1s")
    return Reload(interval, min(jitter, interval / 2))


_MIN_PAUSE: Final = 1.0  # seconds between two checks, whatever the jitter


@dataclass(frozen=True, slots=True)
class CorefileChecks:
    """Checks of the Corefile for changes, until cancelled.

    A Corefile is reported once: after `refused` or `changed` it is neither tried nor counted again before it has
    changed, even if it could not be served, as in CoreDNS.
    """

    read: Callable[[], str]  # `Settings.version` of the Corefile; raises ConfigError
    changed: Callable[[], object]  # called for a Corefile to load
    refused: Callable[[str], object]  # called with the problem of a Corefile that cannot be parsed
    rng: Random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self, times: Reload, active: str) -> None:
        """Check at these times until cancelled. `active`: the version of the Corefile in force, never loaded again."""
        seen = active  # the version of the last Corefile read, or its problem
        while True:
            await self.sleep(self._pause(times))
            before = seen
            try:
                seen = self.read()
            except ConfigError as problem:
                seen = str(problem)
                if seen != before:
                    self.refused(seen)
                continue
            if seen not in (before, active):
                self.changed()
            elif seen == active != before:
                log.info("plugin/reload: the Corefile is again the one in force")

    def _pause(self, times: Reload) -> float:
        """Seconds until the next check: the interval, plus or minus at most half the jitter; at least _MIN_PAUSE."""
        half = times.jitter / 2
        return max(_MIN_PAUSE, times.interval + self.rng.uniform(-half, half))


PLUGIN: Final = Plugin(
    name="reload",
    coredns=differs(
        Effect.NOTHING,
        "health, ready and metrics stay open during a reload, and an unchanged cluster is not read again",
    ),
    parse=parse_reload,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
