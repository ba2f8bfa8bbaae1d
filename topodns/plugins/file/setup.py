"""The parser of the `file` directive, with CoreDNS's options, and its place in a server block."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from topodns.corefile.arguments import duration, flag, fold_options, no_body, once_each, only_arg, some_args
from topodns.corefile.parser import Directive
from topodns.corefile.zones import fallthrough, parse_origins
from topodns.dns.rrtype import ADDRESS_TYPES, Rcode
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.file.handler import ZoneFileStep
from topodns.plugins.file.settings import ZoneFile
from topodns.plugins.file.source import ZoneFileSource
from topodns.plugins.plugin import Plugin, all_origins
from topodns.plugins.setup import BlockListener, BlockSetup, Install
from topodns.query.plugin import ChainPart

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
    return replace(settings, fallthrough=fallthrough(option))


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


def _setup(settings: tuple[ZoneFile, ...], block: BlockSetup) -> Install:
    sources = [ZoneFileSource(each) for each in settings]
    for source in sources:
        source.load()
        block.watch_changing(source)

    def install(listener: BlockListener) -> Iterator[ChainPart]:
        for each, source in zip(settings, sources, strict=True):
            yield ChainPart(step=ZoneFileStep(each, source.table, listener.chase))

    return install


PLUGIN: Final = Plugin(
    name="file",
    coredns=differs(Effect.ANSWER, "without DNSSEC; every change of the file counts, whatever its SOA's serial is"),
    parse=parse_file,
    zones=all_origins,
    setup=_setup,
    adds_up=True,
    spells=ADDRESS_TYPES,
    unanswered=Rcode.REFUSED,
)
