"""The search list of a file in the format of resolv.conf(5), as it is when the configuration is read."""

from topodns.config.errors import ConfigError, shown
from topodns.config.files import read_text, reason
from topodns.dns.names import BadName, Name, parse_name


def load_search_list(path: str) -> tuple[Name, ...]:
    """The domains of the last `search` or `domain` line, in order; the root, which names no domain, left out.

    Raises ConfigError, with the place in that file.
    """
    try:
        text = read_text(path)
    except (OSError, ValueError) as problem:
        raise ConfigError(path, 0, f"cannot be read: {reason(problem)}") from None
    found: tuple[Name, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        match line.split():
            case ["search", *domains]:
                found = tuple(_domain(path, number, domain) for domain in domains)
            case ["domain", domain, *_]:
                found = (_domain(path, number, domain),)
    return tuple(dict.fromkeys(filter(None, found)))


def _domain(path: str, line: int, text: str) -> Name:
    try:
        return parse_name(text)
    except BadName as problem:
        raise ConfigError(path, line, f"found the search domain {shown(text)}, which is none: {problem}") from None
