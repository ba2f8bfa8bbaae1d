"""Replaces a file at once, so that a reader, or the next start after a kill or a loss of power, finds it whole.

The new file is written beside the old one, flushed to the disk, and renamed over it.
"""

import asyncio
import errno
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import BinaryIO, Final

SUFFIX: Final = ".new"  # of the file beside it

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@asynccontextmanager
async def atomic_write(path: str) -> AsyncIterator[BinaryIO]:
    """A file to write, piece by piece, that replaces `path` (mode 0600) once the context ends without an exception.

    A symbolic link is followed. One process at a time writes a path: for another one this raises BlockingIOError, which
    ends with the writer, however that ends. Any other OSError leaves the old file, and none beside it. A killed writer
    may leave one beside it, which the next writer overwrites.
    """
    target, beside, file = _opened(path)
    try:
        yield file
        file.flush()
        # In a thread, as a disk may take seconds, in which queries are answered; it has nothing but a system call.
        await asyncio.to_thread(os.fsync, file.fileno())
        os.rename(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
    finally:
        with suppress(OSError):  # of octets that did not fit on the disk, as their flush has said
            file.close()
    await asyncio.to_thread(_sync_directory, os.path.dirname(target))


def _opened(path: str) -> tuple[str, str, BinaryIO]:
    """(resolved path, path beside it, the empty file there). Raises OSError, also for a directory at the path."""
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    beside = target + SUFFIX
    return target, beside, open(_locked(beside), "wb")


def _locked(path: str) -> int:
    """A descriptor of the empty file at `path`, which only its holder may write. Raises OSError."""
    while True:
        descriptor = os.open(path, _CREATE, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, descriptor):  # else another writer has renamed it since it was opened
                os.fchmod(descriptor, 0o600)
                os.ftruncate(descriptor, 0)
                return descriptor
        except OSError as failed:
            os.close(descriptor)
            raise OSError(failed.errno, failed.strerror, path) from None
        os.close(descriptor)


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _sync_directory(path: str) -> None:
    """Flush the names in this directory to the disk, without which a loss of power undoes a rename."""
    descriptor = os.open(path, _DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
