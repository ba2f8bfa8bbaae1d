"""The `bufsize` directive: the largest UDP payload offered to clients, in octets (RFC 6891, DNS flag day 2020)."""

from typing import Final

from topodns.corefile.arguments import no_body, only_arg, whole
from topodns.corefile.parser import Directive
from topodns.dns.message import DEFAULT_UDP_SIZE
from topodns.dns.wire_format import MIN_UDP_PAYLOAD
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin

_MAX_BUFSIZE: Final = 4096  # CoreDNS's limit


def parse_bufsize(directive: Directive, _: Context) -> int:
    no_body(directive)
    if not directive.args:
        return DEFAULT_UDP_SIZE
    return whole(directive, only_arg(directive, "one size at most"), MIN_UDP_PAYLOAD, _MAX_BUFSIZE)


PLUGIN: Final = Plugin(
    name="bufsize",
    coredns=same(),
    parse=parse_bufsize,
    fast_path=FastPath.ABSENT,
)
