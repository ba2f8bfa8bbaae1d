"""Every directive of a server block: how it is parsed, and whether there may be several.

A new directive is a function `parse_NAME` in the module of its subject, a field of `ServerBlock`, and a line of
`DIRECTIVES` that names the module.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.values import flag

__all__ = ["COREDNS_ONLY", "DIRECTIVES", "Context", "Kind"]

Parser = Callable[[Directive, Context], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One directive of the language. `room` is the module here with its `parse_NAME`; "" where the name says it all.

    Several in a block are refused, unless they add up: then values are tuples.
    """

    room: str
    adds_up: bool = False

    def parse(self, directive: Directive, context: Context) -> Any:
        """The value of the `ServerBlock` field of the directive's name. Raises ConfigError."""
        if not self.room:
            flag(directive)
            return True
        # By name, so that a Corefile loads only what it has: a node's cache needs no parser of `kubernetes`.
        parser: Parser = getattr(import_module(f"{__name__}.{self.room}"), f"parse_{directive.name}")
        return parser(directive, context)


FLAG: Final = Kind("")
"""A directive that is only its name."""

DIRECTIVES: Final[Mapping[str, Kind]] = {  # in the order of CoreDNS's plugin.cfg, topology with kubernetes
    "metadata": Kind("operating"),
    "cancel": Kind("operating"),
    "timeouts": Kind("operating"),
    "multisocket": Kind("operating"),
    "reload": Kind("serving"),
    "nsid": Kind("answering"),
    "bufsize": Kind("answering"),
    "bind": Kind("serving", adds_up=True),
    "debug": FLAG,
    "ready": Kind("observing"),
    "health": Kind("observing"),
    "pprof": Kind("operating"),
    "prometheus": Kind("observing"),
    "errors": Kind("observing"),
    "log": Kind("observing", adds_up=True),
    "local": Kind("answering"),
    "dns64": Kind("around_kubernetes"),
    "any": FLAG,
    "chaos": Kind("answering"),
    "loadbalance": Kind("answering"),
    "rewrite": Kind("rewrite", adds_up=True),
    "autopath": Kind("around_kubernetes"),
    "acl": Kind("answering", adds_up=True),
    "cache": Kind("cache"),
    "header": Kind("answering"),
    "minimal": FLAG,
    "template": Kind("template", adds_up=True),
    "hosts": Kind("hosts"),
    "k8s_external": Kind("around_kubernetes"),
    "kubernetes": Kind("kubernetes"),
    "topology": Kind("topology"),
    "file": Kind("zone_file", adds_up=True),
    "loop": FLAG,
    "forward": Kind("forward", adds_up=True),
    "whoami": FLAG,
    "view": Kind("view"),
}

_COREDNS_ONLY: Final = """
    auto azure clouddns dnssec dnstap erratic etcd geoip grpc grpc_server https https3 nomad on proxyproto quic root
    route53 secondary shed sign tls trace transfer tsig
"""
COREDNS_ONLY: Final = frozenset(_COREDNS_ONLY.split())
