"""The `k8s_external` directive: names under which the world outside finds Services of the block's `kubernetes`."""

from dataclasses import dataclass

from topodns.dns.names import Name


@dataclass(frozen=True, slots=True)
class K8sExternal:
    origins: tuple[Name, ...]
    apex: str = "dns"  # the label under the origin below which the name servers' own names are, lower-case
    ttl: int = 5  # seconds, 0..3600
    headless: bool = False  # headless Services without external addresses are answered with their endpoints
    fallthrough: tuple[Name, ...] = ()  # origins below which an unknown name goes to the next step; root: all
