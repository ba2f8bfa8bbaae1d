"""Reads files in the format of resolv.conf(5), once, at configuration load.

The functions raise ConfigError, with the file and line of the resolv.conf, if it cannot be read or has a bad value.
"""

from collections.abc import Iterator
from ipaddress import ip_address

from topodns.corefile.errors import ConfigError, shown
from topodns.corefile.files import read_text, reason
from topodns.dns.name import BadName, Name, parse_name


def load_nameservers(path: str) -> tuple[str, ...]:
    """The addresses of all `nameserver` lines, in order; an IPv6 address may have `%interface`.

    All are taken, though the C library stops at three. Other lines are for stub resolvers and ignored.
    """
    found = []
    for number, words in _lines(path):
        match words:
            case ["nameserver", address, *_]:
                found.append(_address(path, number, address))
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
