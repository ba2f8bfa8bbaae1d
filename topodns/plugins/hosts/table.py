"""Hosts files: text in, tables of names and addresses out. Reading and re-reading the file is the edge's business.

A line is an address and its names, `#` starts a comment (hosts(5)). A name `*.example.org` stands for every name with
just one label before `example.org`, as in CoreDNS.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from topodns.dns.names import ROOT, BadName, Name, is_subdomain, name_wire, parse_name
from topodns.settings.hosts import HostEntry

MAX_ENTRIES: Final = 1_000_000  # pairs of a name and an address; the longest block lists have fewer
MAX_ADDRESSES: Final = 4096  # of a name, and names of an address: more than fit into any message

_PLAIN: Final = re.compile(rb"(?:[A-Za-z0-9_*-]{1,63}\.)*[A-Za-z0-9_*-]{1,63}\.?")
_PLAIN_SIZE: Final = 253  # octets of a plain name that surely is not too long
_WILDCARD: Final = "*"
_WILDCARD_WIRE: Final = b"\x01*"

Addresses = tuple[bytes, ...]


class BadHostsLine(ValueError):
    """A line that is no entry of a hosts file; says what was found."""


def parse_hosts_line(line: bytes) -> HostEntry | None:
    """The entry on a line, None where it has none. Raises BadHostsLine."""
    fields = line.partition(b"#")[0].split()
    if not fields:
        return None
    address = parse_address(fields[0])
    if len(fields) == 1:
        raise BadHostsLine(f"found only {_shown(fields[0])}, expected an address and its names")
    return HostEntry(address, tuple(map(_parse_name, fields[1:])))


@lru_cache(1024)  # a block list has one address, 200,000 times
def parse_address(word: bytes) -> bytes:
    """The packed address, IPv4-mapped ones as IPv4; the scope behind a `%` is dropped. Raises BadHostsLine."""
    try:
        address = ip_address(word.partition(b"%")[0].decode("ascii"))
    except ValueError:
        raise BadHostsLine(f"{_shown(word)} is no IP address") from None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).packed


def _parse_name(word: bytes) -> Name:
    if len(word) <= _PLAIN_SIZE and _PLAIN.fullmatch(word):  # nearly all of them, and a list may have 200,000
        return tuple(word.lower().decode("ascii").removesuffix(".").split("."))
    try:
        name = parse_name(word.decode("latin-1"))
    except BadName as problem:
        raise BadHostsLine(str(problem)) from None
    if not name:
        raise BadHostsLine("found the root, expected a name")
    return name


def _shown(word: bytes) -> str:
    return repr(word[:64].decode(errors="replace"))


class HostTable:
    """Names by address and addresses by name. Filled by `add`; whoever looks things up does so when that is over."""

    def __init__(self, origins: Iterable[Name] = (ROOT,), reverse: bool = True) -> None:
        """Names outside `origins` are left out. Without `reverse`, addresses have no names."""
        given = tuple(origins)
        self.entries = 0  # as CoreDNS counts: each address of a name, and each name of an address
        self._origins = None if ROOT in given else given
        self._reverse = reverse
        self._v4: dict[bytes, Addresses] = {}
        self._v6: dict[bytes, Addresses] = {}
        self._names: dict[bytes, list[bytes]] = {}
        self._wildcards = False
        self._alone: Addresses = ()  # the address of the last entry: most names of a list share one

    @property
    def full(self) -> bool:
        """Whether it takes no more entries."""
        return self.entries >= MAX_ENTRIES

    def add(self, entry: HostEntry) -> None:
        """Take in an entry. What is there already, and what is more than a message can hold, is left out."""
        if self._alone != (entry.address,):
            self._alone = (entry.address,)
        for name in entry.names:
            if self._origins is None or any(is_subdomain(name, origin) for origin in self._origins):
                self._add(name, entry.address)

    def _add(self, name: Name, address: bytes) -> None:
        owner = name_wire(name)
        by_name = self._v4 if len(address) == 4 else self._v6
        known = by_name.get(owner, ())
        if address in known or len(known) >= MAX_ADDRESSES:
            return
        by_name[owner] = (*known, address) if known else self._alone
        self.entries += 1
        if name[0] == _WILDCARD:
            self._wildcards = True
        elif self._reverse:
            self._add_reverse(address, owner)

    def _add_reverse(self, address: bytes, owner: bytes) -> None:
        names = self._names.setdefault(address, [])
        if len(names) < MAX_ADDRESSES:
            names.append(owner)
            self.entries += 1

    def addresses(self, owner: bytes, family: int) -> Addresses:
        """The packed addresses of a name (wire form, lower case); `family` 4 or 6. A name given goes before `*`."""
        by_name = self._v4 if family == 4 else self._v6
        found = by_name.get(owner)
        if found is not None or not self._wildcards:
            return found or ()
        parent = owner[1 + owner[0] :]
        return by_name.get(_WILDCARD_WIRE + parent, ()) if len(parent) > 1 else ()

    def names(self, address: bytes) -> tuple[bytes, ...]:
        """The names (wire form, lower case) of a packed address, in the order of the lines."""
        return tuple(self._names.get(address, ()))
