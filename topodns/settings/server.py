"""A server block, its keys, and the directives that concern the process: what `topodns.config` returns."""

from dataclasses import dataclass

from topodns.dns.names import Name
from topodns.settings.kubernetes import KubernetesSettings
from topodns.settings.steps import Acl, Chaos, Header, Loadbalance, LogRule
from topodns.settings.topology import TopologySettings

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
class BlockKey:
    """One key of a server block: the origin it answers for, and its port."""

    origin: Name
    port: int


@dataclass(frozen=True, slots=True)
class ServerBlock:
    """One block. A None or empty field is a directive that is not there. Every step order is `resolve.chain`'s."""

    keys: tuple[BlockKey, ...]
    file: str
    line: int
    bind: tuple[str, ...] = ()  # addresses; empty: all. Interfaces are already resolved
    kubernetes: KubernetesSettings | None = None
    topology: TopologySettings | None = None
    errors: bool = False
    stacktrace: bool = False  # `errors { stacktrace }`
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
    directives: tuple[str, ...] = ()  # the names present, for coredns_plugin_enabled


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole Corefile. `digest` is the SHA-512 of its text with all imports, for reload and its metric."""

    blocks: tuple[ServerBlock, ...]
    digest: str
    files: tuple[str, ...]  # the Corefile and everything imported
