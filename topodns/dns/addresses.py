"""IP addresses, packed to 4 or 16 octets, and networks: an IPv4-mapped IPv6 address is the IPv4 address everywhere.

A client has one address by whatever socket its query arrives, and Go's net.ParseIP and net.ParseCIDR, which the API
server and CoreDNS use, do the same with texts.

Leading zeros in addresses of API objects: `cluster.decode.fields.parse_address`.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

IPV4_SIZE: Final = 4  # octets
IPV4_MAPPED: Final = bytes(10) + b"\xff\xff"  # the prefix of RFC 4291 section 2.5.5.2
OCTETS: Final[Mapping[str, int]] = {str(number): number for number in range(256)}
"""An octet of an IPv4 address by its decimal text in ASCII digits, without leading zeros: each has one text."""

_MAPPED_LENGTH: Final = 8 * len(IPV4_MAPPED)
_CIDR: Final = re.compile(r"[0-9A-Fa-f:.]+/[0-9]{1,3}")  # no netmask and no scope
_ADDRESS: Final = re.compile(r"[0-9A-Fa-f:.]+")


def unmapped(address: bytes) -> bytes:
    """The packed address; an IPv4-mapped one as its 4 octets."""
    return address.removeprefix(IPV4_MAPPED)


def packed_address(text: str) -> bytes:
    """The packed address of a text, an IPv4-mapped one as 4 octets. A scope (`%eth0`) is dropped.

    Raises ValueError for a text that is no address.
    """
    return unmapped(ip_address(text).packed)


def is_of_machine(address: bytes, own_addresses: Collection[bytes]) -> bool:
    """Whether packets to this address stay on the machine, which has `own_addresses`. All are packed and unmapped.

    Linux has all of 127.0.0.0/8, and the unspecified address is all of its family.
    """
    found = ip_address(address)
    return found.is_loopback or found.is_unspecified or address in own_addresses


def unmapped_network(text: str) -> IPv4Network | IPv6Network:
    """The network of a text `ADDRESS/LENGTH` or `ADDRESS`, bits after the prefix dropped, as Go's net.ParseCIDR.

    IPv4-mapped addresses with a length from 96 are an IPv4 network: `::ffff:10.0.0.0/104` is 10.0.0.0/8. With a shorter
    one they are an IPv6 network, which contains no IPv4 address. Raises ValueError for a text that is no network.
    """
    network = ip_network(text, strict=False)
    if isinstance(network, IPv4Network) or network.prefixlen < _MAPPED_LENGTH:
        return network
    address = unmapped(network.network_address.packed)
    return network if len(address) == 16 else IPv4Network((address, network.prefixlen - _MAPPED_LENGTH))


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
