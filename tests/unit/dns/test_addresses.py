"""IPv4-mapped IPv6 addresses are IPv4 addresses, in texts and in octets."""

from ipaddress import ip_address

import pytest

from topodns.dns.addresses import packed_address, unmapped


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
