"""The settings and parser of the `file` directive, with CoreDNS's options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from topodns.corefile.arguments import duration, flag, fold_options, no_body, once_each, only_arg, some_args
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.dns.name import ROOT, Name
from topodns.plugins.context import Context


@dataclass(frozen=True, slots=True)
class ZoneFile:
    """One `file` directive with all its origins; a server block may have several."""

    path: str  # need not exist, unless `reload` is 0
    origins: tuple[Name, ...]  # the file is parsed once for each, with the origin as its $ORIGIN
    reload: float = 60.0  # seconds between checks of the file; 0: never
    fallthrough: tuple[Name, ...] = ()  # origins below which an unknown name goes to the next plugin; root: all


_DROPPED: Final = {  # options that CoreDNS has removed
    "no_reload": "CoreDNS dropped it in 1.5; write `reload 0`",
    "transfer": "CoreDNS dropped it in 1.8; leave it out: transfers are REFUSED",
}


def parse_file(directive: Directive, context: Context) -> tuple[ZoneFile, ...]:
    """`file DBFILE [ZONES...]`. The file is not checked here and need not exist yet."""
    path, *words = some_args(replace(directive, body=()), "a file, and perhaps zones")
    once_each(directive)
    origins = parse_origins(directive, words) or context.origins
    settings = ZoneFile(context.path(directive, path), origins)
    return (fold_options(directive, settings, _READERS, dropped=_DROPPED),)


def _reload(option: Directive, settings: ZoneFile) -> ZoneFile:
    return replace(settings, reload=duration(option, only_arg(option, "a duration")))


def _reload_by_mtime(option: Directive, settings: ZoneFile) -> ZoneFile:
    """Without effect: the file's mtime is always checked."""
    flag(option)
    return settings


def _fallthrough(option: Directive, settings: ZoneFile) -> ZoneFile:
    no_body(option)
    return replace(settings, fallthrough=parse_origins(option, option.args) or (ROOT,))


def _upstream(option: Directive, settings: ZoneFile) -> ZoneFile:
    """Without effect, as in CoreDNS since 1.7; old Corefiles have it."""
    no_body(option)
    return settings


_READERS: Final[Mapping[str, Callable[[Directive, ZoneFile], ZoneFile]]] = {
    "reload": _reload,
    "reload_by_mtime": _reload_by_mtime,
    "fallthrough": _fallthrough,
    "upstream": _upstream,
}
