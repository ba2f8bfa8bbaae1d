"""Messages of rtnetlink, and which of them mean that something of ours is gone."""

import struct
from ipaddress import ip_address

import pytest

from topodns.hostnet.monitor import concerns
from topodns.hostnet.rules import HostNetwork
from topodns.netlink.route import (
    DELETE_ADDRESS,
    DELETE_LINK,
    NEW_ADDRESS,
    NEW_LINK,
    IPAddress,
    Link,
    LinkAddress,
    Message,
    read_address,
    read_link,
    read_messages,
    write_address,
    write_link,
)

IPV4, IPV6, OTHER = ip_address("169.254.20.10"), ip_address("fd00::10"), ip_address("192.0.2.1")
OURS = HostNetwork((IPV4, IPV6))


def test_a_link_is_read_as_it_was_written() -> None:
    body = write_link(7, name="nodelocaldns", kind="dummy", alias="topodns", up=True)
    assert read_link(body) == Link(7, "nodelocaldns", True, "dummy", "topodns")
    assert read_link(write_link(3)) == Link(3, "", False, "", "")


@pytest.mark.parametrize("address", [IPV4, IPV6])
def test_an_address_is_read_as_it_was_written_and_is_alone_in_its_network(address: IPAddress) -> None:
    body = write_address(7, address)
    assert read_address(body) == LinkAddress(7, address)
    assert body[1] == address.max_prefixlen


def test_an_address_of_another_family_is_none() -> None:
    assert read_address(struct.pack("=BBBBI", 17, 0, 0, 0, 7)) is None


def test_messages_of_one_datagram_are_told_apart_with_what_pads_them() -> None:
    bodies = (b"a", b"four", b"")
    data = b"".join(
        struct.pack("=IHHII", 16 + len(body), 16 + number, 0, 0, 0) + body.ljust((len(body) + 3) // 4 * 4, b"\0")
        for number, body in enumerate(bodies)
    )
    assert list(read_messages(data)) == [Message(16 + number, body) for number, body in enumerate(bodies)]


@pytest.mark.parametrize("data", [b"", b"\0" * 15, struct.pack("=IHHII", 0, 16, 0, 0, 0)])
def test_what_is_too_short_or_has_no_length_ends_the_datagram(data: bytes) -> None:
    assert list(read_messages(data)) == []


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        pytest.param(DELETE_ADDRESS, write_address(7, IPV4), True, id="our address is gone"),
        pytest.param(DELETE_ADDRESS, write_address(7, OTHER), False, id="another address is gone"),
        pytest.param(NEW_ADDRESS, write_address(7, IPV4), False, id="our address is there"),
        pytest.param(DELETE_LINK, write_link(7, name="nodelocaldns"), True, id="our link is gone"),
        pytest.param(DELETE_LINK, write_link(7, name="veth1"), False, id="another link is gone"),
        pytest.param(NEW_LINK, write_link(7, name="nodelocaldns"), True, id="our link is down"),
        pytest.param(NEW_LINK, write_link(7, name="nodelocaldns", up=True), False, id="our link is up"),
    ],
)
def test_events_that_take_something_away_concern_us(kind: int, body: bytes, expected: bool) -> None:
    assert concerns(OURS, Message(kind, body)) is expected
