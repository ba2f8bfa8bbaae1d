"""IPv4-mapped IPv6 addresses are IPv4 addresses, in texts and in octets."""

from ipaddress import ip_address, ip_network

import pytest

from topodns.dns.addresses import NetworkList, is_of_machine, packed_address, unmapped, unmapped_network


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::ffff:0:1", "0.0.0.1"),
        ("::10.0.0.1", "::a00:1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("::", "::"),
    ],
)
def test_a_text_gives_the_octets_of_its_address(text: str, address: str) -> None:
    expected = ip_address(address).packed
    assert packed_address(text) == expected
    assert unmapped(ip_address(text).packed) == expected
    assert unmapped(expected) == expected


def test_any_other_text_is_an_error() -> None:
    for text in ("", "10.0.0", "10.0.0.01", "10.0.0.1/32", "web"):
        with pytest.raises(ValueError, match="does not appear"):
            packed_address(text)


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::FFFF:10.1.2.3/104", "10.0.0.0/8"),
        ("::ffff:10.1.2.3/128", "10.1.2.3/32"),
        ("::ffff:10.1.2.3", "10.1.2.3/32"),
        ("::ffff:10.1.2.3/97", "0.0.0.0/1"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::ffff:10.1.2.3/95", "::fffe:0:0/95"),
        ("::ffff:10.1.2.3/24", "::/24"),
        ("::/0", "::/0"),
        ("::10.0.0.0/104", "::a00:0/104"),
        ("10.1.2.3/8", "10.0.0.0/8"),
    ],
)
def test_a_network_is_that_of_go_s_parsecidr(text: str, network: str) -> None:
    assert str(unmapped_network(text)) == network


def test_a_length_above_that_of_the_written_address_is_an_error() -> None:
    for text in ("::ffff:10.0.0.0/129", "10.0.0.0/33"):
        with pytest.raises(ValueError, match="does not appear"):
            unmapped_network(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.53", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("::", True),
        ("192.0.2.1", True),
        ("192.0.2.2", False),
        ("2001:db8::1", False),
    ],
)
def test_loopback_unspecified_and_own_addresses_are_of_the_machine(text: str, expected: bool) -> None:
    assert is_of_machine(packed_address(text), {packed_address("192.0.2.1")}) is expected


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
