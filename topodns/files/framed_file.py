"""A file in which a process keeps what it knows for its next start: frames of octets, with a version and a checksum.

Octets: the magic of its kind, the version in 2 octets, the frames, each behind its length in 4 octets, and BLAKE2b of
all before in 16 octets. So a file that is truncated or damaged anywhere is known as such before a frame is used.
"""

from collections.abc import Generator
from hashlib import blake2b
from typing import BinaryIO, Final, NamedTuple

_VERSION_SIZE: Final = 2
_LENGTH_SIZE: Final = 4
_DIGEST_SIZE: Final = 16
_HASHED_AT_ONCE: Final = 1 << 17  # octets: 0.2 ms


class FileKind(NamedTuple):
    """The first octets of all files of a kind, and the version that this program reads and writes."""

    magic: bytes
    version: int


class ForeignFile(ValueError):
    """Content that is no file of the kind: another program may need it. The message says what was found."""


class UnusableFile(ValueError):
    """A file of the kind that cannot be used: damaged, or of another version. The message says what was found."""


class FrameWriter:
    """Writes a file of a kind, at most `limit` octets. Each call may raise OSError."""

    def __init__(self, file: BinaryIO, kind: FileKind, limit: int) -> None:
        self._file = file
        self._left = limit - _DIGEST_SIZE
        self._hash = blake2b(digest_size=_DIGEST_SIZE)
        self._put(kind.magic + kind.version.to_bytes(_VERSION_SIZE, "big"))

    def write(self, frame: bytes) -> bool:
        """Write a frame. False, without effect, if the file would exceed its limit."""
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


def read_frames(content: bytes, kind: FileKind) -> Generator[None, None, list[memoryview]]:
    """The frames of a file's content, in steps of which none takes long. Raises ForeignFile or UnusableFile."""
    if not content.startswith(kind.magic):
        if kind.magic.startswith(content):
            raise UnusableFile(f"it ends after {len(content)} octets")
        raise ForeignFile("it begins with other octets")
    at = len(kind.magic) + _VERSION_SIZE
    version = int.from_bytes(content[len(kind.magic) : at], "big")
    if len(content) < at + _DIGEST_SIZE:
        raise UnusableFile(f"it ends after {len(content)} octets")
    if version != kind.version:
        raise UnusableFile(f"it is of version {version}, expected {kind.version}")
    octets = memoryview(content)
    end = len(content) - _DIGEST_SIZE
    checked = blake2b(digest_size=_DIGEST_SIZE)
    for start in range(0, end, _HASHED_AT_ONCE):
        checked.update(octets[start : min(end, start + _HASHED_AT_ONCE)])
        yield
    if checked.digest() != octets[end:]:
        raise UnusableFile("its checksum is wrong, as of a damaged or truncated file")
    frames: list[memoryview] = []
    while at < end:
        start, at = at + _LENGTH_SIZE, at + _LENGTH_SIZE + int.from_bytes(octets[at : at + _LENGTH_SIZE], "big")
        frames.append(octets[start:at])
    return frames
