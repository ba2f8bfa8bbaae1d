"""The `prometheus` directive: the address that metrics are served on."""

from dataclasses import dataclass
from typing import Final

from topodns.corefile.arguments import Address, fold_options, listen_address
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import same, unsupported
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin

DEFAULT_LISTEN: Final = Address("localhost", 9153)


@dataclass(frozen=True, slots=True)
class Prometheus:
    listen: Address = DEFAULT_LISTEN


def parse_prometheus(directive: Directive, _: Context) -> Prometheus:
    prometheus = Prometheus(listen_address(directive, Prometheus().listen))
    return fold_options(directive, prometheus, {}, elsewhere=("tls", "runtime_metrics"))


PLUGIN: Final = Plugin(
    name="prometheus",
    coredns=same(
        runtime_metrics=unsupported("take it out: there is no Go runtime; process_* metrics are always there"),
        tls=unsupported("take it out, and put a proxy that speaks TLS in front of the metrics"),
    ),
    parse=parse_prometheus,
    fast_path=FastPath.ABSENT,
)
