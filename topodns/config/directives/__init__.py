"""Every directive of a server block: how it is parsed, and whether there may be several.

A new directive is a parse function in the module of its subject, a field of `ServerBlock`, and a line of `DIRECTIVES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

__all__ = ["COREDNS_ONLY", "DIRECTIVES", "Context", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One directive of the language. `parse` gives the value of the `ServerBlock` field of the directive's name.

    Several in a block are refused, unless they add up: then values are tuples.
    """

    parse: Callable[[Directive, Context], Any]
    adds_up: bool = False


DIRECTIVES: Final[Mapping[str, Kind]] = {  # in the order of CoreDNS's plugin.cfg, topology with kubernetes
    "reload": Kind(parse_reload),
    "nsid": Kind(parse_nsid),
    "bufsize": Kind(parse_bufsize),
    "bind": Kind(parse_bind, adds_up=True),
    "ready": Kind(parse_ready),
    "health": Kind(parse_health),
    "prometheus": Kind(parse_prometheus),
    "errors": Kind(parse_errors),
    "log": Kind(parse_log, adds_up=True),
    "local": Kind(parse_local),
    "any": Kind(parse_flag),
    "chaos": Kind(parse_chaos),
    "loadbalance": Kind(parse_loadbalance),
    "acl": Kind(parse_acl, adds_up=True),
    "header": Kind(parse_header),
    "minimal": Kind(parse_flag),
    "kubernetes": Kind(parse_kubernetes),
    "topology": Kind(parse_topology),
    "whoami": Kind(parse_flag),
}

_COREDNS_ONLY: Final = """
    auto autopath azure cache cancel clouddns debug dns64 dnssec dnstap erratic etcd file forward geoip grpc grpc_server
    hosts https https3 k8s_external loop metadata multisocket nomad on pprof proxyproto quic rewrite root route53
    secondary shed sign template timeouts tls trace transfer tsig view
"""
COREDNS_ONLY: Final = frozenset(_COREDNS_ONLY.split())
