"""The `forward` directive: who is asked about names that nobody here knows, and how."""

from dataclasses import dataclass
from enum import Enum

from topodns.dns.names import ROOT, Name


class UpstreamTransport(Enum):
    """How an upstream is spoken to; the value is the scheme that the Corefile writes."""

    DNS = "dns"  # UDP and TCP
    TLS = "tls"  # RFC 7858


class Policy(Enum):
    """Which of several upstreams is asked first."""

    RANDOM = "random"
    ROUND_ROBIN = "round_robin"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class UpstreamAddress:
    """Where an upstream is. `host` is the text of an IP address, an IPv6 link-local one with `%interface`."""

    host: str
    port: int
    transport: UpstreamTransport = UpstreamTransport.DNS
    server_name: str = ""  # of TLS: what its certificate is for; "" means its address

    @property
    def name(self) -> str:
        """As CoreDNS's label `to` shows it: `192.0.2.1:53`, `[2001:db8::1]:853`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ForwardTls:
    """Paths of PEM files; "" is one that there is not. Without `ca` the system's authorities count."""

    certificate: str = ""
    key: str = ""
    ca: str = ""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The probe of an upstream that failed: `domain IN NS`, every `interval` seconds until it answers."""

    interval: float = 0.5
    recursion_desired: bool = True
    domain: Name = ROOT


@dataclass(frozen=True, slots=True)
class Forward:
    """One directive; a block may have several, asked in order. Times in seconds, defaults are CoreDNS's."""

    origins: tuple[Name, ...]  # FROM: one name, or the reverse origins that a prefix stands for
    upstreams: tuple[UpstreamAddress, ...]  # at least one, no two of them equal
    excepted: tuple[Name, ...] = ()
    force_tcp: bool = False
    prefer_udp: bool = False
    expire: float = 10.0  # an idle connection is closed after so long
    max_age: float | None = None  # any connection is closed after so long; 0: never for that; None: see edge.upstream
    max_idle_conns: int = 0  # per upstream; 0: no limit
    read_timeout: float = 2.0  # of one try at one upstream
    max_fails: int = 2  # more failed probes in a row mean that the upstream is down; 0: it never is, and is not probed
    max_connect_attempts: int | None = None  # tries that fail, per question; None: two per upstream, 0: no limit
    tls: ForwardTls = ForwardTls()
    policy: Policy = Policy.RANDOM
    health_check: HealthCheck = HealthCheck()
    max_concurrent: int = 0  # questions that wait for this directive's upstreams; 0: no limit
    next_rcodes: frozenset[int] = frozenset()  # the next `forward` is asked after these
    next_on_nodata: bool = False  # ... and after a NOERROR without an answer
    failfast: bool = False  # all upstreams down means SERVFAIL, not one of them at random
    failover: frozenset[int] = frozenset()  # another upstream is asked after these
    source_address: str = ""  # of everything sent; "" leaves it to the kernel
