"""CoreDNS's directive `multisocket`: parsed and checked, without effect here."""

from typing import Final

from topodns.corefile.arguments import no_body, only_arg, whole
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin

_MAX_SOCKETS: Final = 1024  # CoreDNS's limit


def parse_multisocket(directive: Directive, _: Context) -> int:
    """`multisocket [NUM_SOCKETS]`: the number requested, 1..1024, or 0 if there is none (CoreDNS: one per CPU core).

    Raises ConfigError. The number has no effect here.
    """
    no_body(directive)
    if not directive.args:
        return 0
    return whole(directive, only_arg(directive, "one number at most"), 1, _MAX_SOCKETS)


PLUGIN: Final = Plugin(
    name="multisocket",
    coredns=differs("one socket is opened whatever the number, and the log says so; run more replicas"),
    parse=parse_multisocket,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
