"""The sockets that listeners get: what they are bound to, and whom the error names."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.event_loops import needs_ipv6
from topodns.net.mmsg import MMSG_AVAILABLE, MmsgBatch, PlainBatch, open_batch
from topodns.net.sockets import RECEIVE_BUFFER, ListenError, open_tcp, open_udp
from topodns.netlink.route import addresses_of

Opener = Callable[[str, int], list[socket.socket]]


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), pytest.param("::1", "[::1]", marks=needs_ipv6)]
)
def test_a_port_in_use_is_an_error_that_names_the_address(transport: str, host: str, shown: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
    with socket.socket(family, kind) as taken:
        taken.bind((host, 0))
        if transport == "tcp":
            taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ListenError) as caught:
            (open_udp if transport == "udp" else open_tcp)(host, port)
    assert str(caught.value) == f"listen {transport} {shown}:{port}: address already in use"
    assert caught.value.in_use


def test_an_address_of_another_machine_is_an_error_that_names_it() -> None:
    with pytest.raises(ListenError, match=r"listen udp 192\.0\.2\.1:5353: cannot assign requested address") as caught:
        open_udp("192.0.2.1", 5353)
    assert not caught.value.in_use


@needs_ipv6
@pytest.mark.parametrize("opener", [open_udp, open_tcp], ids=["udp", "tcp"])
def test_no_host_is_every_address_of_both_families_on_one_port(
    opener: Callable[[str, int], list[socket.socket]],
) -> None:
    first, second = opener("", 0)
    with first, second:
        assert (first.family, second.family) == (socket.AF_INET, socket.AF_INET6)
        assert first.getsockname()[1] == second.getsockname()[1]
        assert second.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1


@needs_ipv6
def test_when_one_family_is_taken_none_stays_open() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as taken:
        taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        taken.bind(("::", 0))
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=r"listen udp \[::\]"):
            open_udp("", port)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("0.0.0.0", port))


def test_a_second_server_of_the_same_user_does_not_share_the_port_by_accident() -> None:
    (old,) = open_udp("127.0.0.1", 0)
    with old, pytest.raises(ListenError, match=f"listen udp 127.0.0.1:{old.getsockname()[1]}: address already in use"):
        open_udp("127.0.0.1", old.getsockname()[1])


def test_the_batch_of_this_machine_is_the_quicker_one_where_libc_has_it() -> None:
    (sock,) = open_udp("127.0.0.1", 0)
    with sock:
        assert isinstance(open_batch(sock), MmsgBatch if MMSG_AVAILABLE else PlainBatch)
        with pytest.raises(BlockingIOError):
            sock.recv(1)


def test_the_receive_buffer_is_as_large_as_the_kernel_allows() -> None:
    (sock,) = open_udp("127.0.0.1", 0)
    with sock:
        allowed = int(Path("/proc/sys/net/core/rmem_max").read_text())
        # The kernel reports twice what it was asked for: socket(7).
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * min(RECEIVE_BUFFER, allowed)


# `bind INTERFACE` on this machine.


def test_the_loopback_interface_has_the_loopback_address() -> None:
    assert "127.0.0.1" in (addresses_of("lo") or ())


def test_an_interface_that_is_not_there_is_none() -> None:
    assert addresses_of("none-such0") is None
    assert addresses_of("not\0a name") is None
