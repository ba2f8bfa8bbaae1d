"""The plugins, one module or folder each, and the table of the directives that configure them.

A new directive is a module here with a function `parse_NAME`, a field of `ServerBlock`, and a line of `DIRECTIVES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from topodns.corefile.arguments import flag
from topodns.corefile.parser import Directive

if TYPE_CHECKING:
    from topodns.plugins.context import Context

Parser = Callable[[Directive, "Context"], Any]


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """One directive. `room` is the module here with its `parse_NAME`; "" for a directive without arguments and body.

    A server block may repeat it only with `adds_up`: then values are tuples.
    """

    room: str
    adds_up: bool = False

    def parse(self, directive: Directive, context: "Context") -> Any:
        """The value for the `ServerBlock` field of the directive's name. Raises ConfigError."""
        if not self.room:
            flag(directive)
            return True
        # By name, so that a process loads only the plugins in its Corefile: a node cache needs no `kubernetes`.
        parser: Parser = getattr(import_module(f"{__name__}.{self.room}"), f"parse_{directive.name}")
        return parser(directive, context)


FLAG: Final = PluginEntry("")
"""A directive without arguments and body."""

DIRECTIVES: Final[
    Mapping[str, PluginEntry]
] = {  # in the order of CoreDNS's plugin.cfg; `topology` follows `kubernetes`
    "metadata": PluginEntry("accepted"),
    "cancel": PluginEntry("cancel"),
    "timeouts": PluginEntry("timeouts"),
    "multisocket": PluginEntry("accepted"),
    "reload": PluginEntry("reload"),
    "nsid": PluginEntry("nsid"),
    "bufsize": PluginEntry("bufsize"),
    "bind": PluginEntry("bind", adds_up=True),
    "debug": FLAG,
    "ready": PluginEntry("ready"),
    "health": PluginEntry("health"),
    "pprof": PluginEntry("accepted"),
    "prometheus": PluginEntry("prometheus"),
    "errors": PluginEntry("errors"),
    "log": PluginEntry("log", adds_up=True),
    "local": PluginEntry("local"),
    "dns64": PluginEntry("dns64"),
    "any": FLAG,
    "chaos": PluginEntry("chaos"),
    "loadbalance": PluginEntry("loadbalance.setup"),
    "rewrite": PluginEntry("rewrite.setup", adds_up=True),
    "autopath": PluginEntry("autopath.setup"),
    "acl": PluginEntry("acl", adds_up=True),
    "cache": PluginEntry("cache.setup"),
    "header": PluginEntry("header"),
    "minimal": FLAG,
    "template": PluginEntry("template.setup", adds_up=True),
    "hosts": PluginEntry("hosts.setup"),
    "k8s_external": PluginEntry("k8s_external"),
    "kubernetes": PluginEntry("kubernetes.setup"),
    "topology": PluginEntry("topology"),
    "file": PluginEntry("file.setup", adds_up=True),
    "loop": FLAG,
    "forward": PluginEntry("forward.setup", adds_up=True),
    "whoami": FLAG,
    "view": PluginEntry("view.setup"),
}

_COREDNS_ONLY: Final = """
    auto azure clouddns dnssec dnstap erratic etcd geoip grpc grpc_server https https3 nomad on proxyproto quic root
    route53 secondary shed sign tls trace transfer tsig
"""
COREDNS_ONLY: Final = frozenset(_COREDNS_ONLY.split())
