"""The question to the kernel about sockets at an address and a port (linux/inet_diag.h), octet for octet."""

import socket
import struct
from ipaddress import ip_address

import pytest

from topodns.netlink.sock_diag import write_request


@pytest.mark.parametrize(
    ("family", "protocol", "address", "condition"),
    [
        (socket.AF_INET, "udp", "169.254.20.10", "07 10 14 00  02 20 00 00  35 00 00 00  a9 fe 14 0a"),
        (socket.AF_INET6, "tcp", "169.254.20.10", "07 10 14 00  02 20 00 00  35 00 00 00  a9 fe 14 0a"),
        (
            socket.AF_INET6,
            "tcp",
            "fd00:20::10",
            "07 1c 20 00  0a 80 00 00  35 00 00 00  fd 00 00 20 00 00 00 00  00 00 00 00 00 00 00 10",
        ),
    ],
)
def test_the_kernel_is_asked_for_one_address_and_port_alone(
    family: socket.AddressFamily, protocol: str, address: str, condition: str
) -> None:
    request = write_request(family, protocol, ip_address(address), 53)
    asked_family, number, _, states = struct.unpack_from("=BBBxI", request)
    assert asked_family == family
    assert (number, states) == {"udp": (17, 1 << 7), "tcp": (6, 1 << 10)}[protocol]
    code = bytes.fromhex(condition)
    assert request[56:] == struct.pack("=HH", 4 + len(code), 1) + code
