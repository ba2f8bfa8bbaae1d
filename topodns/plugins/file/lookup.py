"""Lookup of a name in the table of a zone file.

It is that of RFC 1034 section 4.3.2, with wildcards by RFC 4592 and DNAME by RFC 6672. Sections and additional records
are those of CoreDNS's `file`, without DNSSEC. Differences, on purpose: a wildcard never matches a name that exists
without records; the TTL of a negative answer is at most the SOA's MINIMUM, also at the end of a CNAME chain; MAX_CHAIN
CNAMEs and DNAMEs in a row are followed, of CoreDNS nine, and a further one ends the answer.

Aliases that never end are SERVFAIL if one of them is synthesised, by a DNAME or a wildcard, and NOERROR with the CNAMEs
if all of them are records of the zone, as in CoreDNS.
"""

from dataclasses import dataclass, field
from typing import Final

from topodns.dns.message import Flag, Query, Response, RRset
from topodns.dns.name import MAX_WIRE, Name, is_subdomain, wire_labels
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.file.zone import RRsets, ZoneTable, soa_of_absence
from topodns.query.cname import MAX_CHAIN

_OF_APEX: Final = (RRType.SOA, RRType.NS)
# Types whose RDATA names a host whose addresses clients query next, and the octets before that name.
_HOST_AT: Final = {RRType.MX: 2, RRType.SRV: 6, RRType.SVCB: 2, RRType.HTTPS: 2}


@dataclass(slots=True)
class ZoneAnswer:
    """`response` is complete but for the records of `elsewhere`, the target of its last CNAME, outside the zone.

    `absent`: the name has no records of its own, so `fallthrough` may apply.
    """

    response: Response = field(default_factory=Response)
    elsewhere: Name | None = None
    absent: bool = False


def look_up(table: ZoneTable, query: Query) -> ZoneAnswer:
    """The answer to a query for a name in the zone."""
    walk = _Walk(table, query)
    walk.go()
    return walk.finding


