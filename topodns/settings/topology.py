"""The `topology` directive: whose keys are followed, how clients are found, what an unknown client gets."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from topodns.cluster.locate import Method
from topodns.cluster.policy import KeySource
from topodns.cluster.topology import OnInvalid, UnknownClient


@dataclass(frozen=True, slots=True)
class TopologySettings:
    keys: tuple[KeySource, ...] = (KeySource.ANNOTATION, KeySource.FIELD, KeySource.OPENYURT)
    locate: tuple[Method, ...] = (Method.NODES, Method.PODCIDR, Method.SLICES)
    trust: tuple[IPv4Network | IPv6Network, ...] = ()  # sources whose node identity and ECS are believed
    unknown_client: UnknownClient = UnknownClient.STRICT
    on_invalid: OnInvalid = OnInvalid.IGNORE
    ttl: int | None = None  # seconds, 0..3600; None: min(5, ttl of kubernetes)
    filter_hostnames: bool = False
    terminating_fallback: bool = False
