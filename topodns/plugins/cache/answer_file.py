"""The file of the option `persist`: answers that may be served stale, with their ages. No I/O and no clock in here.

Its frames (`files.framed_file`) are MessagePack: a `FileHead`, then lists of `StoredAnswer`, the most used first. The
key of an entry is in it as it is, so a question with another type, class, DO, CD or forwarded option is another one's.
"""

from collections.abc import Callable, Iterator
from math import ceil
from typing import BinaryIO, Final, NamedTuple

from topodns.cluster.decode.structs import UNREADABLE, pack, unpacker
from topodns.files.framed_file import FileKind, FrameWriter, UnusableFile, check_steps, frames
from topodns.plugins.cache.entry import CacheEntry, PlainContent, Sort, entry_of
from topodns.plugins.cache.pod_naming import is_for_all
from topodns.plugins.cache.store import Memory
from topodns.time_slices import Job

KIND: Final = FileKind(b"topodns cache\n", 1, limit=8_000_000)

_AT_ONCE: Final = 1 << 14  # octets in memory of the entries of a frame, and of a step: 0.2 ms
_OVERHEAD: Final = 512  # of an entry


class FileHead(NamedTuple):
    """The first frame: Unix seconds of the writing, and the cache whose answers these are, with its Node."""

    written: float
    owner: tuple[str, ...]


class StoredAnswer(NamedTuple):
    """An entry in a file. `age`: whole seconds, rounded up, at the time of the writing."""

    key: bytes
    denial: bool
    again: bool  # as of `UsedEntry`
    ttl: int
    age: int
    content: PlainContent

    def entry(self, now: float, away: int) -> CacheEntry:
        """The cache entry, so many seconds after the writing; `now` as `CacheEntry.born`."""
        sort = Sort.DENIAL if self.denial else Sort.SUCCESS
        return entry_of(self.content, sort, self.ttl, now - self.age - away)


_read_head: Final[Callable[[bytes], FileHead]] = unpacker(FileHead)
_read_answers: Final[Callable[[bytes], list[StoredAnswer]]] = unpacker(list[StoredAnswer])


class RestoredAnswers(NamedTuple):
    """How many answers of a file are in the cache now, and for how many seconds no process had them, at least."""

    answers: int
    away: int


def write_answers(file: FrameWriter, memory: Memory, head: FileHead, now: float) -> Job[int]:
    """Write the answers that may be served stale, in steps, and return their number. Raises OSError.

    Those for one namespace or client never are. The last ones are left out where the file would exceed its limit.
    """
    number = 0
    file.write(pack(head))
    for batch in _batches(memory, now):
        if batch and not file.write(pack(batch)):
            break
        number += len(batch)
        yield
    return number


def _batches(memory: Memory, now: float) -> Iterator[list[StoredAnswer]]:
    batch, weight = list[StoredAnswer](), 0
    for key, entry, again in memory.by_use():
        weight += _OVERHEAD + len(entry.packed)
        if memory.is_servable(entry) and is_for_all(key):
            denial, age = entry.sort is Sort.DENIAL, max(0, ceil(now - entry.born))  # it may have come since `now`
            batch.append(StoredAnswer(key, denial, again, entry.ttl, age, entry.plain_content()))
        if weight >= _AT_ONCE:
            yield batch
            batch, weight = [], 0
    yield batch


def restore_answers(file: BinaryIO, memory: Memory, head: FileHead, now: float) -> Job[RestoredAnswers]:
    """Restore the answers of a file, in steps. Raises UnusableFile, OSError.

    `head`: of a file that this cache would write now, at `now`. The ages go on by the clock of the host, which may have
    been set back: an answer is never younger than it was at the writing.
    """
    yield from check_steps(file, KIND)
    try:
        stored_frames = frames(file, KIND)
        found = _read_head(next(stored_frames, b""))
        if found.owner != head.owner:
            raise UnusableFile("foreign", f"is of the cache {found.owner}, expected {head.owner}")
        away = max(0, ceil(head.written - found.written))
        number = 0
        for frame in reversed(list(stored_frames)):
            for stored in reversed(_read_answers(frame)):
                number += memory.restore(stored.key, stored.entry(now, away), stored.again)
            yield
    except UNREADABLE as problem:
        raise UnusableFile("damaged", f"is damaged: {problem}") from None
    return RestoredAnswers(number, away)
