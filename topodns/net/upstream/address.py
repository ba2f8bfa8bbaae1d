"""Where an upstream is and from where it is asked."""

import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The two ends of whatever is sent to one upstream."""

    address: str
    port: int
    family: socket.AddressFamily
    peer: tuple[Any, ...]  # as `socket.connect` takes it
    source_address: str  # "": the kernel's choice
    tls: ssl.SSLContext | None
    server_name: str  # what the certificate is for; with TLS never ""

    @property
    def name(self) -> str:
        """As metrics and logs show it: "10.0.0.10:53", "[2001:db8::1]:853"."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    @property
    def source(self) -> tuple[str, int] | None:
        """As `socket.bind` takes it: the port is the kernel's choice."""
        return (self.source_address, 0) if self.source_address else None


def resolve_endpoint(
    address: str, port: int, tls: ssl.SSLContext | None, server_name: str, source_address: str
) -> Endpoint:
    """The endpoint at the text of an IP address; nothing is looked up.

    Raises ValueError for any other text, OSError for an interface that is not here.
    """
    ip_address(address)  # getaddrinfo would take 10.1 for 10.0.0.1
    found = socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)
    family, _, _, _, peer = found[0]
    return Endpoint(address, port, family, peer, source_address, tls, server_name or address)
