"""CoreDNS's directive `metadata`: parsed and checked, without effect here."""

from typing import Final

from topodns.corefile.arguments import no_body
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin


def parse_metadata(directive: Directive, _: Context) -> bool:
    """`metadata [ZONES...]`: always True, without effect: no plugin here publishes metadata. Raises ConfigError."""
    no_body(directive)
    parse_origins(directive, directive.args)
    return True


PLUGIN: Final = Plugin(
    name="metadata",
    coredns=differs(Effect.ANSWER, "nothing is published: {/LABEL} of `log` is - and .Meta of `template` is empty"),
    parse=parse_metadata,
    fast_path=FastPath.ABSENT,
)
