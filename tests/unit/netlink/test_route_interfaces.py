"""Reading rtnetlink's answer about addresses."""

import struct
from ipaddress import ip_address

import pytest

from topodns.netlink.route import read_interface_address as read_address
from topodns.netlink.route import read_interface_messages as read_messages

ADDRESS, LOCAL, LABEL = 1, 2, 3


def new_address(index: int, *attributes: tuple[int, bytes]) -> bytes:
    """The body of an RTM_NEWADDR message."""
    body = struct.pack("=BBBBI", 2, 24, 0, 0, index)
    for kind, value in attributes:
        padding = b"\0" * (-len(value) % 4)
        body += struct.pack("=HH", 4 + len(value), kind) + value + padding
    return body


def packed(text: str) -> bytes:
    return ip_address(text).packed


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            new_address(1, (ADDRESS, packed("127.0.0.1")), (LOCAL, packed("127.0.0.1")), (LABEL, b"lo\0")),
            (1, packed("127.0.0.1")),
            id="IPv4",
        ),
        pytest.param(new_address(2, (ADDRESS, packed("fd00::5"))), (2, packed("fd00::5")), id="IPv6"),
        pytest.param(
            new_address(3, (LABEL, b"tun00\0"), (ADDRESS, packed("10.0.0.2")), (LOCAL, packed("10.0.0.1"))),
            (3, packed("10.0.0.1")),
            id="this end of a point-to-point link",
        ),
    ],
)
def test_an_address_and_its_interface(body: bytes, expected: tuple[int, bytes]) -> None:
    assert read_address(body) == expected


def test_messages_of_a_datagram_start_at_multiples_of_four() -> None:
    def message(kind: int, body: bytes) -> bytes:
        return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body + b"\0" * (-len(body) % 4)

    datagram = message(20, b"abcde") + message(20, b"") + message(3, b"\0\0\0\0")
    assert list(read_messages(datagram)) == [(20, b"abcde"), (20, b""), (3, b"\0\0\0\0")]


def test_a_message_with_length_zero_ends() -> None:
    assert len(list(read_messages(b"\0" * 32))) == 2
