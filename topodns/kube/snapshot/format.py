"""The octets of a snapshot file: written and read in steps, and checked as a whole before any object is read.

    topodns snapshot 1\\n     the version of this format
    record, record, ...      each: the length in 4 octets, a tag, a value as MessagePack
    32 octets                SHA-256 of everything before

The first record is the `Head`. A `Section` begins a kind, whose objects follow in records of a batch each. Sections may
be of slightly different moments, as the lists of an API server are; but each object is one that existed, and the
resourceVersion in a Section is no newer than its objects.

A program reads only files of a program with the same fields of objects (`Head.layout`): a field that one of the two
does not have could make an answer wrong.
"""

import os
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import BinaryIO, Final, NamedTuple, TypeVar

from topodns import __version__
from topodns.cluster.decode.structs import pack, unpacker
from topodns.cluster.model import ClusterObject, Kind
from topodns.cluster.packed_objects import KINDS, layout, pack_objects, unpack_objects

T = TypeVar("T")

MAGIC: Final = b"topodns snapshot "
FORMAT: Final = 1

_FIRST_LINE: Final = MAGIC + b"%d\n" % FORMAT
_LONGEST_LINE: Final = len(MAGIC) + 10
_DIGEST_SIZE: Final = 32
_AT_ONCE: Final = 1 << 16  # octets that are hashed in one step: about 0.1 ms
_MAX_RECORD: Final = 64 << 20  # octets; more than a batch of objects as large as etcd stores them
_HEAD, _SECTION, _OBJECTS = b"HSO"

_record = struct.Struct("!IB")


class SnapshotError(ValueError):
    """A file that is not served; the message is a predicate: `is damaged: ...`. `reason`: one word, for a metric."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


class Head(NamedTuple):
    """What a snapshot is of."""

    cluster_uid: str  # of its Namespace kube-system
    unix_time: float  # seconds; until then the state is known to have been the API server's, by the writer's clock
    serial: int  # the SOA serial
    denied: tuple[Kind, ...]  # that answers did without
    layout: str = ""
    program: str = __version__


class Section(NamedTuple):
    """Begins the objects of one kind."""

    kind: Kind
    version: str  # the last resourceVersion seen when its first object was written
    selection: str  # of the objects of the kind: see `restorer.selection_of`


Part = Section | Sequence[ClusterObject]
"""A Section, or some objects of the last one."""


def snapshot_octets(head: Head, parts: Iterable[Part]) -> Iterator[bytes]:
    """The octets of a snapshot, piece by piece, each made of one part when it is due."""
    digest = sha256()

    def piece(octets: bytes) -> bytes:
        digest.update(octets)
        return octets

    yield piece(_FIRST_LINE)
    yield piece(_packed(_HEAD, pack(head._replace(layout=layout()))))
    for part in parts:
        if isinstance(part, Section):
            yield piece(_packed(_SECTION, pack(part)))
        else:
            yield piece(_packed(_OBJECTS, pack_objects(part)))
    yield digest.digest()


def _packed(tag: int, value: bytes) -> bytes:
    return _record.pack(len(value), tag) + value


_read_head: Final[Callable[[bytes], Head]] = unpacker(Head)
_read_section: Final[Callable[[bytes], Section]] = unpacker(Section)


def check_steps(file: BinaryIO) -> Generator[None, None, Head]:
    """The head of a whole and readable snapshot, as the result of these steps. Raises SnapshotError, OSError.

    Objects may be read afterwards by `part_steps`, of the same open file.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    _check_format(file.readline(_LONGEST_LINE))
    digest, left = sha256(_FIRST_LINE), size - len(_FIRST_LINE) - _DIGEST_SIZE
    while left > 0:
        octets = file.read(min(left, _AT_ONCE))
        if not octets:
            break
        digest.update(octets)
        left -= len(octets)
        yield
    if left or file.read(_DIGEST_SIZE) != digest.digest():
        raise SnapshotError("damaged", f"is damaged: {size} octets without their checksum")
    file.seek(len(_FIRST_LINE))
    found = next(_records(file, size), None)
    head = None if found is None or found[0] != _HEAD else _read(_read_head, found[1])
    if head is None:
        raise SnapshotError("damaged", "is damaged: it has no head")
    if head.layout != layout():
        problem = f"has objects as topodns {head.program} writes them, which topodns {__version__} cannot read"
        raise SnapshotError("version", problem)
    return head


def _check_format(line: bytes) -> None:
    if line == _FIRST_LINE:
        return
    number = line.removeprefix(MAGIC).removesuffix(b"\n")
    if line.startswith(MAGIC) and line.endswith(b"\n") and number.isdigit():
        raise SnapshotError("version", f"has format {int(number)}, expected {FORMAT}: another topodns wrote it")
    raise SnapshotError("damaged", f"is no snapshot: it does not begin with {_FIRST_LINE.decode().strip()!r}")


def part_steps(file: BinaryIO) -> Iterator[Part]:
    """The parts of a snapshot that `check_steps` has found whole. Raises SnapshotError, OSError."""
    size = file.seek(0, os.SEEK_END)
    file.seek(len(_FIRST_LINE))
    kind: Kind = "Namespace"
    for tag, octets in _records(file, size):
        if tag == _SECTION:
            section = _read(_read_section, octets)
            if section.kind not in KINDS:
                raise SnapshotError("damaged", f"is damaged: it has a kind {section.kind!r}")
            kind = section.kind
            yield section
        elif tag == _OBJECTS:
            yield _read(partial(unpack_objects, kind), octets)[0]


def _records(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """(tag, octets) of each record, from here to the checksum."""
    while file.tell() < size - _DIGEST_SIZE:
        start = file.read(_record.size)
        length, tag = _record.unpack(start) if len(start) == _record.size else (_MAX_RECORD, 0)
        if length >= _MAX_RECORD or file.tell() + length > size - _DIGEST_SIZE:
            raise SnapshotError("damaged", "is damaged: a record does not end")
        yield tag, file.read(length)


def _read(reader: Callable[[bytes], T], octets: bytes) -> T:
    try:
        return reader(octets)
    except (ValueError, TypeError) as problem:  # msgspec's errors are ValueErrors
        raise SnapshotError("damaged", f"is damaged: {problem}") from problem
