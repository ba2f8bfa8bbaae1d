"""Reads the Corefile and other small configuration files whole, and gives the reasons of errors as text."""

from typing import Final

from topodns.corefile.errors import ConfigError, shown
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
