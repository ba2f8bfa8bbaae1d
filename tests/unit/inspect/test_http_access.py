"""Which requests may read where Pods are. Those to /explain: tests/unit/inspect/explain/test_endpoint.py."""

import pytest

from topodns.inspect.http import refusal
from topodns.net.http_server.messages import HttpRequest


def refused(peer: str, public: bool, **headers: str) -> str:
    return refusal(
        HttpRequest("/", {}, peer, {name.replace("_", "-"): value for name, value in headers.items()}), public
    )


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.9", "2001:db8::1"])
def test_in_public_every_client_is_served_under_an_address(peer: str) -> None:
    for host in ("localhost:1", "10.0.0.1:8182", "[2001:db8::1]", "127.0.0.1"):
        assert refused(peer, True, host=host) == ""


@pytest.mark.parametrize(
    "host", ["attacker.example", "10.0.0.1.attacker.example:8182", "", "[::1", "page.internal:8182"]
)
def test_in_public_a_name_is_refused_as_it_may_be_of_a_foreign_page(host: str) -> None:
    assert refused("10.0.0.9", True, host=host) == "not to web pages: the Host is no IP address, nor localhost"


def test_in_public_a_foreign_page_is_refused() -> None:
    assert refused("10.0.0.9", True, host="10.0.0.1", origin="http://a.example") == (
        "not to web pages: the request has an Origin"
    )
    assert refused("10.0.0.9", True, host="10.0.0.1", sec_fetch_site="cross-site") == (
        "not to web pages: the request is of another site"
    )


def test_otherwise_only_loopback_is_served_under_a_name_of_loopback() -> None:
    assert refused("127.0.0.1", False, host="127.0.0.1:8182") == ""
    assert refused("10.0.0.9", False, host="127.0.0.1") == "only from loopback: kubectl port-forward, or exec"
    assert refused("127.0.0.1", False, host="10.0.0.1") == "not to web pages: the Host is no loopback address"
