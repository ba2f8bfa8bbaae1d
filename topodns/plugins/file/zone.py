"""The records of one zone by name and type: built once from a file, then read-only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from topodns.dependency import Fact
from topodns.dns.message import RRset
from topodns.dns.name import Name, is_subdomain, name_text, name_wire, wire_labels
from topodns.dns.rrtype import TYPE_NAMES, RRType
from topodns.dns.soa import negative_ttl
from topodns.dns.zonefile import BadZone, ZoneRecord

MAX_RECORDS: Final = 10_000  # of one zone; a larger zone needs another DNS server than a cluster's

_SIGNING: Final = frozenset((RRType.RRSIG, RRType.NSEC, RRType.NSEC3, RRType.NSEC3PARAM))
_SINGLE: Final = frozenset((RRType.SOA, RRType.CNAME))  # of which a name has one at most

RRsets = Mapping[int, RRset]
_NONE: Final[RRsets] = {}


def file_fact(path: str) -> Fact:
    """The content of this zone file, the dependency of every answer from it."""
    return Fact("zone file", "", path)


@dataclass(frozen=True, slots=True)
class ZoneTable:
    """`nodes` has every name that exists, empty non-terminals included."""

    origin: Name
    soa: RRset
    nodes: Mapping[Name, RRsets]  # RRsets by type, owners in wire form as the file spells them

    def rrsets(self, name: Name) -> RRsets:
        return self.nodes.get(name, _NONE)

    @property
    def name_servers(self) -> tuple[RRset, ...]:
        """The NS RRset of the apex, if there is one."""
        servers = self.nodes[self.origin].get(RRType.NS)
        return (servers,) if servers is not None else ()

    @property
    def serial(self) -> int:
        return int.from_bytes(self.soa.rdatas[0][-20:-16], "big")


class TableBuilder:
    """Builds a table from the records of a zone, one by one.

    `beside_cname` has the names with a CNAME and other records, which no name may have (RFC 2181 section 10.1; the
    exceptions are records of signed zones): the first record of each, and the first that does not go with it.
    """

    def __init__(self, origin: Name) -> None:
        self._origin = origin
        self._nodes: dict[Name, dict[int, RRset]] = {}
        self._firsts: dict[Name, ZoneRecord] = {}
        self._records = 0
        self._stranger = ""  # the owner of an SOA record outside
        self.beside_cname: dict[Name, tuple[ZoneRecord, ZoneRecord]] = {}

    def add(self, record: ZoneRecord) -> None:
        """Add a record; one outside the zone is ignored.

        Raises BadZone beyond MAX_RECORDS, and for RRSIG, NSEC, NSEC3 and NSEC3PARAM records, an SOA below the apex, and
        a second SOA or CNAME of a name with other data. Equal records are one (RFC 2181 section 5), as is the SOA that
        a zone transfer has at both ends (RFC 5936 section 2.2).
        """
        self._records += 1
        if self._records > MAX_RECORDS:
            raise record.error(f"more than {MAX_RECORDS} records")
        rtype = record.rrset.rtype
        if rtype in _SIGNING:
            raise record.error(
                "a signed zone, and topodns serves no signatures: take an unsigned file, or another server"
            )
        name = wire_labels(record.rrset.owner.lower())
        if is_subdomain(name, self._origin):
            self._insert(name, record)
        elif rtype == RRType.SOA:
            self._stranger = name_text(name)

    def done(self) -> ZoneTable:
        """The table. Raises BadZone if there is no SOA record at the apex."""
        soa = self._nodes.get(self._origin, {}).get(RRType.SOA)
        if soa is None:
            found = f", found one for {self._stranger}" if self._stranger else ""
            raise BadZone(f"no SOA record for {name_text(self._origin)}{found}")
        return ZoneTable(self._origin, soa, self._nodes)

    def _insert(self, name: Name, record: ZoneRecord) -> None:
        rrset = record.rrset
        if rrset.rtype == RRType.SOA and name != self._origin:
            raise record.error(f"an SOA record for {name_text(name)} inside of {name_text(self._origin)}")
        rrsets = self._node(name)
        held = rrsets.get(rrset.rtype)
        if held is None:
            rrsets[rrset.rtype] = rrset
            first = self._firsts.setdefault(name, record)
            if len(rrsets) > 1 and RRType.CNAME in rrsets:
                self.beside_cname.setdefault(name, (first, record))
            return
        if rrset.rtype in _SINGLE and rrset.rdatas != held.rdatas:
            raise record.error(f"a second {TYPE_NAMES[rrset.rtype]} record for {name_text(name)}")
        rdatas = tuple(dict.fromkeys((*held.rdatas, *rrset.rdatas)))
        # RFC 2181 section 5.2: one TTL for all records of an RRset.
        rrsets[rrset.rtype] = held._replace(ttl=min(held.ttl, rrset.ttl), rdatas=rdatas)

    def _node(self, name: Name) -> dict[int, RRset]:
        """The node of a name in the zone, created with all those above it."""
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = {}
            if name != self._origin:
                self._node(name[1:])
        return node


def soa_of_absence(table: ZoneTable) -> RRset:
    """The SOA record for a negative answer: its TTL is at most its MINIMUM (RFC 2308 section 3)."""
    return table.soa._replace(owner=name_wire(table.origin), ttl=negative_ttl(table.soa))
