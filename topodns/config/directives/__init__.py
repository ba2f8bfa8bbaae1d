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
from topodns.config.directives.around_kubernetes import parse_autopath, parse_dns64, parse_k8s_external
from topodns.config.directives.cache import parse_cache
from topodns.config.directives.context import Context
from topodns.config.directives.forward import parse_forward
from topodns.config.directives.hosts import parse_hosts
from topodns.config.directives.kubernetes import parse_kubernetes
from topodns.config.directives.observing import parse_errors, parse_health, parse_log, parse_prometheus, parse_ready
from topodns.config.directives.operating import (
    parse_cancel,
    parse_metadata,
    parse_multisocket,
    parse_pprof,
    parse_timeouts,
)
from topodns.config.directives.rewrite import parse_rewrite
from topodns.config.directives.serving import parse_bind, parse_reload
from topodns.config.directives.template import parse_template
from topodns.config.directives.topology import parse_topology
from topodns.config.directives.view import parse_view
from topodns.config.directives.zone_file import parse_file

__all__ = ["COREDNS_ONLY", "DIRECTIVES", "Context", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One directive of the language. `parse` gives the value of the `ServerBlock` field of the directive's name.

    Several in a block are refused, unless they add up: then values are tuples.
    """

    parse: Callable[[Directive, Context], Any]
    adds_up: bool = False


DIRECTIVES: Final[Mapping[str, Kind]] = {  # in the order of CoreDNS's plugin.cfg, topology with kubernetes
    "metadata": Kind(parse_metadata),
    "cancel": Kind(parse_cancel),
    "timeouts": Kind(parse_timeouts),
    "multisocket": Kind(parse_multisocket),
    "reload": Kind(parse_reload),
    "nsid": Kind(parse_nsid),
    "bufsize": Kind(parse_bufsize),
    "bind": Kind(parse_bind, adds_up=True),
    "debug": Kind(parse_flag),
    "ready": Kind(parse_ready),
    "health": Kind(parse_health),
    "pprof": Kind(parse_pprof),
    "prometheus": Kind(parse_prometheus),
    "errors": Kind(parse_errors),
    "log": Kind(parse_log, adds_up=True),
    "local": Kind(parse_local),
    "dns64": Kind(parse_dns64),
    "any": Kind(parse_flag),
    "chaos": Kind(parse_chaos),
    "loadbalance": Kind(parse_loadbalance),
    "rewrite": Kind(parse_rewrite, adds_up=True),
    "autopath": Kind(parse_autopath),
    "acl": Kind(parse_acl, adds_up=True),
    "cache": Kind(parse_cache),
    "header": Kind(parse_header),
    "minimal": Kind(parse_flag),
    "template": Kind(parse_template, adds_up=True),
    "hosts": Kind(parse_hosts),
    "k8s_external": Kind(parse_k8s_external),
    "kubernetes": Kind(parse_kubernetes),
    "topology": Kind(parse_topology),
    "file": Kind(parse_file, adds_up=True),
    "loop": Kind(parse_flag),
    "forward": Kind(parse_forward, adds_up=True),
    "whoami": Kind(parse_flag),
    "view": Kind(parse_view),
}

_COREDNS_ONLY: Final = """
    auto azure clouddns dnssec dnstap erratic etcd geoip grpc grpc_server https https3 nomad on proxyproto quic root
    route53 secondary shed sign tls trace transfer tsig
"""
COREDNS_ONLY: Final = frozenset(_COREDNS_ONLY.split())
