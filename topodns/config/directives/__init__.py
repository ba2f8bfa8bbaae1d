"""Every directive of a server block: how it is parsed, and what a second one means.

A new directive is a parse function in the module of its subject, a field of `ServerBlock`, and a line of `DIRECTIVES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from topodns.config.corefile import Directive
from topodns.config.directives.answering import (
    parse_acl,
    parse_bufsize,
    parse_chaos,
    parse_flag,
    parse_header,
    parse_loadbalance,
    parse_local,
    parse_nsid,
)
from topodns.config.directives.context import Context
from topodns.config.directives.kubernetes import parse_kubernetes
from topodns.config.directives.observing import parse_errors, parse_health, parse_log, parse_prometheus, parse_ready
from topodns.config.directives.serving import parse_bind, parse_reload
from topodns.config.directives.topology import parse_topology

__all__ = ["COREDNS_ONLY", "DIRECTIVES", "Context", "Kind", "Repeat"]


class Repeat(Enum):
    """What a second directive of one name in a block means, as in CoreDNS."""

    REFUSED = "refused"
    FIRST = "first"  # the first counts, the others are checked
    LAST = "last"
    ALL = "all"  # they add up: values are tuples


@dataclass(frozen=True, slots=True)
class Kind:
    """One directive of the language. `parse` gives the value of the `ServerBlock` field of the directive's name."""

    parse: Callable[[Directive, Context], Any]
    repeat: Repeat


DIRECTIVES: Final[Mapping[str, Kind]] = {  # in the order of CoreDNS's plugin.cfg, topology with kubernetes
    "reload": Kind(parse_reload, Repeat.FIRST),
    "nsid": Kind(parse_nsid, Repeat.REFUSED),
    "bufsize": Kind(parse_bufsize, Repeat.FIRST),
    "bind": Kind(parse_bind, Repeat.ALL),
    "ready": Kind(parse_ready, Repeat.REFUSED),
    "health": Kind(parse_health, Repeat.LAST),
    "prometheus": Kind(parse_prometheus, Repeat.REFUSED),
    "errors": Kind(parse_errors, Repeat.REFUSED),
    "log": Kind(parse_log, Repeat.ALL),
    "local": Kind(parse_local, Repeat.LAST),
    "any": Kind(parse_flag, Repeat.FIRST),
    "chaos": Kind(parse_chaos, Repeat.FIRST),
    "loadbalance": Kind(parse_loadbalance, Repeat.LAST),
    "acl": Kind(parse_acl, Repeat.ALL),
    "header": Kind(parse_header, Repeat.FIRST),
    "minimal": Kind(parse_flag, Repeat.FIRST),
    "kubernetes": Kind(parse_kubernetes, Repeat.REFUSED),
    "topology": Kind(parse_topology, Repeat.REFUSED),
    "whoami": Kind(parse_flag, Repeat.FIRST),
}

_COREDNS_ONLY: Final = """
    auto autopath azure cache cancel clouddns debug dns64 dnssec dnstap erratic etcd file forward geoip grpc grpc_server
    hosts https https3 k8s_external loop metadata multisocket nomad on pprof proxyproto quic rewrite root route53
    secondary shed sign template timeouts tls trace transfer tsig view
"""
COREDNS_ONLY: Final = frozenset(_COREDNS_ONLY.split())
