"""Packed addresses against lists of networks, by integer arithmetic: `ipaddress` objects cost too much per query."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network


class NetworkList:
    """An ordered list of networks. Empty: nothing is in it."""

    def __init__(self, networks: Iterable[IPv4Network | IPv6Network]) -> None:
        self._by_length: dict[int, list[tuple[int, int, int]]] = {4: [], 16: []}
        for index, network in enumerate(networks):
            entry = (int(network.netmask), int(network.network_address), index)
            self._by_length[network.max_prefixlen // 8].append(entry)

    def first_with(self, address: bytes) -> int | None:
        """The index of the first network that this packed address of 4 or 16 octets is in, or None."""
        number = int.from_bytes(address, "big")
        for mask, prefix, index in self._by_length[len(address)]:
            if number & mask == prefix:
                return index
        return None

    def __contains__(self, address: bytes) -> bool:
        return self.first_with(address) is not None
