"""The directive `metadata`, as in CoreDNS: the other plugins of its server block may read labels of each query."""

from collections.abc import Mapping
from typing import Any, Final

from topodns.corefile.arguments import no_body
from topodns.corefile.parser import Directive
from topodns.dns.name import Name
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin, load
from topodns.plugins.setup import BlockSetup
from topodns.query.metadata import Metadata, MetadataSource


def parse_metadata(directive: Directive, context: Context) -> tuple[Name, ...]:
    """`metadata [ZONES...]`: the zones, without any those of the server block. Raises ConfigError."""
    no_body(directive)
    return context.origins_of(directive)


def labels_read(settings: Mapping[str, Any]) -> frozenset[str]:
    """The labels that the directives of a server block read, by its settings; none without `metadata`."""
    if PLUGIN.name not in settings:
        return frozenset()
    readers = ((load(name).labels, value) for name, value in settings.items())
    return frozenset(label for labels, value in readers if labels is not None for label in labels(value))


def _setup(settings: tuple[Name, ...], block: BlockSetup) -> None:
    block.provide(Metadata(settings, block.provided(MetadataSource)))


PLUGIN: Final = Plugin(
    name="metadata",
    coredns=differs(
        Effect.ANSWER,
        "labels are those of `kubernetes` and `view`; those of a client's Pod need no `pods verified`, and none of a "
        "hostNetwork Pod; .Meta of `template` is empty",
    ),
    parse=parse_metadata,
    zones=lambda settings: settings,
    setup=_setup,
    fast_path=FastPath.ABSENT,
)
