"""Opens listening sockets: their options, and the error if one cannot be opened. No DNS in here."""

import errno
import logging
import os
import socket
from typing import Final

from topodns.net.mmsg import IP_PKTINFO
from topodns.net.reuseport import Binding, Sharing
from topodns.netlink.route import is_tentative

log = logging.getLogger(__name__)

RECEIVE_BUFFER: Final = 4 << 20  # octets; the kernel allows no more than net.core.rmem_max

_ALONE: Final = Binding()
_FREEBIND: Final = {  # linux/in.h and in6.h
    socket.AF_INET: (socket.IPPROTO_IP, 15),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 78),
}
_NO_FAMILY: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})


class ListenError(Exception):
    """A socket could not be opened. The text has the transport (udp or tcp), address, port and reason."""

    def __init__(self, transport: str, host: str, port: int, reason: OSError) -> None:
        shown = f"[{host}]" if ":" in host else host
        why = os.strerror(reason.errno).lower() if reason.errno and reason.errno > 0 else reason.strerror or str(reason)
        self._why = f"{shown}:{port}: {why}"
        super().__init__(f"listen {transport} {self._why}")
        self.in_use = reason.errno == errno.EADDRINUSE
        self.no_family = reason.errno in _NO_FAMILY  # or no such address on this machine

    def add_owner(self, owner: str) -> None:
        """Begin the text with the directive of the Corefile, `FILE:LINE: 'DIRECTIVE'`, instead of the transport."""
        self.args = (f"{owner} cannot listen on {self._why}",)


def open_udp(host: str, port: int, binding: Binding = _ALONE) -> list[socket.socket]:
    """The bound, non-blocking UDP sockets for an address; for "" one for IPv4, and one for IPv6 if the machine has it.

    An IPv6 link-local address has `%interface` (RFC 4007 section 11). The socket of an IPv6 address that is still
    tentative receives as soon as the address is usable. Wildcard sockets report each datagram's destination address
    (IP_PKTINFO), so that the reply can leave from it. Port 0 is any free port, the same for both families. Raises
    ListenError, with nothing left open.
    """
    return _open(socket.SOCK_DGRAM, host, port, binding)


def open_tcp(host: str, port: int, binding: Binding = _ALONE) -> list[socket.socket]:
    """The bound, non-blocking TCP sockets for an address, not yet listening; number and errors as of `open_udp`."""
    return _open(socket.SOCK_STREAM, host, port, binding)


def _open(kind: socket.SocketKind, host: str, port: int, binding: Binding) -> list[socket.socket]:
    if host:
        return [_open_one(socket.AF_INET6 if ":" in host else socket.AF_INET, kind, host, port, binding)]
    sock = _open_one(socket.AF_INET, kind, "0.0.0.0", port, binding)
    try:
        return [sock, _open_one(socket.AF_INET6, kind, "::", sock.getsockname()[1], binding)]
    except ListenError as failed:
        if failed.no_family:
            return [sock]
        sock.close()
        raise


def _open_one(
    family: socket.AddressFamily, kind: socket.SocketKind, host: str, port: int, binding: Binding
) -> socket.socket:
    sock: socket.socket | None = None
    try:
        sock = socket.socket(family, kind)
        _prepare(sock)
        if kind == socket.SOCK_DGRAM:
            _prepare_udp(sock, host)
        _bind(sock, host, port, binding)
    except OSError as reason:
        if sock is not None:
            sock.close()
        raise ListenError("udp" if kind == socket.SOCK_DGRAM else "tcp", host, port, reason) from reason
    return sock


def _bind(sock: socket.socket, host: str, port: int, binding: Binding) -> None:
    if binding.free:
        sock.setsockopt(*_FREEBIND[sock.family], 1)
    if binding.sharing is Sharing.JOINED:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    address = _socket_address(sock.family, host, port)
    try:
        sock.bind(address)
    except OSError as problem:
        if problem.errno != errno.EADDRNOTAVAIL or sock.family != socket.AF_INET6 or not is_tentative(host):
            raise
        sock.setsockopt(*_FREEBIND[sock.family], 1)
        sock.bind(address)
        if sock.type == socket.SOCK_DGRAM:
            log.info("listen [%s]:%d: a tentative address, which answers once no other machine has it", host, port)
    if binding.sharing is Sharing.FIRST:
        # Set after bind, which must fail if the port is in use, even by sockets with SO_REUSEPORT.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def _socket_address(family: socket.AddressFamily, host: str, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
    """The argument of `socket.bind`, with the index of the interface after `%`. Raises OSError if there is none."""
    address, _, interface = host.partition("%")
    if family == socket.AF_INET:
        return address, port
    return address, port, 0, socket.if_nametoindex(interface) if interface else 0


def _prepare(sock: socket.socket) -> None:
    sock.setblocking(False)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if sock.type == socket.SOCK_STREAM:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # despite connections in TIME_WAIT


def _prepare_udp(sock: socket.socket, host: str) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    if host == "::":
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    elif host == "0.0.0.0":
        sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
