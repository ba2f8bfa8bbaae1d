"""The settings of a server block: its keys, and the parsed settings of each of its directives."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topodns.corefile.arguments import Address
from topodns.corefile.zones import BlockKey
from topodns.plugins.acl import Acl
from topodns.plugins.cache.setup import Cache
from topodns.plugins.chaos import Chaos
from topodns.plugins.errors import Errors
from topodns.plugins.forward.settings import Forward
from topodns.plugins.header import Header
from topodns.plugins.health import Health
from topodns.plugins.loadbalance.setup import Loadbalance
from topodns.plugins.log import LogRule
from topodns.plugins.prometheus import Prometheus
from topodns.plugins.ready import Ready
from topodns.plugins.reload import Reload
from topodns.plugins.timeouts import Timeouts

if TYPE_CHECKING:
    from topodns.plugins.autopath.settings import Autopath
    from topodns.plugins.dns64 import Dns64
    from topodns.plugins.file.setup import ZoneFile
    from topodns.plugins.hosts.setup import Hosts
    from topodns.plugins.k8s_external import K8sExternal
    from topodns.plugins.kubernetes.settings import KubernetesSettings
    from topodns.plugins.rewrite.settings import RewriteRule
    from topodns.plugins.template.settings import Template
    from topodns.plugins.topology import TopologySettings
    from topodns.plugins.view.setup import View


@dataclass(frozen=True, slots=True)
class ServerBlock:
    """One server block. A None or empty field: the directive is absent. `dnsserver.chain` has the plugin order."""

    keys: tuple[BlockKey, ...]
    source: str  # the file that contains it
    line: int
    bind: tuple[str, ...] = ()  # addresses; empty: all. Interfaces are already resolved
    kubernetes: "KubernetesSettings | None" = None
    topology: "TopologySettings | None" = None
    errors: Errors | None = None
    log: tuple[LogRule, ...] = ()
    health: Health | None = None
    ready: Ready | None = None
    prometheus: Prometheus | None = None
    loadbalance: Loadbalance | None = None
    reload: Reload | None = None
    bufsize: int | None = None  # 512..4096
    any: bool = False
    whoami: bool = False
    local: bool = False
    acl: tuple[Acl, ...] = ()
    nsid: str | None = None  # the identifier, as text; "" means the host's name
    chaos: Chaos | None = None
    minimal: bool = False
    header: Header | None = None
    timeouts: Timeouts | None = None
    cancel: float | None = None  # maximum seconds of a query
    multisocket: int | None = None  # number of sockets; 0: one per core
    debug: bool = False
    pprof: Address | None = None
    metadata: bool = False
    loop: bool = False
    forward: tuple[Forward, ...] = ()
    cache: Cache | None = None
    hosts: "Hosts | None" = None
    rewrite: "tuple[RewriteRule, ...]" = ()
    template: "tuple[Template, ...]" = ()
    file: "tuple[ZoneFile, ...]" = ()
    autopath: "Autopath | None" = None
    dns64: "Dns64 | None" = None
    k8s_external: "K8sExternal | None" = None
    view: "View | None" = None
    directives: tuple[str, ...] = ()  # the names present, for coredns_plugin_enabled


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a Corefile. `digest`: SHA-512 of its text with all imports, for `reload` and its metric."""

    blocks: tuple[ServerBlock, ...]
    digest: str
    files: tuple[str, ...]  # the Corefile and all imported files
