"""SRV answers and the address records that go with names in RDATA (RFC 2782), with CoreDNS's numbers."""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from topodns.dns.message import RRset, RRType

_HEAD: Final = Struct("!HHH")
_PRIORITY: Final = 0
_A, _AAAA, _SRV = int(RRType.A), int(RRType.AAAA), int(RRType.SRV)  # reading an Enum's member costs 0.1 us


class Offer(NamedTuple):
    """One port at one address of one target."""

    target: bytes  # wire-form name
    address: bytes  # packed
    port: int


def srv_records(offers: Sequence[Offer], ttl: int) -> tuple[tuple[RRset, ...], tuple[RRset, ...]]:
    """The answer, one record per distinct (target, port), and the targets' addresses; in the order offered.

    The weight shares 100 among all offers, repeats included, and is at least 1.
    """
    if not offers:
        return (), ()
    weight = max(1, 100 // len(offers))
    rdatas = dict.fromkeys(_HEAD.pack(_PRIORITY, weight, offer.port) + offer.target for offer in offers)
    additional = glue(((offer.target, offer.address) for offer in offers), ttl)
    return (RRset(b"", _SRV, ttl, tuple(rdatas)),), additional


def address_records(qtype: int, ttl: int, addresses: tuple[bytes, ...]) -> tuple[RRset, ...]:
    """The answer of these packed addresses, all of the family of `qtype`; empty where there are none."""
    return (RRset(b"", qtype, ttl, addresses),) if addresses else ()


def glue(pairs: Iterable[tuple[bytes, bytes]], ttl: int) -> tuple[RRset, ...]:
    """The address records of these (wire-form name, packed address) pairs, without repeats, in order."""
    owners: dict[tuple[bytes, int], dict[bytes, None]] = {}
    for target, address in pairs:
        owners.setdefault((target, address_type(address)), {})[address] = None
    return tuple(RRset(target, rtype, ttl, tuple(addresses)) for (target, rtype), addresses in owners.items())


def address_type(address: bytes) -> int:
    """The type of the record whose RDATA this packed address is: A or AAAA."""
    return _A if len(address) == 4 else _AAAA
