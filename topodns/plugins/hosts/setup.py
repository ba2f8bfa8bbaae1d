"""The parser of the `hosts` directive, and its place in a server block."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from topodns.corefile.arguments import duration, no_body, once_each, only_arg, switch, whole
from topodns.corefile.errors import ConfigError, listed, nearest
from topodns.corefile.parser import Directive
from topodns.corefile.zones import fallthrough, parse_origins
from topodns.dns.rrtype import ADDRESS_TYPES
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.hosts.handler import HostNames
from topodns.plugins.hosts.metrics import readings
from topodns.plugins.hosts.settings import DEFAULT_HOSTS_FILE, Hosts
from topodns.plugins.hosts.source import HostsSource
from topodns.plugins.hosts.table import BadHostsLine, parse_address, parse_hosts_line
from topodns.plugins.plugin import Plugin, origins
from topodns.plugins.setup import BlockSetup, Install, everywhere
from topodns.query.plugin import ChainPart

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
        return line.error(f"found {line.shown_name()}, expected an IP address and its names")
    near = nearest(line.name, _OPTIONS)
    options = f"; did you mean '{near}'?" if near else f": {listed(_OPTIONS)}"
    expected = f"an address and its names, or an option{options}{line.missing_brace}"
    return line.error(f"found {line.shown_name(_OPTIONS)}, expected {expected}")


def _ttl(option: Directive, settings: Hosts) -> Hosts:
    return replace(settings, ttl=whole(option, only_arg(option, "seconds"), 1, _MAX_TTL))


def _reload(option: Directive, settings: Hosts) -> Hosts:
    return replace(settings, reload=duration(option, only_arg(option, "a duration, 0 to switch it off")))


def _fallthrough(option: Directive, settings: Hosts) -> Hosts:
    return replace(settings, fallthrough=fallthrough(option))


_OPTIONS: Final[Mapping[str, Callable[[Directive, Hosts], Hosts]]] = {
    "ttl": _ttl,
    "no_reverse": switch("reverse", to=False),
    "reload": _reload,
    "fallthrough": _fallthrough,
    "fallthrough_unsupported": switch("fallthrough_unsupported"),
}


def _setup(settings: Hosts, block: BlockSetup) -> Install:
    source = block.provide(HostsSource(settings))
    source.load()
    block.watch_changing(source)
    return everywhere(ChainPart(step=block.provide(HostNames(settings, source.table))))


PLUGIN: Final = Plugin(
    name="hosts",
    coredns=differs(Effect.ANSWER, "an address listed twice for one name is answered once"),
    parse=parse_hosts,
    zones=origins,
    setup=_setup,
    spells=ADDRESS_TYPES,
    metrics=readings,
)
