"""How a failure reads in a log line."""

import errno
import ssl

import pytest

from topodns.net.upstream.address import failure_of
from topodns.query.upstream import Failure


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
