"""Settings of the `forward` directive: which names are forwarded, to which upstreams, and how."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from topodns.dns.name import ROOT, Name

# Seconds without a reply after which a second upstream is asked as well: longer than nearly every reply takes, and
# short enough that a client notices nothing when an upstream stops responding.
HEDGE_AFTER: Final = 0.5


class UpstreamTransport(Enum):
    """Transport to an upstream; the value is the scheme in the Corefile."""

    DNS = "dns"  # UDP and TCP
    TLS = "tls"  # RFC 7858
    HTTPS = "https"  # RFC 8484


class DohMethod(Enum):
    """HTTP method of queries over HTTPS; the value is the word in the Corefile."""

    POST = "POST"
    GET = "GET"


class UpstreamPolicy(Enum):
    """Order in which the upstreams are asked; the value is the word in the Corefile."""

    RANDOM = "random"
    ROUND_ROBIN = "round_robin"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class UpstreamAddress:
    """Address of an upstream. `host` is an IP address as text, an IPv6 link-local one with `%interface`; until
    `host_names.look_up` has its addresses, it may be a host name.
    """

    host: str
    port: int
    transport: UpstreamTransport = UpstreamTransport.DNS
    server_name: str = ""  # verified against the TLS certificate; "" means the address
    is_name: bool = False  # `host` is a host name

    @property
    def name(self) -> str:
        """As CoreDNS's label `to` shows it: `192.0.2.1:53`, `[2001:db8::1]:853`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ForwardTls:
    """Paths of PEM files, "" for none. Without `ca`, the system's certificate authorities are trusted."""

    certificate: str = ""
    key: str = ""
    ca: str = ""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """Probe of a failed upstream: `domain IN NS`, every `interval` seconds until it answers."""

    interval: float = 0.5
    recursion_desired: bool = True
    domain: Name = ROOT


@dataclass(frozen=True, slots=True)
class Forward:
    """One directive; a server block may have several, tried in order. Times in seconds.

    Defaults are CoreDNS's, except for `max_age`, which is no limit there.
    """

    origins: tuple[Name, ...]  # FROM: one name, or the reverse zones of an address prefix
    upstreams: tuple[UpstreamAddress, ...]  # at least one, no two of them equal
    excepted: tuple[Name, ...] = ()
    force_tcp: bool = False
    prefer_udp: bool = False
    expire: float = 10.0  # an idle connection is closed after this time
    max_age: float | None = None  # any connection is closed at this age; 0: no limit; None: `UpstreamLimits.max_age`
    max_idle_conns: int = 0  # per upstream; 0: no limit
    read_timeout: float = 2.0  # of one attempt at one upstream
    max_fails: int = 2  # with more failed probes in a row the upstream is down; 0: never down, and no probes
    max_connect_attempts: int | None = None  # failed attempts per query; None: two per upstream, 0: no limit
    tls: ForwardTls = ForwardTls()
    doh_method: DohMethod = DohMethod.POST
    policy: UpstreamPolicy = UpstreamPolicy.RANDOM
    health_check: HealthCheck = HealthCheck()
    max_concurrent: int = 0  # queries that wait for this directive's upstreams; 0: no limit
    next_rcodes: frozenset[int] = frozenset()  # the query goes on to the next `forward` after these
    next_on_nodata: bool = False  # ... and after a NOERROR without an answer
    failfast: bool = False  # all upstreams down means SERVFAIL, not one of them at random
    failover: frozenset[int] = frozenset()  # rcodes after which another upstream is asked
    source_address: str = ""  # of all packets to upstreams; "": the kernel chooses
    resolvers: tuple[UpstreamAddress, ...] = ()  # that know host names of upstreams; (): those of /etc/resolv.conf
    # Where the directive is, for errors; a moved line is no other forward.
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    @property
    def hedges(self) -> bool:
        """Whether a further upstream is asked when a reply is late.

        Not with `sequential`, whose upstreams are asked in turn because they may give different answers, nor with a
        single upstream, nor if `read_timeout` is not longer than HEDGE_AFTER.
        """
        alike = self.policy is not UpstreamPolicy.SEQUENTIAL and len(self.upstreams) > 1
        return alike and self.read_timeout > HEDGE_AFTER
