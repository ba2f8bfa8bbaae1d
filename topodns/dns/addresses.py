"""Packed IP addresses, 4 or 16 octets: an IPv4-mapped IPv6 address is the IPv4 address, everywhere in topodns.

A client has one address by whatever socket its query arrives, and Go's net.ParseIP, which the API server and CoreDNS
use, does the same with texts.
"""

from ipaddress import ip_address
from typing import Final

IPV4_MAPPED: Final = bytes(10) + b"\xff\xff"  # the prefix of RFC 4291 section 2.5.5.2


def unmapped(address: bytes) -> bytes:
    """The packed address; an IPv4-mapped one as its 4 octets."""
    return address.removeprefix(IPV4_MAPPED)


def packed_address(text: str) -> bytes:
    """The packed address of a text, an IPv4-mapped one as 4 octets. A scope (`%eth0`) is dropped.

    Raises ValueError for a text that is no address.
    """
    return unmapped(ip_address(text).packed)
