"""What keeps the switch on: datagrams to the rules of our table of nftables, which renew what it lets through.

Such a datagram is dropped where it is understood, and the kernel then refuses it with EPERM. So the refusal is the
receipt, and a datagram that goes out says that the rules are not there.
"""

import errno
import socket

from topodns.edge.host_network.nftables_text import Order, payload
from topodns.edge.host_network.plan import HostNetwork
from topodns.settings.node_cache import IPAddress


class Beat:
    """Datagrams for the table with one key. They never wait."""

    def __init__(self, network: HostNetwork, key: bytes) -> None:
        self._destinations = {address: (str(address), network.port) for address in network.local_addresses}
        self._payloads = {order: payload(key, order) for order in Order}
        self._socks: dict[int, socket.socket] = {}

    def renew(self) -> bool:
        """Switch all addresses on, for SWITCH_SECONDS from now. Returns whether the rules were there for all."""
        return all([self._order(Order.RENEW, address) for address in self._destinations])

    def expire(self) -> bool:
        """Switch all addresses off at once. Returns whether the rules were there."""
        return all([self._order(Order.EXPIRE, address) for address in self._destinations])

    def knock(self) -> bool:
        """Return whether the rules are there; nothing changes."""
        return self._order(Order.KNOCK, next(iter(self._destinations)))

    def close(self) -> None:
        while self._socks:
            self._socks.popitem()[1].close()

    def _order(self, order: Order, address: IPAddress) -> bool:
        try:
            self._sock(address.version).sendto(self._payloads[order], self._destinations[address])
        except OSError as refusal:
            return refusal.errno == errno.EPERM
        return False

    def _sock(self, version: int) -> socket.socket:
        sock = self._socks.get(version)
        if sock is None:
            sock = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
            sock.setblocking(False)
            self._socks[version] = sock
        return sock
