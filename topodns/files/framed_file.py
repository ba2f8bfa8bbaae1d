"""A file in which a process keeps what it knows for its next start: frames of octets, with a version and a checksum.

Octets: the magic of its kind, the version in 2 octets, the frames, each behind its length in 4 octets, and BLAKE2b of
all before in 16 octets. So a file that is truncated or damaged anywhere is known as such before a frame is used. It is
written and read piece by piece, in steps of some 0.1 ms.
"""

import errno
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import BinaryIO, Final, NamedTuple

from topodns.files.atomic_write import atomic_write
from topodns.files.regular import read_regular
from topodns.time_slices import Job

_VERSION_SIZE: Final = 2
_LENGTH_SIZE: Final = 4
_DIGEST_SIZE: Final = 16
_HASHED_AT_ONCE: Final = 1 << 16  # octets: 0.1 ms


class FileKind(NamedTuple):
    """The first octets of all files of a kind, the version that this program reads and writes, and their size."""

    magic: bytes
    version: int
    limit: int = sys.maxsize  # octets

    @property
    def body(self) -> int:
        """Where the frames begin."""
        return len(self.magic) + _VERSION_SIZE

    def begins(self, octets: bytes) -> bool:
        """Whether a file with these first octets may be one of the kind, if a truncated one."""
        return octets.startswith(self.magic) or self.magic.startswith(octets)

    def __str__(self) -> str:
        return repr(self.magic.decode().strip())


class UnusableFile(ValueError):
    """A file that is not used; the message is a predicate: `is damaged: ...`.

    `reason`: one word, for a metric: `foreign`, `version`, `damaged`, or another one of the kind's reader.
    """

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


class FrameWriter:
    """Writes a file of a kind. Each call may raise OSError."""

    def __init__(self, file: BinaryIO, kind: FileKind) -> None:
        self._file = file
        self._left = kind.limit - _DIGEST_SIZE
        self._hash = blake2b(digest_size=_DIGEST_SIZE)
        self._put(kind.magic + kind.version.to_bytes(_VERSION_SIZE, "big"))

    def write(self, frame: bytes) -> bool:
        """Write a frame. False, without effect, if the file would exceed the limit of its kind."""
        if _LENGTH_SIZE + len(frame) > self._left:
            return False
        self._put(len(frame).to_bytes(_LENGTH_SIZE, "big"))
        self._put(frame)
        return True

    def end(self) -> None:
        """Write the checksum. Nothing may follow."""
        self._file.write(self._hash.digest())

    def _put(self, octets: bytes) -> None:
        self._left -= len(octets)
        self._hash.update(octets)
        self._file.write(octets)


@asynccontextmanager
async def replacing(path: str, kind: FileKind) -> AsyncIterator[FrameWriter]:
    """Writes a file that replaces the one of its kind at `path`, if there is one, as `atomic_write` does.

    Raises OSError, also where the file there is not of the kind: what another program wrote is never replaced.
    """
    _check_replaceable(path, kind)
    async with atomic_write(path) as file:
        writer = FrameWriter(file, kind)
        yield writer
        writer.end()


def _check_replaceable(path: str, kind: FileKind) -> None:
    try:
        found = read_regular(path, len(kind.magic))
    except FileNotFoundError:
        return
    if not kind.begins(found):
        raise FileExistsError(errno.EEXIST, f"it begins with other octets than {kind}", path)


def check_steps(file: BinaryIO, kind: FileKind) -> Job[None]:
    """Check in steps that a file is a whole one of a kind. Raises UnusableFile, OSError."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    begin = file.read(kind.body) or b""
    _check_begin(begin, kind)
    if size > kind.limit:
        raise UnusableFile("damaged", f"is damaged: it has {size} octets, expected at most {kind.limit}")
    checked, left = blake2b(begin, digest_size=_DIGEST_SIZE), size - len(begin) - _DIGEST_SIZE
    while left > 0 and (octets := file.read(min(left, _HASHED_AT_ONCE))):
        checked.update(octets)
        left -= len(octets)
        yield
    if left or file.read(_DIGEST_SIZE) != checked.digest():
        raise UnusableFile("damaged", f"is damaged: {size} octets without their checksum")


def _check_begin(begin: bytes, kind: FileKind) -> None:
    if not kind.begins(begin):
        raise UnusableFile("foreign", f"begins with other octets than {kind}")
    version = int.from_bytes(begin[len(kind.magic) :], "big")
    if len(begin) == kind.body and version != kind.version:
        raise UnusableFile("version", f"has format {version}, expected {kind.version}: another topodns wrote it")


def frames(file: BinaryIO, kind: FileKind) -> Iterator[bytes]:
    """The frames of a file that `check_steps` has found whole. Raises UnusableFile if it is not, OSError."""
    end = file.seek(0, os.SEEK_END) - _DIGEST_SIZE
    file.seek(kind.body)
    while file.tell() < end:
        length = int.from_bytes(file.read(_LENGTH_SIZE), "big")
        if file.tell() + length > end:
            raise UnusableFile("damaged", "is damaged: a frame does not end")
        yield file.read(length)
