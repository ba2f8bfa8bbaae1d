"""The function `incidr`: whether an address, as text or as a client's, is in a network.

Texts mean what Go's net.ParseIP and net.ParseCIDR take them for.
"""

import re
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple

_CIDR: Final = re.compile(r"[0-9A-Fa-f:.]+/[0-9]{1,3}")  # no netmask and no scope
_ADDRESS: Final = re.compile(r"[0-9A-Fa-f:.]+")


class BadAddress(ValueError):
    """Text that is no address, or no network."""


class Network(NamedTuple):
    size: int  # octets of an address: 4 or 16
    mask: int
    prefix: int

    def holds(self, address: bytes) -> bool:
        """Whether the packed address is in it."""
        return len(address) == self.size and int.from_bytes(address, "big") & self.mask == self.prefix


def parse_cidr(text: str) -> Network:
    """The network of `ADDRESS/LENGTH`; bits after the prefix are dropped. Raises BadAddress."""
    if not _CIDR.fullmatch(text):
        raise BadAddress(text)
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise BadAddress(text) from None
    return Network(network.max_prefixlen // 8, int(network.netmask), int(network.network_address))


def parse_address(text: str) -> bytes:
    """The packed address that `text` is, an IPv4-mapped one as 4 octets. Raises BadAddress."""
    if not _ADDRESS.fullmatch(text):
        raise BadAddress(text)
    try:
        address = ip_address(text)
    except ValueError:
        raise BadAddress(text) from None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).packed
