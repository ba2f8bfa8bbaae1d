"""Who is named in metrics: the first so many, and the others together, so that no label grows without bound.

Neither a client's address nor a query's name is ever a label (reliability.md section 5.4): a Service is an object of
the cluster, and of a source only the prefix is told.
"""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from topodns.cluster.model import ObjectKey

MAX_NAMED: Final = 100
OTHERS: Final = "others"

_IPV4_OCTETS: Final = 4
_IPV4_PREFIX, _IPV6_PREFIX = 3, 7  # octets that a node's Pods, or a site's machines, mostly share

K = TypeVar("K")


class Roster(Generic[K]):
    """The names of the first `MAX_NAMED` that were asked about; every later one is `OTHERS`."""

    def __init__(self, write: Callable[[K], str]) -> None:
        self._write = write  # takes several microseconds, so once for each
        self._named: dict[K, str] = {}

    def name(self, key: K) -> str:
        named = self._named.get(key)
        if named is not None:
            return named
        if len(self._named) >= MAX_NAMED:
            return OTHERS
        return self._named.setdefault(key, self._write(key))


class Rosters:
    """Those of the whole process: counters go on over a reload."""

    def __init__(self) -> None:
        self._services: Roster[ObjectKey] = Roster("/".join)
        self._prefixes: Roster[bytes] = Roster(_prefix_text)

    def service(self, key: "ObjectKey") -> str:
        """`namespace/name`."""
        return self._services.name(key)

    def prefix(self, address: bytes) -> str:
        """The /24 or /56 of a packed address."""
        return self._prefixes.name(address[: _IPV4_PREFIX if len(address) == _IPV4_OCTETS else _IPV6_PREFIX])


def _prefix_text(prefix: bytes) -> str:
    if len(prefix) == _IPV4_PREFIX:
        return f"{IPv4Address(prefix + bytes(1))}/24"
    return f"{IPv6Address(prefix + bytes(9))}/56"
