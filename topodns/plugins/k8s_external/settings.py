"""The settings of a `k8s_external` directive."""

from dataclasses import dataclass

from topodns.dns.name import Name


@dataclass(frozen=True, slots=True)
class K8sExternal:
    origins: tuple[Name, ...]
    apex: str = "dns"  # the label under the origin, lower-case: the name servers are `ns1.<apex>.<origin>`
    ttl: int = 5  # seconds, 0..3600
    headless: bool = False  # headless Services without external addresses are answered with their endpoints
    fallthrough: tuple[Name, ...] = ()  # origins below which an unknown name goes to the next plugin; root: all
