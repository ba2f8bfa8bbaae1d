"""The `dns64` directive: for whom A records are translated to AAAA records, and how."""

from dataclasses import dataclass
from typing import Final

WELL_KNOWN_PREFIX: Final = bytes.fromhex("0064ff9b") + bytes(8)  # 64:ff9b::/96, RFC 6052 section 2.1


@dataclass(frozen=True, slots=True)
class Dns64:
    prefix: bytes = WELL_KNOWN_PREFIX  # the octets that stand before the IPv4 address: 4, 5, 6, 7, 8 or 12
    translate_all: bool = False  # names that have AAAA records of their own too
    allow_ipv4: bool = False  # for clients that ask over IPv4 too
