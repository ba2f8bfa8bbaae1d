"""All records of one zone, by name and type. Built once from the text of a file, then only read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from topodns.cluster.facts import Fact
from topodns.dns.message import RRset, RRType
from topodns.dns.names import Name, is_subdomain, name_text, name_wire, wire_labels
from topodns.dns.zone_text import BadZone

MAX_RECORDS: Final = 10_000  # of one zone; a larger one is no case for a DNS server of a cluster

_SOA, _NS, _CNAME = int(RRType.SOA), int(RRType.NS), int(RRType.CNAME)
_NSEC3PARAM: Final = 51
_SIGNING: Final = frozenset((int(RRType.RRSIG), int(RRType.NSEC), int(RRType.NSEC3), _NSEC3PARAM))

RRsets = Mapping[int, RRset]
_NONE: Final[RRsets] = {}


def file_fact(path: str) -> Fact:
    """What is in this zone file: what every answer from it rests on."""
    return Fact("zone file", "", path)


@dataclass(frozen=True, slots=True)
class ZoneTable:
    """`nodes` has every name that exists, those without records between others (empty non-terminals) too."""

    origin: Name
    soa: RRset
    nodes: Mapping[Name, RRsets]  # RRsets by type, owners in wire form as the file spells them

    def rrsets(self, name: Name) -> RRsets:
        return self.nodes.get(name, _NONE)

    @property
    def name_servers(self) -> tuple[RRset, ...]:
        """The NS RRset of the apex, if there is one."""
        servers = self.nodes[self.origin].get(_NS)
        return (servers,) if servers is not None else ()

    @property
    def serial(self) -> int:
        return int.from_bytes(self.soa.rdatas[0][-20:-16], "big")


class TableBuilder:
    """Takes the records of a zone one by one."""

    def __init__(self, origin: Name) -> None:
        self._origin = origin
        self._nodes: dict[Name, dict[int, RRset]] = {}
        self._records = 0
        self._stranger = ""  # the owner of an SOA record outside

    def add(self, record: RRset) -> None:
        """Take in an RRset of one record. One that is outside of the zone is left out. Raises BadZone."""
        self._records += 1
        if self._records > MAX_RECORDS:
            raise BadZone(f"more than {MAX_RECORDS} records")
        if record.rtype in _SIGNING:
            raise BadZone("a signed zone, and topodns serves no signatures: take an unsigned file, or another server")
        name = wire_labels(record.owner.lower())
        if not is_subdomain(name, self._origin):
            if record.rtype == _SOA:
                self._stranger = name_text(name)
            return
        if record.rtype == _SOA:
            self._check_soa(name)
        self._insert(name, record)

    def done(self) -> ZoneTable:
        """The table. Raises BadZone where there is no SOA record at the apex."""
        soa = self._nodes.get(self._origin, {}).get(_SOA)
        if soa is None:
            found = f", found one for {self._stranger}" if self._stranger else ""
            raise BadZone(f"no SOA record for {name_text(self._origin)}{found}")
        return ZoneTable(self._origin, soa, self._nodes)

    def _check_soa(self, name: Name) -> None:
        if name != self._origin:
            raise BadZone(f"an SOA record for {name_text(name)} inside of {name_text(self._origin)}")
        if _SOA in self._nodes.get(name, {}):
            raise BadZone(f"a second SOA record for {name_text(name)}")

    def _insert(self, name: Name, record: RRset) -> None:
        rrsets = self._node(name)
        held = rrsets.get(record.rtype)
        if held is None:
            rrsets[record.rtype] = record
            return
        if record.rtype == _CNAME and record.rdatas != held.rdatas:
            raise BadZone(f"a second CNAME record for {name_text(name)}")
        rdatas = tuple(dict.fromkeys((*held.rdatas, *record.rdatas)))
        # RFC 2181 section 5.2: one TTL for all records of an RRset.
        rrsets[record.rtype] = held._replace(ttl=min(held.ttl, record.ttl), rdatas=rdatas)

    def _node(self, name: Name) -> dict[int, RRset]:
        """The node of a name in the zone, made with all those above it."""
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = {}
            if name != self._origin:
                self._node(name[1:])
        return node


def soa_of_absence(table: ZoneTable) -> RRset:
    """The SOA record as it goes with a negative answer: with the TTL of that (RFC 2308 section 3)."""
    minimum = int.from_bytes(table.soa.rdatas[0][-4:], "big")
    return table.soa._replace(owner=name_wire(table.origin), ttl=min(table.soa.ttl, minimum))
