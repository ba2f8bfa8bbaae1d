"""The `timeouts` directive: how long clients' TCP connections may take to send, to read and to stay idle."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from topodns.corefile.arguments import duration, fold_options, no_args, once_each, only_arg, whole
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds after which a client's TCP connection is closed.

    `read`: since an incomplete message began; `write`: since the client stopped reading; `idle`: since the last message
    or reply.
    """

    read: float = 3.0
    write: float = 5.0
    idle: float = 10.0
    max_queries: int = 0  # per connection, which is then closed; 0: unlimited


_SHORTEST, _LONGEST = 1.0, 86_400.0  # seconds; CoreDNS's limits
_UNLIMITED: Final = "-1"
MANY: Final = 2**31 - 1


def parse_timeouts(directive: Directive, _: Context) -> Timeouts:
    """`timeouts { read|write|idle DURATION; maxtcpqueries N }`, at least one of them. Raises ConfigError."""

    no_args(directive)
    if not directive.body:
        raise directive.error("'timeouts' has no line, expected read, write, idle or maxtcpqueries")
    once_each(directive)
    return fold_options(directive, Timeouts(), _TIMEOUTS)


def _seconds(option: Directive) -> float:
    """The seconds of the argument, a duration or a bare number of seconds. Raises ConfigError outside of 1s..24h."""
    text = only_arg(option, "a duration")
    seconds = float(text) if text.isascii() and text.isdecimal() else duration(option, text)
    if not _SHORTEST <= seconds <= _LONGEST:
        raise option.error(f"'{option.name}' has {text}, expected a duration from 1s to 24h")
    return seconds


def _max_queries(option: Directive) -> int:
    text = only_arg(option, "a number of queries, or -1")
    return 0 if text == _UNLIMITED else whole(option, text, 1, MANY)


_TIMEOUTS: Final[Mapping[str, Callable[[Directive, Timeouts], Timeouts]]] = {
    "read": lambda option, timeouts: replace(timeouts, read=_seconds(option)),
    "write": lambda option, timeouts: replace(timeouts, write=_seconds(option)),
    "idle": lambda option, timeouts: replace(timeouts, idle=_seconds(option)),
    "maxtcpqueries": lambda option, timeouts: replace(timeouts, max_queries=_max_queries(option)),
}


PLUGIN: Final = Plugin(
    name="timeouts",
    coredns=same(),
    parse=parse_timeouts,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
