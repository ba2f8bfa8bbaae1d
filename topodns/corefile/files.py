"""Reads the Corefile, resolv.conf and other small configuration files whole, and gives the reasons of errors as text.

`load_nameservers` and `load_search_list` read the format of resolv.conf(5), once, at configuration load, and raise
ConfigError, with the file and line, if it cannot be read or has no good value.
"""

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final

from topodns.corefile.errors import ConfigError, shown
from topodns.dns.name import BadName, Name, parse_name
from topodns.files.regular import check_readable, read_regular
from topodns.files.text import decoded

MAX_TEXT: Final = 4 << 20  # octets per file; a Corefile has a few thousand


def read_text(path: str) -> str:
    """The text of a regular file, as in `files.text`: octets that are no UTF-8 are for its reader to refuse.

    Raises OSError, or ValueError if it is UTF-16 or has more than MAX_TEXT octets.
    """
    octets = read_regular(path, MAX_TEXT + 1)
    if len(octets) > MAX_TEXT:
        raise ValueError(f"longer than {MAX_TEXT} octets")
    return decoded(octets)


def load_corefile(path: str) -> str:
    """The text of the Corefile. Raises ConfigError."""
    try:
        return read_text(path)
    except (OSError, ValueError) as problem:
        raise ConfigError(path, 0, f"cannot be read: {reason(problem)}") from None


def reason(problem: OSError | ValueError) -> str:
    """The reason why a file cannot be used, as text for a message; for an OSError, the operating system's text."""
    return problem.strerror or str(problem) if isinstance(problem, OSError) else str(problem)


def unreadable(path: str) -> str | None:
    """A message that this file or directory cannot be read, with the reason; None if it can be opened."""
    try:
        check_readable(path)
    except (OSError, ValueError) as problem:
        return f"cannot read {shown(path)}: {reason(problem)}"
    return None


def load_nameservers(path: str, warn: Callable[[str], object] = str) -> tuple[str, ...]:
    """The addresses of all `nameserver` lines, in order; an IPv6 address may have `%interface`.

    All are taken, though the C library stops at three. Other lines are for stub resolvers and ignored. `warn` takes a
    log line for each line whose address is none; raises ConfigError for the first of them if no other line has one.
    """
    found, problems = [], []
    for number, words in _lines(path):
        match words:
            case ["nameserver", address, *_]:
                try:
                    found.append(_address(path, number, address))
                except ConfigError as problem:
                    problems.append(problem)
    if problems and not found:
        raise problems[0]
    for each in problems:
        warn(f"{each}; the other name servers are used")
    return tuple(found)


def load_search_list(path: str, skip_bad: bool = False) -> tuple[Name, ...]:
    """The domains of the last `search` or `domain` line, in order, without the root and without duplicates.

    `skip_bad`: skip invalid names, as stub resolvers do, instead of raising.
    """
    found: tuple[Name | None, ...] = ()
    for number, words in _lines(path):
        match words:
            case ["search", *domains]:
                found = tuple(_domain(path, number, domain, skip_bad) for domain in domains)
            case ["domain", domain, *_]:
                found = (_domain(path, number, domain, skip_bad),)
    return tuple(dict.fromkeys(domain for domain in found if domain))


def _lines(path: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, words) of each line."""
    try:
        text = read_text(path)
    except (OSError, ValueError) as problem:
        raise ConfigError(path, 0, f"cannot be read: {reason(problem)}") from None
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line.split()


def _address(path: str, line: int, text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise ConfigError(path, line, f"'nameserver' has {shown(text)}, expected an IP address") from None


def _domain(path: str, line: int, text: str, skip_bad: bool) -> Name | None:
    try:
        return parse_name(text)
    except BadName as problem:
        if skip_bad:
            return None
        raise ConfigError(path, line, f"found the search domain {shown(text)}, which is none: {problem}") from None
