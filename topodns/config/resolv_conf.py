"""Files in the format of resolv.conf(5): the servers that they name when the configuration is read."""

from ipaddress import ip_address

from topodns.config.errors import ConfigError, shown
from topodns.config.files import read_text, reason


def load_nameservers(path: str) -> tuple[str, ...]:
    """The addresses on the file's `nameserver` lines, in order; IPv6 ones perhaps with `%interface`.

    All of them, where the C library takes three; other lines are for stub resolvers. Raises ConfigError, with the
    place in that file.
    """
    try:
        text = read_text(path)
    except (OSError, ValueError) as problem:
        raise ConfigError(path, 0, f"cannot be read: {reason(problem)}") from None
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        match line.split():
            case ["nameserver", address, *_]:
                found.append(_address(path, number, address))
    return tuple(found)


def _address(path: str, line: int, text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise ConfigError(path, line, f"'nameserver' has {shown(text)}, expected an IP address") from None
