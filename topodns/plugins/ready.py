"""The `ready` directive: the address that readiness is served on."""

from dataclasses import dataclass, replace
from typing import Final

from topodns.corefile.arguments import Address, fold_options, listen_address, only_choice
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin

DEFAULT_LISTEN: Final = Address("", 8181)


@dataclass(frozen=True, slots=True)
class Ready:
    listen: Address = DEFAULT_LISTEN
    continuously: bool = False  # `monitor continuously`; otherwise the server stays ready once it is


def parse_ready(directive: Directive, _: Context) -> Ready:
    def monitor(option: Directive, ready: Ready) -> Ready:
        continuously = only_choice(option, {"until-ready": False, "continuously": True})
        return replace(ready, continuously=continuously)

    return fold_options(directive, Ready(listen_address(directive, Ready().listen)), {"monitor": monitor})


PLUGIN: Final = Plugin(
    name="ready",
    coredns=same(),
    parse=parse_ready,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
