"""inotify(7) watches on directories, through libc with ctypes."""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, Self

_EVENT: Final = struct.Struct("iIII")  # struct inotify_event: watch, mask, cookie, length of the name behind it
_BUFFER: Final = 64 << 10  # octets: hundreds of events, and more than the longest name takes
_ANY_DIRECTORY: Final = -1  # the watch descriptor of IN_Q_OVERFLOW: events were lost

# sys/inotify.h
_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x002, 0x004, 0x008
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x040, 0x080, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_ONLYDIR: Final = 0x0100_0000
_CHANGES: Final = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
)

_libc = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """Watches these directories and their entries, without the contents of subdirectories, until `close`.

    An unreadable directory is skipped. Raises OSError if a directory is missing or no inotify watch is left.
    """

    def __init__(self, directories: Iterable[str]) -> None:
        if not hasattr(_libc, "inotify_init1"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self._directories: dict[int, list[str]] = {}  # by watch; several paths if a directory is mounted twice
        self._descriptor = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            for directory in directories:
                self._watch(directory)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """The descriptor, readable when events are pending."""
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self) -> frozenset[str]:
        """The paths in the pending events: entries, and directories themselves (moved, deleted, attributes).

        Does not wait: empty without events. Reads at most one buffer of events. After an overflow of the event queue:
        all directories.
        """
        try:
            octets = os.read(self._descriptor, _BUFFER)
        except BlockingIOError:
            return frozenset()
        return frozenset(name for watch, entry in _events(octets) for name in self._names(watch, entry))

    def _names(self, watch: int, entry: str) -> Iterator[str]:
        if watch == _ANY_DIRECTORY:
            yield from chain.from_iterable(self._directories.values())
        else:
            for directory in self._directories[watch]:
                yield os.path.join(directory, entry) if entry else directory

    def _watch(self, directory: str) -> None:
        try:
            watch = _checked(
                _libc.inotify_add_watch(self._descriptor, os.fsencode(directory), ctypes.c_uint32(_CHANGES | _ONLYDIR))
            )
        except PermissionError:
            return
        except OSError as failed:
            raise OSError(failed.errno, failed.strerror, directory) from None
        self._directories.setdefault(watch, []).append(directory)


def _events(octets: bytes) -> Iterator[tuple[int, str]]:
    """The events as (watch descriptor, entry name); "" is the directory itself."""
    at = 0
    while at < len(octets):
        watch, _, _, length = _EVENT.unpack_from(octets, at)
        at += _EVENT.size
        yield watch, os.fsdecode(octets[at : at + length].rstrip(b"\0"))
        at += length


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
