"""The `hosts` plugin: answers A, AAAA and PTR queries from a hosts file and from the Corefile."""

from collections.abc import Callable
from typing import Final

from topodns.dependency import Fact
from topodns.dns.addresses import unmapped
from topodns.dns.message import Ede, EdeCode, Query, Response, RRset
from topodns.dns.name import is_below_any, reverse_address
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.plugins.hosts.settings import Hosts
from topodns.plugins.hosts.table import HostTable
from topodns.query.plugin import Client, FellThrough, Resolution, Scope, Stepped

PLUGIN: Final = "hosts"

_FAMILIES: Final = {RRType.A: 4, RRType.AAAA: 6}
# NXDOMAIN without an SOA must not be cached (RFC 2308 section 5); CoreDNS answers SERVFAIL instead.
_UNKNOWN: Final = Ede(EdeCode.OTHER, "hosts: the name is not there, and no fallthrough")


def hosts_fact(path: str) -> Fact:
    """The content of this hosts file, a dependency of answers and of queries that fell through."""
    return Fact("hosts", "", path)


class HostNames:
    """The plugin of a `hosts` directive. `table` returns the file's current table; the Corefile's entries come last."""

    def __init__(self, settings: Hosts, table: Callable[[], HostTable]) -> None:
        self._settings = settings
        self.file = settings.file
        self._table = table
        self._inline = HostTable(settings.origins, settings.reverse)
        for entry in settings.inline:
            self._inline.add(entry)
        self._facts = (hosts_fact(settings.file),)

    @property
    def entries(self) -> int:
        """The number of entries of the file and of the Corefile, as `HostTable.entries`; for coredns_hosts_entries."""
        return self._table().entries + self._inline.entries

    def __call__(self, query: Query, client: Client) -> Stepped:
        """The records, with AA; NODATA, without SOA, where the name exists without records of the type.

        FellThrough for an unknown name under an origin of `fallthrough`, and for any unknown name of a PTR query;
        SERVFAIL for all other unknown names. With `fallthrough_unsupported` FellThrough also for known names under an
        origin of `fallthrough`, for types other than A, AAAA and PTR. None for names outside the origins (PTR has no
        such limit) and for other classes.
        """
        if query.qclass != RRClass.IN:
            return None
        if query.qtype == RRType.PTR:
            return self._pointers(query)
        if not is_below_any(query.qname, self._settings.origins):
            return None
        falls_through = is_below_any(query.qname, self._settings.fallthrough)
        family = _FAMILIES.get(query.qtype)
        if family is None and falls_through and self._settings.fallthrough_unsupported:
            return FellThrough(self._facts)
        owner = query.spelling.lower()  # safe: length octets, at most 63, are less than any letter
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
        address = unmapped(address)
        names = _without_repeats(self._table().names(address), self._inline.names(address))
        return self._found(RRType.PTR, names) if names else FellThrough(self._facts)

    def _addresses(self, owner: bytes, family: int) -> tuple[bytes, ...]:
        return _without_repeats(self._table().addresses(owner, family), self._inline.addresses(owner, family))

    def _found(self, rtype: int, rdatas: tuple[bytes, ...]) -> Resolution:
        answer = (RRset(b"", rtype, self._settings.ttl, rdatas),)
        return Resolution(Response(answer=answer), PLUGIN, facts=self._facts)


def _without_repeats(first: tuple[bytes, ...], second: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(first + second)) if first and second else first or second
