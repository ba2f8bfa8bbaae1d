"""IP networks of `acl`, `loadbalance`, `topology` and the expression function `incidr`: parsing, and membership.

Text has the meaning that Go's net.ParseIP and net.ParseCIDR give it.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from topodns.dns.addresses import packed_address, unmapped_network


class NetworkList:
    """An ordered list of networks, and a `Container` of packed addresses. An empty list contains no address."""

    def __init__(self, networks: Iterable[IPv4Network | IPv6Network]) -> None:
        self._by_length: dict[int, list[tuple[int, int, int]]] = {4: [], 16: []}
        for index, network in enumerate(networks):
            entry = (int(network.netmask), int(network.network_address), index)
            self._by_length[network.max_prefixlen // 8].append(entry)

    def first_with(self, address: bytes) -> int | None:
        """The index of the first network that contains this packed address (4 or 16 octets), or None."""
        number = int.from_bytes(address, "big")
        for mask, prefix, index in self._by_length.get(len(address), ()):
            if number & mask == prefix:
                return index
        return None

    def __contains__(self, address: object) -> bool:
        return isinstance(address, bytes) and self.first_with(address) is not None


_CIDR: Final = re.compile(r"[0-9A-Fa-f:.]+/[0-9]{1,3}")  # no netmask and no scope
_ADDRESS: Final = re.compile(r"[0-9A-Fa-f:.]+")


class BadAddress(ValueError):
    """Text that is no IP address, or no network."""


def parse_cidr(text: str) -> NetworkList:
    """The one network of `ADDRESS/LENGTH`, bits after the prefix dropped. Raises BadAddress.

    An IPv4-mapped network with a length from 96 is an IPv4 network.
    """
    if not _CIDR.fullmatch(text):
        raise BadAddress(text)
    try:
        return NetworkList((unmapped_network(text),))
    except ValueError:
        raise BadAddress(text) from None


def parse_address(text: str) -> bytes:
    """The packed address in `text`, an IPv4-mapped one as 4 octets. Raises BadAddress."""
    if not _ADDRESS.fullmatch(text):
        raise BadAddress(text)
    try:
        return packed_address(text)
    except ValueError:
        raise BadAddress(text) from None
