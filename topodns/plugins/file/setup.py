"""The `file` directive, option by option, as CoreDNS reads them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.keys import parse_origins
from topodns.config.values import duration, flag, fold_options, no_body, once_each, only_arg, some_args
from topodns.dns.names import ROOT
from topodns.settings.zone_file import ZoneFile

_DROPPED: Final = {  # options of CoreDNS's past
    "no_reload": "CoreDNS dropped it in 1.5; write `reload 0`",
    "transfer": "CoreDNS dropped it in 1.8; leave it out: transfers are REFUSED",
}


def parse_file(directive: Directive, context: Context) -> tuple[ZoneFile, ...]:
    """`file DBFILE [ZONES...]`. What is in the file is looked at when it is read; it need not be there yet."""
    path, *words = some_args(replace(directive, body=()), "a file, and perhaps zones")
    once_each(directive)
    origins = parse_origins(directive, words) or context.origins
    settings = ZoneFile(context.path(directive, path), origins)
    return (fold_options(directive, settings, _READERS, dropped=_DROPPED),)


def _reload(option: Directive, settings: ZoneFile) -> ZoneFile:
    return replace(settings, reload=duration(option, only_arg(option, "a duration")))


def _reload_by_mtime(option: Directive, settings: ZoneFile) -> ZoneFile:
    """As here always."""
    flag(option)
    return settings


def _fallthrough(option: Directive, settings: ZoneFile) -> ZoneFile:
    no_body(option)
    return replace(settings, fallthrough=parse_origins(option, option.args) or (ROOT,))


def _upstream(option: Directive, settings: ZoneFile) -> ZoneFile:
    """Without meaning in CoreDNS since 1.7, and still in old Corefiles."""
    no_body(option)
    return settings


_READERS: Final[Mapping[str, Callable[[Directive, ZoneFile], ZoneFile]]] = {
    "reload": _reload,
    "reload_by_mtime": _reload_by_mtime,
    "fallthrough": _fallthrough,
    "upstream": _upstream,
}
