"""Who is named in metrics: the first so many, and the others together, so that no label grows without bound.

Neither a client's address nor a query's name is ever a label: a Service is an object of the cluster, and of a source
only the prefix is told (reliability.md section 5.4).
"""

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from topodns.cluster.model import ObjectKey

MAX_NAMED: Final = 100
OTHERS: Final = "others"

_IPV4_OCTETS: Final = 4
_IPV4_PREFIX, _IPV6_PREFIX = 24, 56  # what a node's Pods, or a site's machines, mostly share


class Roster:
    """The first `MAX_NAMED` texts that were asked about; every later one is `OTHERS`."""

    def __init__(self) -> None:
        self._named: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The text, always the same object, or `OTHERS`."""
        named = self._named.get(text)
        if named is not None:
            return named
        if len(self._named) >= MAX_NAMED:
            return OTHERS
        return self._named.setdefault(text, text)


@dataclass(eq=False)
class Rosters:
    """Those of the whole process: counters go on over a reload."""

    services: Roster = field(default_factory=Roster)
    prefixes: Roster = field(default_factory=Roster)

    def service(self, key: "ObjectKey") -> str:
        """`namespace/name`."""
        return self.services.name(f"{key.namespace}/{key.name}")

    def prefix(self, address: bytes) -> str:
        """The /24 or /56 of a packed address."""
        if len(address) == _IPV4_OCTETS:
            return self.prefixes.name(str(IPv4Network((address, _IPV4_PREFIX), strict=False)))
        return self.prefixes.name(str(IPv6Network((address, _IPV6_PREFIX), strict=False)))
