"""The `cancel` directive: the time limit of a query."""

from typing import Final

from topodns.corefile.arguments import duration, no_body, only_arg
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin

DEFAULT_CANCEL: Final = 5.001  # seconds; CoreDNS's


def parse_cancel(directive: Directive, _: Context) -> float:
    """`cancel [TIMEOUT]`: seconds that a query may take in all, above 0; 5.001 without TIMEOUT. Raises ConfigError."""
    no_body(directive)
    if not directive.args:
        return DEFAULT_CANCEL
    seconds = duration(directive, only_arg(directive, "one duration at most"))
    if seconds <= 0:
        raise directive.error(f"'cancel' has {directive.args[0]}, expected a duration above 0")
    return seconds


PLUGIN: Final = Plugin(
    name="cancel",
    coredns=same(),
    parse=parse_cancel,
    fast_path=FastPath.ABSENT,
)
