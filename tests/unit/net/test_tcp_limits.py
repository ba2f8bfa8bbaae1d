"""Limits of DNS clients over TCP, reduced where there are few file descriptors."""

import pytest

from topodns.net.tcp_limits import TcpLimits


@pytest.mark.parametrize(
    ("connections", "expected"),
    [(5000, (1000, 500, 300)), (1000, (1000, 500, 300)), (100, (100, 50, 30)), (1, (1, 1, 1))],
)
def test_limits_of_a_client_are_reduced_in_proportion(connections: int, expected: tuple[int, int, int]) -> None:
    limits = TcpLimits().within(connections)
    assert (limits.connections, limits.per_prefix, limits.per_address) == expected
    assert limits.idle == TcpLimits().idle
