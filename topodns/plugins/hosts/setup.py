"""The settings and parser of the `hosts` directive."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from topodns.corefile.arguments import duration, flag, no_body, once_each, only_arg, whole
from topodns.corefile.errors import ConfigError, listed, nearest, shown_word
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.dns.name import ROOT, Name
from topodns.plugins.context import Context
from topodns.plugins.hosts.table import BadHostsLine, HostEntry, parse_address, parse_hosts_line

DEFAULT_HOSTS_FILE = "/etc/hosts"


@dataclass(frozen=True, slots=True)
class Hosts:
    origins: tuple[Name, ...]  # names outside are ignored; reverse names need not be inside
    file: str = DEFAULT_HOSTS_FILE  # need not exist
    inline: tuple[HostEntry, ...] = ()
    ttl: int = 3600  # seconds, 1..65535
    reverse: bool = True  # answer PTR
    reload: float = 5.0  # seconds between checks of the file; 0: never
    fallthrough: tuple[Name, ...] = ()  # origins below which an unknown name goes to the next plugin; root: all
    fallthrough_unsupported: bool = False  # there, types other than A, AAAA and PTR do so even for a known name


_MAX_TTL: Final = 65_535  # CoreDNS's limit


def parse_hosts(directive: Directive, context: Context) -> Hosts:
    """`hosts [FILE [ZONES...]] { ... }`. A line that starts with an address is an entry. The file need not exist."""
    file, *origins = directive.args or (DEFAULT_HOSTS_FILE,)
    settings = Hosts(parse_origins(directive, origins) or context.origins, context.path(directive, file))
    once_each(replace(directive, body=tuple(line for line in directive.body if line.name in _OPTIONS)))
    for line in directive.body:
        reader = _OPTIONS.get(line.name)
        settings = _entry(line, settings) if reader is None else reader(line, settings)
    if settings.fallthrough_unsupported and not settings.fallthrough:
        raise directive.error("'fallthrough_unsupported' widens 'fallthrough', but there is none")
    return settings


def _entry(line: Directive, settings: Hosts) -> Hosts:
    no_body(line)
    try:
        parse_address(line.name.encode())
    except BadHostsLine:
        raise _no_entry(line) from None
    if settings.fallthrough:
        raise line.error("found an entry after 'fallthrough', expected it before, as CoreDNS does")
    try:
        entry = parse_hosts_line(" ".join((line.name, *line.args)).encode())
    except BadHostsLine as problem:
        raise line.error(str(problem)) from None
    return settings if entry is None else replace(settings, inline=(*settings.inline, entry))


def _no_entry(line: Directive) -> ConfigError:
    """The error for a line whose first word is neither an address nor an option."""
    if "." in line.name or ":" in line.name:
        return line.error(f"found {shown_word(line.name)}, expected an IP address and its names")
    near = nearest(line.name, _OPTIONS)
    options = f"; did you mean '{near}'?" if near else f": {listed(_OPTIONS)}"
    return line.error(f"found {shown_word(line.name)}, expected an address and its names, or an option{options}")


def _ttl(option: Directive, settings: Hosts) -> Hosts:
    return replace(settings, ttl=whole(option, only_arg(option, "seconds"), 1, _MAX_TTL))


def _no_reverse(option: Directive, settings: Hosts) -> Hosts:
    flag(option)
    return replace(settings, reverse=False)


def _reload(option: Directive, settings: Hosts) -> Hosts:
    return replace(settings, reload=duration(option, only_arg(option, "a duration, 0 to switch it off")))


def _fallthrough(option: Directive, settings: Hosts) -> Hosts:
    return replace(settings, fallthrough=parse_origins(option, option.args) or (ROOT,))


def _fallthrough_unsupported(option: Directive, settings: Hosts) -> Hosts:
    flag(option)
    return replace(settings, fallthrough_unsupported=True)


_OPTIONS: Final[Mapping[str, Callable[[Directive, Hosts], Hosts]]] = {
    "ttl": _ttl,
    "no_reverse": _no_reverse,
    "reload": _reload,
    "fallthrough": _fallthrough,
    "fallthrough_unsupported": _fallthrough_unsupported,
}
