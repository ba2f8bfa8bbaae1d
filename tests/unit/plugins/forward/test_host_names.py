"""Addresses in the place of host names. The lookup itself: tests/stories/test_forward_host_names.py."""

from tests.support.corefile_settings import settings
from topodns.plugins.forward.host_names import with_addresses


def names(corefile: str, addresses: dict[str, list[str]]) -> list[str]:
    found = with_addresses(settings(corefile), addresses)
    return [upstream.name for forward in found.blocks[0].settings["forward"] for upstream in forward.upstreams]


def test_each_address_takes_the_place_of_the_name_once() -> None:
    corefile = ". {\nforward . 192.0.2.2:5300 dns.example:5300 192.0.2.9\n}\n"
    addresses = {"dns.example": ["192.0.2.1", "192.0.2.2", "2001:db8::1"]}
    assert names(corefile, addresses) == ["192.0.2.2:5300", "192.0.2.1:5300", "[2001:db8::1]:5300", "192.0.2.9:53"]


def test_a_name_has_the_addresses_that_its_own_resolvers_know() -> None:
    with_resolver = "forward b dns.example {\nresolver 192.0.2.53 [2001:db8::53]:54\n}"
    addresses = {"dns.example": ["192.0.2.1"], "dns.example 192.0.2.53:53 [2001:db8::53]:54": ["192.0.2.2"]}
    assert names(f". {{\nforward a dns.example\n{with_resolver}\n}}\n", addresses) == ["192.0.2.1:53", "192.0.2.2:53"]


def test_the_name_stays_the_one_in_the_certificate() -> None:
    found = with_addresses(settings(". {\nforward . tls://dns.example\n}\n"), {"dns.example": ["192.0.2.1"]})
    (upstream,) = found.blocks[0].settings["forward"][0].upstreams
    assert (upstream.host, upstream.port, upstream.server_name, upstream.is_name) == (
        *("192.0.2.1", 853),
        *("dns.example", False),
    )
