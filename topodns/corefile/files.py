"""The files a configuration names: read them, check that they can be read, and say why not."""

import os
from typing import Final

from topodns.config.errors import ConfigError, shown

MAX_TEXT: Final = 4 << 20  # octets of one file; a Corefile has a few thousand


def read_text(path: str) -> str:
    """The text of a UTF-8 file of at most MAX_TEXT octets. Raises OSError or ValueError."""
    # To open a pipe would wait for who writes into it; to read one that nobody writes into does not.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    with open(descriptor, "rb") as stream:
        octets = stream.read(MAX_TEXT + 1)
    if len(octets) > MAX_TEXT:
        raise ValueError(f"longer than {MAX_TEXT} octets")
    return octets.decode("utf-8")


def load_corefile(path: str) -> str:
    """The text of the Corefile itself. Raises ConfigError."""
    try:
        return read_text(path)
    except (OSError, ValueError) as problem:
        raise ConfigError(path, 0, f"cannot be read: {reason(problem)}") from None


def reason(problem: OSError | ValueError) -> str:
    """Why a file cannot be used, in the words of the operating system where it is its fault."""
    if isinstance(problem, UnicodeDecodeError):
        return f"octet {problem.start} is not UTF-8"
    return problem.strerror or str(problem) if isinstance(problem, OSError) else str(problem)


def unreadable(path: str) -> str | None:
    """Why this file or directory cannot be read; None when it can."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))  # without waiting where it is a pipe
    except (OSError, ValueError) as problem:
        return f"cannot read {shown(path)}: {reason(problem)}"
    return None
