"""Messages of rtnetlink, and which of them mean that something of ours is gone."""

import struct
from ipaddress import ip_address

import pytest

from topodns.hostnet.monitor import affects_link
from topodns.hostnet.rules import HostNetwork
from topodns.netlink.messages import Message, write_attribute
from topodns.netlink.route import (
    DELETE_ADDRESS,
    DELETE_LINK,
    NEW_ADDRESS,
    NEW_LINK,
    IPAddress,
    Link,
    LinkAddress,
    read_address,
    read_link,
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


@pytest.mark.parametrize(
    ("attributes", "address"),
    [
        pytest.param([(1, "127.0.0.1"), (2, "127.0.0.1")], "127.0.0.1", id="IPv4"),
        pytest.param([(1, "fd00::5")], "fd00::5", id="IPv6 has no IFA_LOCAL"),
        pytest.param([(1, "10.0.0.2"), (2, "10.0.0.1")], "10.0.0.1", id="this end of a point-to-point link"),
    ],
)
def test_the_address_is_that_of_this_end(attributes: list[tuple[int, str]], address: str) -> None:
    label = write_attribute(3, b"tun00\0")
    written = b"".join(write_attribute(kind, ip_address(text).packed) for kind, text in attributes)
    body = struct.pack("=BBBBI", 2, 24, 0, 0, 3) + label + written
    assert read_address(body) == LinkAddress(3, ip_address(address), "tun00")


def test_an_address_is_tentative_while_the_kernel_looks_for_duplicates() -> None:
    written = write_attribute(1, ip_address("fe80::5").packed)
    for flags, tentative in ((0x40, True), (0x48, True), (0x80, False)):
        found = read_address(struct.pack("=BBBBI", 10, 64, flags, 253, 3) + written)
        assert found == LinkAddress(3, ip_address("fe80::5"), tentative=tentative)


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
    assert affects_link(OURS, Message(kind, body)) is expected
