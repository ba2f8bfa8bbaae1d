"""The `reload` directive: how often the process looks for a change of its Corefile."""

from dataclasses import dataclass
from typing import Final

from topodns.corefile.arguments import duration, no_body, wrong
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin


@dataclass(frozen=True, slots=True)
class Reload:
    interval: float = 30.0  # seconds
    jitter: float = 15.0


_MIN_INTERVAL: Final = 2.0  # seconds; CoreDNS's limits
_MIN_JITTER: Final = 1.0


def parse_reload(directive: Directive, _: Context) -> Reload | None:
    """`reload [INTERVAL] [JITTER]`; the jitter is at most half the interval. None: `reload off`."""
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


PLUGIN: Final = Plugin(
    name="reload",
    coredns=differs("health, ready and metrics listen on while it reloads, and a cluster that stays is kept"),
    parse=parse_reload,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
