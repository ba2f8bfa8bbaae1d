"""CoreDNS's directive `pprof`: parsed and checked, without effect here."""

from typing import Final

from topodns.corefile.arguments import Address, fold_options, listen_address, no_body, whole, wrong
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin
from topodns.plugins.timeouts import MANY

_PPROF: Final = Address("localhost", 6053)


def parse_pprof(directive: Directive, _: Context) -> Address:
    """`pprof [ADDRESS] { block [RATE] }`, Go's profiler: the address, without effect here. Raises ConfigError."""

    def block(option: Directive, address: Address) -> Address:
        no_body(option)
        if len(option.args) > 1:
            raise wrong(option, "one rate at most")
        if option.args:
            whole(option, option.args[0], 0, MANY)
        return address

    return fold_options(directive, listen_address(directive, _PPROF), {"block": block})


PLUGIN: Final = Plugin(
    name="pprof",
    coredns=differs(Effect.NOTHING, "read and checked, but nothing listens: there is no Go program to profile"),
    parse=parse_pprof,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
