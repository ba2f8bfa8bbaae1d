"""CoreDNS's directives `metadata`, `multisocket` and `pprof`: parsed and checked, without effect here."""

from typing import Final

from topodns.corefile.arguments import Address, fold_options, listen_address, no_body, only_arg, whole, wrong
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.plugins.context import Context
from topodns.plugins.timeouts import MANY

_MAX_SOCKETS: Final = 1024  # CoreDNS's limit
_PPROF: Final = Address("localhost", 6053)


def parse_metadata(directive: Directive, _: Context) -> bool:
    """`metadata [ZONES...]`: checked, without effect: no plugin here needs a collector of metadata."""
    no_body(directive)
    parse_origins(directive, directive.args)
    return True


def parse_multisocket(directive: Directive, _: Context) -> int:
    """`multisocket [NUM_SOCKETS]`: the number of sockets requested, 1..1024; 0 without it: one per CPU core."""
    no_body(directive)
    if not directive.args:
        return 0
    return whole(directive, only_arg(directive, "one number at most"), 1, _MAX_SOCKETS)


def parse_pprof(directive: Directive, _: Context) -> Address:
    """`pprof [ADDRESS] { block [RATE] }`: Go's profiler. Checked, without effect here."""

    def block(option: Directive, address: Address) -> Address:
        no_body(option)
        if len(option.args) > 1:
            raise wrong(option, "one rate at most")
        if option.args:
            whole(option, option.args[0], 0, MANY)
        return address

    return fold_options(directive, listen_address(directive, _PPROF), {"block": block})
