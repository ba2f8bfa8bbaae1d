"""What becomes of a response: owners and values renamed, TTLs kept within bounds, another rcode."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from topodns.dns.message import RRset, RRType
from topodns.resolve.rewrite.passage import Returning
from topodns.resolve.rewrite.renaming import Rename, renamed_wire

_DNAME: Final = 39
_NAPTR_STRINGS: Final = 3  # FLAGS, SERVICES and REGEXP, behind ORDER and PREFERENCE (RFC 3403 section 4.1)
_NAME_AT: Final[Mapping[int, int]] = {  # where in the RDATA the name begins that `answer value` renames
    int(RRType.NS): 0,
    int(RRType.CNAME): 0,
    int(RRType.SOA): 0,  # MNAME, not RNAME: as CoreDNS
    int(RRType.PTR): 0,
    int(RRType.MX): 2,
    int(RRType.SRV): 6,
    int(RRType.NAPTR): 4,
    _DNAME: 0,
}


@dataclass(frozen=True, slots=True)
class OwnerRenaming:
    rename: Rename

    def __call__(self, returning: Returning) -> None:
        returning.replace(lambda rrset: rrset._replace(owner=renamed_wire(rrset.owner, self.rename)))


@dataclass(frozen=True, slots=True)
class ValueRenaming:
    rename: Rename

    def __call__(self, returning: Returning) -> None:
        returning.replace(self._renamed)

    def _renamed(self, rrset: RRset) -> RRset:
        if rrset.rtype not in _NAME_AT:
            return rrset
        return rrset._replace(rdatas=tuple(rename_value(rrset.rtype, rdata, self.rename) for rdata in rrset.rdatas))


def rename_value(rtype: int, rdata: bytes, rename: Rename) -> bytes:
    """RDATA of one of the types of `Part.VALUE`, its name renamed. Raises BadName where that gives no name."""
    start = _NAME_AT[rtype]
    if rtype == RRType.NAPTR:
        for _ in range(_NAPTR_STRINGS):
            start += 1 + rdata[start]
    end = start
    while rdata[end]:
        end += 1 + rdata[end]
    end += 1
    return rdata[:start] + renamed_wire(rdata[start:end], rename) + rdata[end:]


@dataclass(frozen=True, slots=True)
class TtlBounds:
    low: int
    high: int

    def __call__(self, returning: Returning) -> None:
        returning.replace(lambda rrset: rrset._replace(ttl=min(max(rrset.ttl, self.low), self.high)))


@dataclass(frozen=True, slots=True)
class RcodeChange:
    decided: int
    instead: int

    def __call__(self, returning: Returning) -> None:
        response = returning.resolution.response
        if response.rcode == self.decided:
            response.rcode = self.instead
