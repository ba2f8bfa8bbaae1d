"""Addresses of upstreams, and how a failure reads in a log line."""

import errno
import socket
import ssl

import pytest

from topodns.net.upstream.address import failure_of, resolve_endpoint
from topodns.query.upstream import Failure


@pytest.mark.parametrize(
    ("address", "port", "name", "family"),
    [
        ("10.0.0.10", 53, "10.0.0.10:53", socket.AF_INET),
        ("2001:db8::1", 853, "[2001:db8::1]:853", socket.AF_INET6),
        ("fe80::1%lo", 53, "[fe80::1%lo]:53", socket.AF_INET6),
        ("2001:db8::1%en0", 53, "[2001:db8::1]:53", socket.AF_INET6),
        ("::1%lo", 53, "[::1]:53", socket.AF_INET6),
    ],
)
def test_an_endpoint_is_named_as_metrics_show_it(
    address: str, port: int, name: str, family: socket.AddressFamily
) -> None:
    endpoint = resolve_endpoint(address, port, None, "", "")
    assert (endpoint.name, endpoint.family, endpoint.peer[1]) == (name, family, port)


def test_a_link_local_address_keeps_its_interface() -> None:
    assert resolve_endpoint("fe80::1%lo", 53, None, "", "").peer[3] == socket.if_nametoindex("lo")


def test_an_interface_that_does_not_exist_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError) as refused:
        resolve_endpoint("fe80::1%nosuch0", 53, None, "", "")
    assert failure_of(refused.value).problem == "no such device"


def test_the_certificate_is_for_the_address_unless_a_name_is_given() -> None:
    assert resolve_endpoint("10.0.0.10", 853, None, "", "").server_name == "10.0.0.10"
    assert resolve_endpoint("10.0.0.10", 853, None, "dns.example", "").server_name == "dns.example"


@pytest.mark.parametrize("text", ["dns.example", "10.0.0", "10.0.0.10.", ""])
def test_only_addresses_are_accepted_and_nothing_is_looked_up(text: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        resolve_endpoint(text, 53, None, "", "")


@pytest.mark.parametrize(
    ("reason", "problem"),
    [
        pytest.param(None, "connection closed by the upstream", id="orderly end"),
        pytest.param(
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('::1', 53)"), "connection refused"
        ),
        pytest.param(OSError(errno.ENETUNREACH, ""), "network is unreachable"),
        pytest.param(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), "TLS: protocol error"),
        pytest.param(ConnectionAbortedError("SSL handshake is taking longer"), "SSL handshake is taking longer"),
        pytest.param(ValueError(), "ValueError"),
    ],
)
def test_a_failure_has_the_text_of_its_cause(reason: Exception | None, problem: str) -> None:
    assert failure_of(reason) == Failure(problem, timed_out=False)


@pytest.mark.parametrize("reason", [TimeoutError(), OSError(errno.ETIMEDOUT, "Connection timed out")])
def test_a_timeout_is_distinguished_from_other_failures(reason: Exception) -> None:
    assert failure_of(reason) == Failure("i/o timeout", timed_out=True)
