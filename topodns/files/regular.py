"""Reading and writing files that somebody may exchange at any time, without ever waiting for them."""

import errno
import os
import stat


def read_regular(path: str, limit: int) -> bytes:
    """The first `limit` octets of a regular file. Raises OSError, also where it is anything else.

    The open of a pipe waits for who writes into it, and everything else with it: there is one thread.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is no regular file", path)
        return file.read(limit)


def write_text(path: str, text: str) -> None:
    """Have the file contain just this. Raises OSError, also where it is a pipe that nobody reads."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
