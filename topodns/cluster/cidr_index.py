"""Index of CIDRs by longest prefix: the owner (a name) of the CIDR around a packed address."""


class CidrTable:
    """CIDRs and their owners: a dictionary per prefix length, of which a cluster has one or two per address family.

    Networks are stored as integers without their host bits, so host bits set by mistake have no effect. A CIDR with
    several owners counts as without owner, and still hides the shorter ones around it.
    """

    def __init__(self) -> None:
        # By address size in octets: (number of host bits, network without them -> owners), fewest host bits first.
        self._tables: dict[int, list[tuple[int, dict[int, tuple[str, ...]]]]] = {4: [], 16: []}

    def owner(self, address: bytes) -> str:
        """The owner of the longest CIDR around an address; "" if there is none, or several."""
        number = int.from_bytes(address, "big")
        for host_bits, networks in self._tables[len(address)]:
            owners = networks.get(number >> host_bits)
            if owners is not None:
                return owners[0] if len(owners) == 1 else ""
        return ""

    def start_owner(self, address: bytes, size: int) -> str:
        """As `owner`, but "" unless the address is among the first `size` addresses of the longest CIDR around it."""
        number = int.from_bytes(address, "big")
        for host_bits, networks in self._tables[len(address)]:
            if number >> host_bits in networks:
                return self.owner(address) if number & ((1 << host_bits) - 1) < size else ""
        return ""

    def subnet_owner(self, network: bytes, prefix_length: int) -> str:
        """The owner of all addresses of this network; "" if none, several, or a CIDR inside has another owner."""
        bits, prefix = _split(network, prefix_length)
        for host_bits, networks in self._tables[len(network)]:
            owners = networks.get(prefix >> (host_bits - bits)) if host_bits >= bits else None
            if owners is not None:
                whole = len(owners) == 1 and self._inside(network, prefix_length) <= {owners[0]}
                return owners[0] if whole else ""
        return ""

    def covers(self, network: bytes, prefix_length: int, besides: str = "") -> bool:
        """Whether this network equals or lies in a CIDR with an owner other than `besides`."""
        bits, prefix = _split(network, prefix_length)
        tables = self._tables[len(network)]
        around = (networks.get(prefix >> (host_bits - bits), ()) for host_bits, networks in tables if host_bits >= bits)
        return any(owner != besides for owners in around for owner in owners)

    def add(self, network: bytes, prefix_length: int, name: str) -> None:
        """Add `name` to the owners of this CIDR."""
        host_bits, prefix = _split(network, prefix_length)
        networks = self._networks(len(network), host_bits)
        networks[prefix] = (*_without(networks.get(prefix, ()), name), name)

    def remove(self, network: bytes, prefix_length: int, name: str) -> None:
        """Remove `name` from the owners of this CIDR; no effect if it is none."""
        host_bits, prefix = _split(network, prefix_length)
        networks = self._networks(len(network), host_bits)
        remaining = _without(networks.pop(prefix, ()), name)
        if remaining:
            networks[prefix] = remaining
        elif not networks:
            self._tables[len(network)].remove((host_bits, networks))

    def _inside(self, network: bytes, prefix_length: int) -> set[str]:
        """The owners of the longer CIDRs inside a network. A linear search: few clusters nest pod CIDRs."""
        bits, prefix = _split(network, prefix_length)
        return {
            owner
            for host_bits, networks in self._tables[len(network)]
            if host_bits < bits
            for inner, owners in networks.items()
            if inner >> (bits - host_bits) == prefix
            for owner in owners
        }

    def _networks(self, size: int, host_bits: int) -> dict[int, tuple[str, ...]]:
        """The dictionary of one prefix length, created on first use."""
        tables = self._tables[size]
        for found, networks in tables:
            if found == host_bits:
                return networks
        networks = {}
        tables.append((host_bits, networks))
        tables.sort(key=lambda table: table[0])
        return networks


def _split(network: bytes, prefix_length: int) -> tuple[int, int]:
    """The number of a network's host bits, and the network without them, as an integer."""
    host_bits = len(network) * 8 - prefix_length
    return host_bits, int.from_bytes(network, "big") >> host_bits


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(other for other in names if other != name)
