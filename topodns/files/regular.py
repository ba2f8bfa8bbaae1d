"""Opens regular files without blocking and without a race between check and use.

All files that a configuration names are read through here. A file is opened first and checked by its descriptor, so
that it cannot be replaced in between. Symbolic links are followed: the files of a ConfigMap volume are links.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

# O_NONBLOCK, because opening or reading a pipe waits for its writer, which would block the only thread.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class FileState(NamedTuple):
    """The `stat` fields that change with a file's contents, except within one tick of the file system's clock."""

    device: int
    inode: int
    size: int  # octets
    modified: int  # nanoseconds
    changed: int  # nanoseconds; also of its permissions


def file_state(path: str) -> FileState:
    """The present state of a file. Raises OSError."""
    found = os.stat(path)
    return FileState(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def read_regular(path: str, limit: int) -> bytes:
    """At most `limit` octets from the start of a regular file. Raises OSError, also for other kinds of files.

    A file such as /proc/kmsg counts as regular and still has nothing to read at times: BlockingIOError (EAGAIN).
    """
    with open_regular(path) as file:
        found: bytes | None = file.read(limit)
    if found is None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
    return found


def open_regular(path: str) -> BinaryIO:
    """A regular file, to read. Raises OSError, also for other kinds of files."""
    return open(_opened(path), "rb")


@contextmanager
def held_regular(path: str) -> Iterator[str]:
    """A path, valid within the context, to the regular file now at `path`, even if that is replaced meanwhile.

    For libraries that open files by path. Raises OSError, also for other kinds of files.
    """
    descriptor = _opened(path)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def check_readable(path: str) -> None:
    """Raise OSError unless `path` is a regular file or directory that can be opened."""
    os.close(_opened(path, directories=True))


def _opened(path: str, directories: bool = False) -> int:
    """A descriptor to read a regular file or, with `directories`, also a directory. Raises OSError, also for others."""
    descriptor = os.open(path, _READ)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode) and not directories:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EINVAL, "is no regular file", path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def write_text(path: str, text: str) -> None:
    """Create or overwrite the file with `text`; octets that are no UTF-8 (`files.text`) are written as they were read.

    Raises OSError, also for a pipe without a reader.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
