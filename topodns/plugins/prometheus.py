"""The `prometheus` directive: the address that metrics are served on."""

from dataclasses import dataclass
from typing import Final

from topodns.corefile.arguments import Address, fold_options, listen_address
from topodns.corefile.parser import Directive
from topodns.plugins.context import Context

DEFAULT_LISTEN: Final = Address("localhost", 9153)


@dataclass(frozen=True, slots=True)
class Prometheus:
    listen: Address = DEFAULT_LISTEN


def parse_prometheus(directive: Directive, _: Context) -> Prometheus:
    prometheus = Prometheus(listen_address(directive, Prometheus().listen))
    return fold_options(directive, prometheus, {}, elsewhere=("tls", "runtime_metrics"))
