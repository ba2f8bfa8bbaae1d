"""The `hosts` directive's step: A, AAAA and PTR from a hosts file and from the Corefile."""

from collections.abc import Callable
from typing import Final

from topodns.cluster.facts import Fact
from topodns.dns.message import Ede, EdeCode, Query, Rcode, Response, RRClass, RRset, RRType
from topodns.dns.names import Name, is_subdomain, reverse_address
from topodns.resolve.host_table import HostTable
from topodns.resolve.step import Client, FellThrough, Resolution, Scope, Stepped
from topodns.settings.hosts import Hosts

PLUGIN: Final = "hosts"

_FAMILIES: Final = {int(RRType.A): 4, int(RRType.AAAA): 6}
_IPV4_MAPPED: Final = bytes(10) + b"\xff\xff"
# Without an SOA there is no NXDOMAIN that anybody may keep (RFC 2308 section 5); CoreDNS says SERVFAIL instead.
_UNKNOWN: Final = Ede(EdeCode.OTHER, "hosts: the name is not there, and no fallthrough")


def hosts_fact(path: str) -> Fact:
    """What stands in this hosts file: answers, and questions that it left to others, rest on it."""
    return Fact("hosts", "", path)


class HostNames:
    """`table` gives what the file says now; entries of the Corefile come after those of the file."""

    def __init__(self, settings: Hosts, table: Callable[[], HostTable]) -> None:
        self._settings = settings
        self._table = table
        self._inline = HostTable(settings.origins, settings.reverse)
        for entry in settings.inline:
            self._inline.add(entry)
        self._facts = (hosts_fact(settings.file),)

    @property
    def entries(self) -> int:
        """For coredns_hosts_entries."""
        return self._table().entries + self._inline.entries

    def __call__(self, query: Query, client: Client) -> Stepped:
        """The records, with AA; NODATA, without SOA, where the name has other addresses only or the type is another.

        A name that is not there goes on below `fallthrough`, else it is SERVFAIL. A reverse name always goes on.
        """
        if query.qclass != RRClass.IN:
            return None
        if query.qtype == RRType.PTR:
            return self._pointers(query)
        if not _is_under(query.qname, self._settings.origins):
            return None
        falls_through = _is_under(query.qname, self._settings.fallthrough)
        family = _FAMILIES.get(query.qtype)
        if family is None and falls_through and self._settings.fallthrough_unsupported:
            return FellThrough(self._facts)
        owner = query.spelling.lower()  # length octets, at most 63, lie below the letters
        if family is not None and (addresses := self._addresses(owner, family)):
            return self._found(query.qtype, addresses)
        if self._addresses(owner, 4) or self._addresses(owner, 6):
            return Resolution(Response(), PLUGIN, facts=self._facts)
        if falls_through:
            return FellThrough(self._facts)
        return Resolution(Response(Rcode.SERVFAIL, flags=0, ede=_UNKNOWN), PLUGIN, Scope.CLIENT)

    def _pointers(self, query: Query) -> Stepped:
        address = reverse_address(query.qname)
        if address is None:
            return FellThrough(())
        if len(address) == 16 and address.startswith(_IPV4_MAPPED):
            address = address[len(_IPV4_MAPPED) :]
        names = _without_repeats(self._table().names(address), self._inline.names(address))
        return self._found(int(RRType.PTR), names) if names else FellThrough(self._facts)

    def _addresses(self, owner: bytes, family: int) -> tuple[bytes, ...]:
        return _without_repeats(self._table().addresses(owner, family), self._inline.addresses(owner, family))

    def _found(self, rtype: int, rdatas: tuple[bytes, ...]) -> Resolution:
        answer = (RRset(b"", rtype, self._settings.ttl, rdatas),)
        return Resolution(Response(answer=answer), PLUGIN, facts=self._facts)


def _is_under(qname: Name, origins: tuple[Name, ...]) -> bool:
    return any(is_subdomain(qname, origin) for origin in origins)


def _without_repeats(first: tuple[bytes, ...], second: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(first + second)) if first and second else first or second