class _Walk:
    """The path from the name queried along its aliases. `_owner`: wire form of `_name`, b"" for the name queried."""

    def __init__(self, table: ZoneTable, query: Query) -> None:
        self.finding = ZoneAnswer()
        self._response = self.finding.response
        self._table = table
        self._qtype = query.qtype
        self._spelling = query.spelling
        self._name, self._owner = query.qname, b""
        self._seen: dict[Name, int] = {}  # the names of aliases so far, with their places in the chain
        self._synthesised = -1  # the place of the last alias that is no record of the zone

    def go(self) -> None:
        while (alias := self._step()) is not None:
            self._seen[self._name] = len(self._seen)
            target = wire_labels(alias.lower())
            inside = is_subdomain(target, self._table.origin)
            if not inside:
                self.finding.elsewhere = target
            if not inside or target in self._seen or len(self._seen) > MAX_CHAIN:
                self._end(target, inside)
                return
            self._name, self._owner = target, alias

    def _end(self, target: Name, inside: bool) -> None:
        """End the answer at an alias of a name outside, or of one that is not followed any more."""
        response = self._response
        if inside and self._synthesised >= self._seen.get(target, 0):
            response.rcode, response.answer = Rcode.SERVFAIL, ()
            response.flags &= ~Flag.AA
        else:
            response.authority = self._table.name_servers

    def _step(self) -> bytes | None:
        """Answer for the current name; returns its target, in wire form, if it is an alias, else None."""
        cut, renaming = self._above()
        if renaming is not None:
            return self._rename(renaming)
        rrsets = self._rrsets() if cut is None else None
        if rrsets is not None and self._is_alias(rrsets):
            return self._alias(rrsets[RRType.CNAME])
        if cut is not None:
            self._refer(cut)
        elif rrsets is None:
            self._deny(Rcode.NXDOMAIN, absent=True)
        elif self._qtype in rrsets:
            self._answer(rrsets[self._qtype])
        else:
            self._deny(Rcode.NOERROR, absent=not rrsets)
        return None

    def _is_alias(self, rrsets: RRsets) -> bool:
        """Whether the name's CNAME answers the query; not for the zone's own SOA and NS, as in CoreDNS."""
        if RRType.CNAME not in rrsets or self._qtype == RRType.CNAME:
            return False
        return self._qtype not in _OF_APEX or self._name != self._table.origin

    def _alias(self, cname: RRset) -> bytes:
        if self._name not in self._table.nodes:
            self._synthesised = len(self._seen)  # by a wildcard
        self._response.answer += (cname._replace(owner=self._owner),)
        return cname.rdatas[0]

    def _above(self) -> tuple[RRset | None, RRset | None]:
        """(NS RRset, None) of a delegation or (None, DNAME), whichever is first from the apex down; else (None, None).

        A DNAME precedes the NS RRset of the same name, and counts only above the name queried.
        """
        table, name = self._table, self._name
        for at in range(len(name) - len(table.origin), -1, -1):
            ancestor = name[at:]
            rrsets = table.nodes.get(ancestor)
            if rrsets is None:
                break
            if at and RRType.DNAME in rrsets:
                return None, rrsets[RRType.DNAME]
            if RRType.NS in rrsets and ancestor != table.origin and (at or self._qtype != RRType.DS):
                return rrsets[RRType.NS], None
        return None, None

    def _rrsets(self) -> RRsets | None:
        """The RRsets of the name, or of the wildcard that matches it; None where neither exists."""
        nodes, name = self._table.nodes, self._name
        if name in nodes:
            return nodes[name]
        encloser = name[1:]
        while encloser not in nodes:
            encloser = encloser[1:]
        return nodes.get(("*", *encloser))

    def _answer(self, found: RRset) -> None:
        """Set the answer. As in CoreDNS, the zone's name servers go with every answer but their own."""
        response, table = self._response, self._table
        response.answer += (found._replace(owner=self._owner),)
        at_apex = self._name == table.origin
        if self._qtype == RRType.NS and at_apex:
            response.additional = _glue(table, found)
            return
        response.authority = table.name_servers
        if self._qtype in _HOST_AT:
            response.additional = _addresses(table, _hosts(found, _HOST_AT[self._qtype]))

    def _rename(self, dname: RRset) -> bytes | None:
        """Add the DNAME and the CNAME synthesised (RFC 6672 section 3.1); returns the new name in wire form.

        None if the answer ends here: for a query for CNAME, and with YXDOMAIN where the new name is too long.
        """
        own = self._owner or self._spelling
        prefix = own[: len(own) - len(dname.owner)]
        target = prefix + dname.rdatas[0]
        if len(target) > MAX_WIRE:
            self._response.answer += (dname,)
            self._response.rcode = Rcode.YXDOMAIN
            return None
        self._synthesised = len(self._seen)
        self._response.answer += (dname, RRset(self._owner, RRType.CNAME, dname.ttl, (target,)))
        if self._qtype == RRType.CNAME:
            self._response.authority = self._table.name_servers
            return None
        return target

    def _refer(self, servers: RRset) -> None:
        response = self._response
        if not response.answer:
            response.flags &= ~Flag.AA
        response.authority = (servers,)
        response.additional = _glue(self._table, servers)

    def _deny(self, rcode: int, absent: bool) -> None:
        """Set the negative answer; at the end of a CNAME chain the rcode is that of its last name (RFC 6604)."""
        self._response.rcode = rcode
        self._response.authority = (soa_of_absence(self._table),)
        self.finding.absent = absent and not self._response.answer


def _hosts(rrset: RRset, skip: int) -> dict[Name, bytes]:
    """The distinct names after the first `skip` octets of each RDATA, and for each its wire form as spelled there."""
    names = (_name_at(rdata, skip) for rdata in rrset.rdatas)
    return {wire_labels(name.lower()): name for name in names}


def _name_at(rdata: bytes, start: int) -> bytes:
    at = start
    while rdata[at]:
        at += 1 + rdata[at]
    return rdata[start : at + 1]


def _addresses(table: ZoneTable, hosts: dict[Name, bytes]) -> tuple[RRset, ...]:
    """The address records of the hosts that are in the zone."""
    return tuple(
        rrset._replace(owner=owner)
        for name, owner in hosts.items()
        for rtype in (RRType.A, RRType.AAAA)
        if (rrset := table.rrsets(name).get(rtype)) is not None
    )


def _glue(table: ZoneTable, servers: RRset) -> tuple[RRset, ...]:
    """The glue: addresses of those name servers whose names are at or below the name that they serve."""
    served = wire_labels(servers.owner.lower())
    hosts = {name: owner for name, owner in _hosts(servers, 0).items() if is_subdomain(name, served)}
    return _addresses(table, hosts)
