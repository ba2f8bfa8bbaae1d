"""Parsers of directive arguments: numbers, durations, networks, addresses, words from a list.

The parsers take the directive, for the file and line of an error, and raise ConfigError. `expected` is the text that a
message has after "expected".
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_address
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from topodns.corefile.errors import ConfigError, hint, listed, nearest, shown
from topodns.corefile.parser import Directive
from topodns.dns.addresses import unmapped_network
from topodns.dns.rrtype import QTYPES, parse_qtype

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class Address:
    """A listen address. `host` "" is all addresses of both families. `owner`: `FILE:LINE: 'DIRECTIVE'`, "" for none."""

    host: str
    port: int
    owner: str = field(default="", compare=False)


T = TypeVar("T")
S = TypeVar("S", bound="DataclassInstance")
Network = IPv4Network | IPv6Network

MAX_PORT: Final = 65_535
_WHOLE: Final = re.compile(r"[0-9]{1,18}")
_DURATION: Final = re.compile(r"(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+|0")
_DURATION_PART: Final = re.compile(r"([0-9.]+)([a-zµμ]+)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_DURATION: Final = 2.0**63 / 1e9  # seconds: the maximum of Go's time.Duration
_PREFIX: Final = re.compile(r"([0-9A-Fa-f:.]+)(/[0-9]{1,3})?")
_NO_NAME: Final = re.compile(r"[0-9.]+|.*[^-0-9A-Za-z_.].*")
_HOST_PORT: Final = re.compile(r"(?:\[(?P<bracketed>[^\[\]]*)\]|(?P<host>[^\[\]:]*)):(?P<port>[0-9]{1,18})")


def wrong(directive: Directive, expected: str) -> ConfigError:
    """The error to raise for a directive whose arguments are not what `expected` describes."""
    found = f"the arguments {shown(' '.join(directive.args))}" if directive.args else "no argument"
    return directive.error(f"'{directive.name}' has {found}, expected {expected}")


def no_args(directive: Directive) -> None:
    if directive.args:
        raise wrong(directive, "none")


def once_each(directive: Directive, adding_up: Collection[str] = ()) -> None:
    """Raise ConfigError if the body has an option twice, except options in `adding_up`, whose occurrences add up."""
    first: dict[str, Directive] = {}
    for option in directive.body:
        earlier = first.setdefault(option.name, option)
        if earlier is not option and option.name not in adding_up:
            raise option.error(f"found {option.shown_name()} again, first at {earlier.file}:{earlier.line}")


def no_body(directive: Directive) -> None:
    if directive.body:
        line = directive.body[0]
        raise line.error(f"found {line.shown_name()}, but {directive.shown_name()} has no options{line.missing_brace}")


def only_arg(directive: Directive, expected: str) -> str:
    """The only argument. Raises ConfigError unless the directive has exactly one, and no body."""
    no_body(directive)
    if len(directive.args) != 1:
        raise wrong(directive, expected)
    return directive.args[0]


def some_args(directive: Directive, expected: str) -> tuple[str, ...]:
    """The arguments. Raises ConfigError unless the directive has at least one, and no body."""
    no_body(directive)
    if not directive.args:
        raise wrong(directive, expected)
    return directive.args


def flag(directive: Directive) -> None:
    """Raise ConfigError if the directive has arguments or a body."""
    no_args(directive)
    no_body(directive)


def switch(field: str, to: bool = True) -> Callable[[Directive, S], S]:
    """A reader, for `fold_options`, of an option without arguments and body, which sets `field` of the settings."""

    def read(option: Directive, settings: S) -> S:
        flag(option)
        return replace(settings, **{field: to})

    return read


def unknown_option(
    option: Directive,
    owner: str,
    known: Collection[str],
    elsewhere: Collection[str] = (),
    dropped: Mapping[str, str] = MappingProxyType({}),
) -> ConfigError:
    """The error to raise for an option that the directive `owner` does not have; `known`: the options that it has.

    `elsewhere`: options that only CoreDNS has; `dropped`: CoreDNS options not supported here, with advice for each.
    """
    if option.name in dropped:
        return option.error(f"topodns has no option '{option.name}' of '{owner}': {dropped[option.name]}")
    if option.name in elsewhere:
        return option.error(f"CoreDNS has the option '{option.name}' of '{owner}', topodns does not")
    return option.error(
        f"unknown option {option.shown_name(known)} of '{owner}'{hint(option.name, known)}{option.missing_brace}"
    )


def fold_options(
    directive: Directive,
    settings: T,
    readers: Mapping[str, Callable[[Directive, T], T]],
    elsewhere: Collection[str] = (),
    dropped: Mapping[str, str] = MappingProxyType({}),
) -> T:
    """The settings after all options of the body: in order, the reader of each makes new settings of those so far.

    Raises ConfigError for an option without a reader (`elsewhere`, `dropped`: as in `unknown_option`).
    """
    for option in directive.body:
        reader = readers.get(option.name)
        if reader is None:
            raise unknown_option(option, directive.name, readers, elsewhere, dropped)
        settings = reader(option, settings)
    return settings


def whole(directive: Directive, text: str, low: int, high: int) -> int:
    """The whole number in `text`. Raises ConfigError unless it is one from `low` to `high`, both included."""
    if _WHOLE.fullmatch(text) and low <= int(text) <= high:
        return int(text)
    raise directive.error(f"'{directive.name}' has {shown(text)}, expected a whole number from {low} to {high}")


def duration(directive: Directive, text: str) -> float:
    """Seconds, at least 0, of a duration in Go's spelling: `30s`, `1m30s`, `500ms`, `0`.

    Raises ConfigError for other texts, and for 2**63 ns or more (292 years), which Go cannot represent.
    """
    if _DURATION.fullmatch(text):
        parts = _DURATION_PART.findall(text)
        seconds = sum((float(number) * _SECONDS[unit] for number, unit in parts), 0.0)
        if seconds < _LONGEST_DURATION:
            return round(seconds, 9)
    raise directive.error(f"'{directive.name}' has {shown(text)}, expected a duration such as 5s, 1m30s or 500ms")


def is_duration(text: str) -> bool:
    """Whether `duration` takes this text for one with a unit."""
    return text != "0" and _DURATION.fullmatch(text) is not None


def parse_network(text: str) -> Network | None:
    """The network of a text `ADDRESS/LENGTH` (bits after the prefix are dropped) or `ADDRESS`; None for other texts.

    IPv4-mapped addresses give an IPv4 network, as in `unmapped_network`.
    """
    if not _PREFIX.fullmatch(text):
        return None
    try:
        return unmapped_network(text)
    except ValueError:
        return None


def network(directive: Directive, text: str) -> Network:
    found = parse_network(text)
    if found is None:
        expected = expected_network(text, "an address or ADDRESS/LENGTH")
        raise directive.error(f"'{directive.name}' has {shown(text)}, expected {expected}")
    return found


def expected_network(text: str, form: str) -> str:
    """What a message expects in place of `text`, of which `parse_network` makes nothing: `form`, or only another prefix
    length where the address is valid.
    """
    address, _, length = text.partition("/")
    if not length.isdecimal() or parse_network(address) is None:
        return form
    return f"a prefix length from 0 to {128 if ':' in address else 32}"


def networks(directive: Directive) -> tuple[Network, ...]:
    """All arguments, as networks. Raises ConfigError unless there is at least one, and no body."""
    return tuple(network(directive, text) for text in some_args(directive, "addresses or ADDRESS/LENGTH"))


def listen_address(directive: Directive, default: Address) -> Address:
    """The address in the only argument, `HOST:PORT` or `:PORT` (all addresses); `default` without an argument.

    HOST may be a name, which is resolved when the address is opened. Raises ConfigError for other or more arguments.
    """
    owner = f"{directive.place if directive.line else directive.file}: {directive.name!r}"
    if not directive.args:
        return replace(default, owner=owner)
    match = _HOST_PORT.fullmatch(directive.args[0])
    if len(directive.args) > 1 or match is None:
        meant = f"; did you mean ':{directive.args[0]}'?" if _WHOLE.fullmatch(" ".join(directive.args)) else ""
        raise wrong(directive, f"one address HOST:PORT or :PORT at most{meant}")
    if int(match["port"]) > MAX_PORT:
        raise directive.error(
            f"'{directive.name}' has {shown(directive.args[0])}, expected a port from 1 to {MAX_PORT}"
        )
    host = match["bracketed"] or match["host"] or ""
    if (match["bracketed"] is not None or _NO_NAME.fullmatch(host)) and not _is_address(host):
        raise directive.error(f"'{directive.name}' has {shown(directive.args[0])}, expected an IP address or a name")
    return Address(host, int(match["port"]), owner)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def choice(directive: Directive, text: str, choices: Mapping[str, T]) -> T:
    """The value of the word `text` in `choices`. Raises ConfigError for any other word."""
    if text not in choices:
        raise directive.error(f"'{directive.name}' has {shown(text)}{hint(text, choices)}")
    return choices[text]


def only_choice(directive: Directive, choices: Mapping[str, T]) -> T:
    """The value in `choices` of the only argument. Raises ConfigError as `choice` and `only_arg` do."""
    return choice(directive, only_arg(directive, listed(choices)), choices)


def record_type(text: str, error: Callable[[str], ConfigError]) -> int:
    """The type of a mnemonic, in any case, or of TYPE<number>. Otherwise raises what `error` makes of a message."""
    rtype = parse_qtype(text)
    if rtype is None:
        near = nearest(text, [name.lower() for name in QTYPES])
        known = f"did you mean '{near.upper()}'?" if near else "expected a name such as AAAA or a number such as TYPE65"
        raise error(f"unknown record type {shown(text)}, {known}")
    return rtype
