"""A server block, its keys, and the directives that concern the process: what `topodns.config` returns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topodns.dns.names import Name
from topodns.settings.cache import Cache
from topodns.settings.errors import Errors
from topodns.settings.forward import Forward
from topodns.settings.steps import Acl, Chaos, Header, Loadbalance, LogRule

if TYPE_CHECKING:  # of directives that few Corefiles have: their parsers bring them along
    from topodns.settings.autopath import Autopath
    from topodns.settings.dns64 import Dns64
    from topodns.settings.hosts import Hosts
    from topodns.settings.k8s_external import K8sExternal
    from topodns.settings.kubernetes import KubernetesSettings
    from topodns.settings.rewrite import RewriteRule
    from topodns.settings.template import Template
    from topodns.settings.topology import TopologySettings
    from topodns.settings.view import View
    from topodns.settings.zone_file import ZoneFile

DEFAULT_UDP_SIZE = 1232  # DNS flag day 2020, RFC 9715


@dataclass(frozen=True, slots=True)
class Address:
    """Where something listens. `host` "" is every address of both families."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Health:
    listen: Address = Address("", 8080)
    lameduck: float = 0.0  # seconds


@dataclass(frozen=True, slots=True)
class Ready:
    listen: Address = Address("", 8181)
    continuously: bool = False  # `monitor continuously`; else once ready, always ready


@dataclass(frozen=True, slots=True)
class Prometheus:
    listen: Address = Address("localhost", 9153)


@dataclass(frozen=True, slots=True)
class Reload:
    interval: float = 30.0  # seconds
    jitter: float = 15.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Of TCP connections, in seconds. `read`: for a message once begun; `write`: for a client that does not read on."""

    read: float = 3.0
    write: float = 5.0
    idle: float = 10.0
    max_queries: int = 0  # of one connection, which is then closed; 0: unlimited


@dataclass(frozen=True, slots=True)
class BlockKey:
    """One key of a server block: the origin it answers for, and its port."""

    origin: Name
    port: int


@dataclass(frozen=True, slots=True)
class ServerBlock:
    """One block. A None or empty field is a directive that is not there. Every step order is `resolve.chain`'s."""

    keys: tuple[BlockKey, ...]
    source: str  # the file that it stands in
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
    cancel: float | None = None  # seconds that a query may take
    multisocket: int | None = None  # sockets asked for; 0: one per core
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
    """A whole Corefile. `digest` is the SHA-512 of its text with all imports, for reload and its metric."""

    blocks: tuple[ServerBlock, ...]
    digest: str
    files: tuple[str, ...]  # the Corefile and everything imported
