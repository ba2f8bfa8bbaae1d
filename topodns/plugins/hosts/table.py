"""Hosts files: the parser of lines and the table of names and addresses. `source` reads the file.

A line is an address and its names; `#` starts a comment (hosts(5)). A name `*.example.org` matches every name with
exactly one label before `example.org`, as in CoreDNS.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from topodns.dns.addresses import packed_address
from topodns.dns.name import ROOT, BadName, Name, is_below_any, name_wire, parse_name


class HostEntry(NamedTuple):
    """One line: an address, packed, and its names in lower case. A first label `*` matches any one label."""

    address: bytes
    names: tuple[Name, ...]


MAX_ENTRIES: Final = 1_000_000  # pairs of a name and an address; the longest block lists have fewer
NAMES_AT_ONCE: Final = 20  # names in a part of a line, about 0.1 ms
MAX_ADDRESSES: Final = 4096  # per name, and names per address: more than fit into any message

_PLAIN: Final = re.compile(rb"(?:[A-Za-z0-9_*-]{1,63}\.)*[A-Za-z0-9_*-]{1,63}\.?")
_PLAIN_SIZE: Final = 253  # octets up to which a plain name cannot be too long
_WILDCARD: Final = "*"
_WILDCARD_WIRE: Final = b"\x01*"

Addresses = tuple[bytes, ...]


class BadHostsLine(ValueError):
    """A line that is not an entry of a hosts file; the message has the text found."""


class BadHostsName(BadHostsLine):
    """A word of a line that is no name; the message has the word."""


def parse_hosts_line(line: bytes) -> HostEntry | None:
    """The entry of a line; None for a blank line or a comment. Raises BadHostsLine, also for one bad name."""
    entries = tuple(parse_long_line(line))
    return HostEntry(entries[0].address, tuple(name for entry in entries for name in entry.names)) if entries else None


def parse_long_line(line: bytes) -> Iterator[HostEntry]:
    """The entry of a line in parts of at most NAMES_AT_ONCE names, none for a blank line or a comment.

    Raises BadHostsLine, or at the end, after the parts of the other names, BadHostsName for the first bad one.
    """
    fields = _words(line.partition(b"#")[0])
    if not fields:
        return
    address = parse_address(fields[0])
    if len(fields) == 1:
        raise BadHostsLine(f"found only {_shown(fields[0])}, expected an address and its names")
    problem: BadHostsName | None = None
    for at in range(1, len(fields), NAMES_AT_ONCE):
        words = fields[at : at + NAMES_AT_ONCE]
        try:
            names = tuple(map(_parse_name, words))
        except BadHostsName as found:
            problem, names = problem or found, tuple(filter(None, map(_name_if_good, words)))
        if names:
            yield HostEntry(address, names)
    if problem is not None:
        raise problem


def _words(octets: bytes) -> list[bytes]:
    """The words between white space, which may be Unicode's, as in CoreDNS (Go's bytes.Fields)."""
    if octets.isascii():
        return octets.split()
    return [word.encode("utf-8", "surrogateescape") for word in octets.decode("utf-8", "surrogateescape").split()]


@lru_cache(1024)  # a block list has the same address 200,000 times
def parse_address(word: bytes) -> bytes:
    """The packed address, IPv4-mapped ones as IPv4; the scope after a `%` is dropped. Raises BadHostsLine."""
    try:
        return packed_address(word.partition(b"%")[0].decode("ascii"))
    except ValueError:
        raise BadHostsLine(f"{_shown(word)} is no IP address") from None


def _parse_name(word: bytes) -> Name:
    if len(word) <= _PLAIN_SIZE and _PLAIN.fullmatch(word):  # fast path: a list may have 200,000 such names
        return tuple(word.lower().decode("ascii").removesuffix(".").split("."))
    try:
        name = parse_name(word.decode("latin-1"))
    except BadName as problem:
        raise BadHostsName(str(problem)) from None
    if not name:
        raise BadHostsName("found the root, expected a name")
    return name


def _name_if_good(word: bytes) -> Name | None:
    try:
        return _parse_name(word)
    except BadHostsName:
        return None


def _shown(word: bytes) -> str:
    return repr(word[:64].decode(errors="replace"))


class HostTable:
    """Names by address and addresses by name. `add` fills it; lookups begin after the last `add`."""

    def __init__(self, origins: Iterable[Name] = (ROOT,), reverse: bool = True) -> None:
        """Names outside `origins` are ignored. Without `reverse`, addresses have no names."""
        given = tuple(origins)
        self.entries = 0  # as CoreDNS counts: each address of a name, and each name of an address
        self._origins = None if ROOT in given else given
        self._reverse = reverse
        self._v4: dict[bytes, Addresses] = {}
        self._v6: dict[bytes, Addresses] = {}
        self._names: dict[bytes, list[bytes]] = {}
        self._wildcards = False
        self._alone: Addresses = ()  # the address of the last entry: most names of a list share one

    def add(self, entry: HostEntry) -> bool:
        """Add an entry, without duplicates and addresses or names beyond MAX_ADDRESSES.

        False, and the rest of its names is left out, if the table is full.
        """
        if self._alone != (entry.address,):
            self._alone = (entry.address,)
        for name in entry.names:
            if self._origins is None or is_below_any(name, self._origins):
                if self.entries >= MAX_ENTRIES:
                    return False
                self._add(name, entry.address)
        return True

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
        """The packed addresses of a name (wire form, lower case); `family` 4 or 6.

        Without an address of this family for the exact name, those of `*` in place of the first label.
        """
        by_name = self._v4 if family == 4 else self._v6
        found = by_name.get(owner)
        if found is not None or not self._wildcards:
            return found or ()
        parent = owner[1 + owner[0] :]
        return by_name.get(_WILDCARD_WIRE + parent, ()) if len(parent) > 1 else ()

    def names(self, address: bytes) -> tuple[bytes, ...]:
        """The names (wire form, lower case) of a packed address in the order of the lines, without those with `*`."""
        return tuple(self._names.get(address, ()))
