"""How sockets and queries are treated: `timeouts`, `cancel`, `multisocket`; and what has little meaning here."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.keys import parse_origins
from topodns.config.values import (
    duration,
    fold_options,
    listen_address,
    no_args,
    no_body,
    once_each,
    only_arg,
    whole,
    wrong,
)
from topodns.settings.server import Address, Timeouts

DEFAULT_CANCEL: Final = 5.001  # seconds; CoreDNS's

_SHORTEST, _LONGEST = 1.0, 86_400.0  # seconds; CoreDNS's limits
_UNLIMITED: Final = "-1"
_MANY: Final = 2**31 - 1
_MAX_SOCKETS: Final = 1024  # CoreDNS's
_PPROF: Final = Address("localhost", 6053)


def parse_timeouts(directive: Directive, _: Context) -> Timeouts:
    """`timeouts { read|write|idle DURATION; maxtcpqueries N }`, at least one of them."""

    no_args(directive)
    if not directive.body:
        raise directive.error("'timeouts' has no line, expected read, write, idle or maxtcpqueries")
    once_each(directive)
    return fold_options(directive, Timeouts(), _TIMEOUTS)


def _seconds(option: Directive) -> float:
    """A duration, or bare seconds."""
    text = only_arg(option, "a duration")
    seconds = float(text) if text.isascii() and text.isdecimal() else duration(option, text)
    if not _SHORTEST <= seconds <= _LONGEST:
        raise option.error(f"'{option.name}' has {text}, expected a duration from 1s to 24h")
    return seconds


def _max_queries(option: Directive) -> int:
    text = only_arg(option, "a number of queries, or -1")
    return 0 if text == _UNLIMITED else whole(option, text, 1, _MANY)


_TIMEOUTS: Final[Mapping[str, Callable[[Directive, Timeouts], Timeouts]]] = {
    "read": lambda option, timeouts: replace(timeouts, read=_seconds(option)),
    "write": lambda option, timeouts: replace(timeouts, write=_seconds(option)),
    "idle": lambda option, timeouts: replace(timeouts, idle=_seconds(option)),
    "maxtcpqueries": lambda option, timeouts: replace(timeouts, max_queries=_max_queries(option)),
}


def parse_cancel(directive: Directive, _: Context) -> float:
    """`cancel [TIMEOUT]`: seconds that a query may take in all."""
    no_body(directive)
    if not directive.args:
        return DEFAULT_CANCEL
    seconds = duration(directive, only_arg(directive, "one duration at most"))
    if seconds <= 0:
        raise directive.error(f"'cancel' has {directive.args[0]}, expected a duration above 0")
    return seconds


def parse_metadata(directive: Directive, _: Context) -> bool:
    """`metadata [ZONES...]`: what it gathers in CoreDNS is known here without it. Read, checked, and without effect."""
    no_body(directive)
    parse_origins(directive, directive.args)
    return True


def parse_multisocket(directive: Directive, _: Context) -> int:
    """`multisocket [NUM_SOCKETS]`: how many sockets were asked for; 0 stands for as many as there are cores."""
    no_body(directive)
    if not directive.args:
        return 0
    return whole(directive, only_arg(directive, "one number at most"), 1, _MAX_SOCKETS)


def parse_pprof(directive: Directive, _: Context) -> Address:
    """`pprof [ADDRESS] { block [RATE] }`: Go's profiles. Read, checked, and without effect here."""

    def block(option: Directive, address: Address) -> Address:
        no_body(option)
        if len(option.args) > 1:
            raise wrong(option, "one rate at most")
        if option.args:
            whole(option, option.args[0], 0, _MANY)
        return address

    return fold_options(directive, listen_address(directive, _PPROF), {"block": block})
