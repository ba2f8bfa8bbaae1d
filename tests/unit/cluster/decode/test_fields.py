"""Addresses and prefixes as API objects spell them."""

import re
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.model_builders import packed
from topodns.cluster.decode.fields import parse_address, parse_prefix


@given(st.ip_addresses())
def test_an_address_is_its_octets(address: IPv4Address | IPv6Address) -> None:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    assert parse_address(str(address)) == (mapped or address).packed


@pytest.mark.parametrize("text", ["::ffff:10.0.0.1", "::ffff:a00:1", "::FFFF:10.0.0.1", "0:0:0:0:0:ffff:10.0.0.1"])
def test_an_ipv4_mapped_address_is_the_ipv4_address(text: str) -> None:
    assert parse_address(text) == packed("10.0.0.1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "None",
        "10.0.0",
        "10.0.0.0.1",
        "10.0.0.256",
        "10.0.0.0256",
        "10.0.0.0x1",
        "10.0.0.-1",
        "10.0.0.+1",
        " 10.0.0.1",
        "10.0.0.1 ",
        "10.0.0.\u0661",
        "10.0.0.1/32",
        "fe80::1%eth0",
        "::1::",
        "db.example.com",
    ],
)
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear to be|has a scope"):
        parse_address(text)


def with_zeros(text: str, counts: list[int]) -> str:
    """The text with so many zeros before each of its numbers."""
    zeros = iter(counts * 8)
    return re.sub(r"[0-9a-fA-F]+", lambda number: "0" * next(zeros) + number[0], text)


COUNTS = st.lists(st.integers(0, 4), min_size=1, max_size=8)


@given(st.ip_addresses(), COUNTS, st.integers(0, 32))
def test_numbers_with_leading_zeros_are_the_same_numbers(
    address: IPv4Address | IPv6Address, counts: list[int], length: int
) -> None:
    text = with_zeros(str(address), counts)
    assert parse_address(text) == parse_address(str(address))
    assert parse_prefix(f"{text}/0{length}") == parse_prefix(f"{address}/{length}")


@given(st.ip_addresses(v=4), COUNTS, st.sampled_from(["::ffff:", "::", "64:ff9b::", "0:0:0:0:0:ffff:", "fd00::1:"]))
def test_numbers_of_an_embedded_ipv4_address_may_have_leading_zeros_too(
    address: IPv4Address, counts: list[int], before: str
) -> None:
    assert parse_address(before + with_zeros(str(address), counts)) == parse_address(f"{before}{address}")


def test_a_number_with_leading_zeros_is_decimal() -> None:
    assert parse_address("010.096.011.0255") == packed("10.96.11.255")


PREFIXES = {
    "010.244.001.0/024": ("10.244.1.0", 24),
    "10.244.1.0/24": ("10.244.1.0", 24),
    "10.244.1.7/24": ("10.244.1.0", 24),
    "10.244.1.7": ("10.244.1.7", 32),
    "0.0.0.0/0": ("0.0.0.0", 0),
    "::ffff:10.244.1.0/120": ("10.244.1.0", 24),
    "fd00:244:1::/64": ("fd00:244:1::", 64),
}


@pytest.mark.parametrize(("text", "prefix"), PREFIXES.items())
def test_a_prefix_is_its_network_and_length(text: str, prefix: tuple[str, int]) -> None:
    assert parse_prefix(text) == (packed(prefix[0]), prefix[1])


@pytest.mark.parametrize("text", ["", "10.0.0.0/33", "10.0.0/24", "fd00::/129", "ten"])
def test_text_that_is_no_prefix_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_prefix(text)
