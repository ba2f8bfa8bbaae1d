"""The owners of sockets that take DNS at the listen addresses, and the log lines about them."""

import socket
import struct
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.host_network_builder import host_network
from topodns.hostnet import port_watch
from topodns.hostnet.port_watch import BoundSocket, PortWatch, write_request

ADDRESS = "169.254.20.10"
OWN, INSTANCE, FOREIGN = (BoundSocket("udp", ip_address(ADDRESS), 0, inode) for inode in (1, 2, 3))


@pytest.fixture
def watch() -> PortWatch:
    instance_registry: Any = SimpleNamespace(own_sockets=lambda: frozenset({1}), others_sockets=lambda: frozenset({2}))
    return PortWatch(host_network(ADDRESS), instance_registry)


def test_before_the_first_look_nothing_is_known(watch: PortWatch) -> None:
    assert watch.counts is None


def test_sockets_are_ours_another_instance_s_or_foreign(watch: PortWatch) -> None:
    for _ in range(2):
        watch.update([OWN, INSTANCE, FOREIGN])
    assert watch.counts == {"instance": 1, "foreign": 1}


def test_a_socket_is_foreign_at_the_second_look_that_finds_it(
    watch: PortWatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.update([OWN, FOREIGN])
    assert watch.counts == {"instance": 0, "foreign": 0}
    watch.update([OWN])
    watch.update([OWN, FOREIGN])
    assert watch.counts == {"instance": 0, "foreign": 0}
    assert caplog.text == ""


def test_a_foreign_socket_is_named_once_and_its_end_said(watch: PortWatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for _ in range(4):
        watch.update([OWN, FOREIGN])
    watch.update([OWN])
    watch.update([OWN])
    assert [record.getMessage() for record in caplog.records] == [
        f"another program takes a part of the questions to {ADDRESS} port 53: a udp socket of user 0, inode 3",
        "no other program takes questions to the listen addresses any more",
    ]


def test_where_the_kernel_has_no_counts_nothing_is_counted_and_it_is_logged_once(
    watch: PortWatch, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(port_watch, "sockets_at", refuse)
    for _ in range(2):
        watch.update(watch.list_sockets())
    assert watch.counts is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(("found", "taken"), [([], False), ([OWN], False), ([OWN, FOREIGN], True), (None, True)])
def test_a_port_is_taken_where_a_socket_is_not_our_own_and_in_doubt(
    watch: PortWatch, found: list[BoundSocket] | None, taken: bool
) -> None:
    assert watch.is_taken(found) is taken


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
