"""Which claims of a location count, by the source address of the query."""

from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from tests.support.model_builders import node, packed, state_of
from topodns.dns.addresses import NetworkList
from topodns.topology.claims import ClaimTrust

N1 = node("n1", {}, ["192.0.2.1", "2001:db8::1"], ["10.9.1.1"], ["10.1.0.0/16", "fd00:1::/64"])
N2 = node("n2", {}, ["192.0.2.2"], pod_cidrs=["10.2.0.0/16"])


def claims(trust: Sequence[str] = ()) -> ClaimTrust:
    return ClaimTrust(state_of(N1, N2), NetworkList(map(ip_network, trust)))


@pytest.mark.parametrize(
    ("source", "trusted"),
    [
        ("10.255.0.1", True),
        ("11.0.0.1", False),
        ("192.0.2.1", True),
        ("192.0.2.2", False),
        ("2001:db8::1", True),
        ("2001:db9::1", False),
        ("::10.0.0.1", False),  # an IPv6 address whose last octets would match
    ],
)
def test_prefixes_trust_their_own_family(source: str, trusted: bool) -> None:
    trusting = claims(trust=["10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32"])
    assert trusting.trusts(packed(source)) is trusted


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("192.0.2.1", ["n1"]),  # an address of the Node
        ("10.9.1.1", ["n1"]),  # its tunnel address
        ("10.1.0.1", ["n1"]),  # the gateway of its pod CIDR
        ("fd00:1::1", ["n1"]),
        ("192.0.2.2", ["n2"]),
        ("10.1.0.2", []),  # a Pod
        ("198.51.100.1", []),
        ("203.0.113.9", ["n1", "n2"]),  # trusted
    ],
)
def test_an_untrusted_source_may_name_only_the_node_whose_address_it_has(source: str, names: list[str]) -> None:
    trusting = claims(trust=["203.0.113.0/24"])
    assert [name for name in ("n1", "n2") if trusting.may_name(packed(source), name)] == names
