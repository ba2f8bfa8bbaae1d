"""Caps label cardinality: the first values keep their name, all later ones are "others".

A label value is for people and is no identifier: `OTHERS` covers many values, and a Node may have that name, too.
No label is a client's address or a query's name: a Service is an object of the cluster, and a source is only shown as
its prefix.
"""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from topodns.cluster.model import ObjectKey


MAX_NAMED: Final = 100
OTHERS: Final = "others"

_IPV4_OCTETS: Final = 4
_IPV4_PREFIX, _IPV6_PREFIX = 3, 7  # octets that the Pods of a node, or the machines of a site, mostly share

K = TypeVar("K")


class LabelLimiter(Generic[K]):
    """Gives the first `most` different keys a name of their own, for as long as it exists; later ones get OTHERS."""

    def __init__(self, write: Callable[[K], str], most: int = MAX_NAMED) -> None:
        self._write = write  # key to name; takes several microseconds, so its result is kept
        self._most = most
        self._named: dict[K, str] = {}

    def name(self, key: K) -> str:
        named = self._named.get(key)
        if named is not None:
            return named
        if len(self._named) >= self._most:
            return OTHERS
        return self._named.setdefault(key, self._write(key))

    def named(self, key: K) -> K | None:
        """The key if it has a name of its own, or gets one now, as by `name`; None if its name is `OTHERS`."""
        self.name(key)
        return key if key in self._named else None


class LabelLimiters:
    """The label limiters of the process. They outlive a reload, because the counters do."""

    def __init__(self) -> None:
        self._services: LabelLimiter[ObjectKey] = LabelLimiter("/".join)
        self._prefixes: LabelLimiter[bytes] = LabelLimiter(_prefix_text)

    def service(self, key: "ObjectKey") -> str:
        """The label value of a Service: `namespace/name`, or OTHERS."""
        return self._services.name(key)

    def prefix(self, address: bytes) -> str:
        """The label value of a packed address: its /24 or /56 as text, or OTHERS."""
        return self._prefixes.name(_prefix_of(address))

    def named_prefix(self, address: bytes) -> bytes | None:
        """The first octets of a packed address, its /24 or /56; None if `prefix` gives `OTHERS`."""
        return self._prefixes.named(_prefix_of(address))


def _prefix_of(address: bytes) -> bytes:
    return address[: _IPV4_PREFIX if len(address) == _IPV4_OCTETS else _IPV6_PREFIX]


def _prefix_text(prefix: bytes) -> str:
    if len(prefix) == _IPV4_PREFIX:
        return f"{IPv4Address(prefix + bytes(1))}/24"
    return f"{IPv6Address(prefix + bytes(9))}/56"
