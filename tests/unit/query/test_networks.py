from ipaddress import ip_address, ip_network

import pytest

from topodns.query.networks import NetworkList

LIST = NetworkList(map(ip_network, ("10.1.0.0/16", "2001:db8::/32", "10.0.0.0/8", "192.0.2.7/32", "fd00::1/128")))


@pytest.mark.parametrize(
    ("address", "index"),
    [
        ("10.1.2.3", 0),
        ("10.2.0.0", 2),
        ("10.255.255.255", 2),
        ("11.0.0.0", None),
        ("192.0.2.7", 3),
        ("192.0.2.8", None),
        ("2001:db8:ffff::1", 1),
        ("2001:db9::", None),
        ("fd00::1", 4),
        ("::", None),
    ],
)
def test_the_first_network_in_the_list_that_holds_the_address_is_found(address: str, index: int | None) -> None:
    packed = ip_address(address).packed
    assert LIST.first_with(packed) == index
    assert (packed in LIST) == (index is not None)


def test_the_all_networks_hold_their_own_family_only() -> None:
    everything = NetworkList([ip_network("0.0.0.0/0")])
    assert ip_address("203.0.113.9").packed in everything
    assert ip_address("2001:db8::1").packed not in everything
