"""The frames of a snapshot file (`files.framed_file`): a tag in one octet, then a value as MessagePack.

The first frame is the `Head`. A `Section` begins a kind, whose objects follow in frames of a batch each. Sections may
be of slightly different moments, as the lists of an API server are; but each object is one that existed, and the
resourceVersion in a Section is no newer than its objects.

A program reads only files of a program with the same fields of objects (`Head.layout`): a field that one of the two
does not have could make an answer wrong.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO, Final, NamedTuple, TypeVar

from topodns import __version__
from topodns.cluster.decode.structs import pack, unpacker
from topodns.cluster.model import ClusterObject, Kind
from topodns.cluster.packed_objects import KINDS, layout, pack_objects, unpack_objects
from topodns.files.framed_file import FileKind, UnusableFile, check_steps, frames
from topodns.time_slices import Job

T = TypeVar("T")

KIND: Final = FileKind(b"topodns snapshot\n", 1)

_HEAD, _SECTION, _OBJECTS = b"H", b"S", b"O"


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


def snapshot_frames(head: Head, parts: Iterable[Part]) -> Iterator[bytes]:
    """The frames of a snapshot, each made of one part when it is due."""
    yield _HEAD + pack(head._replace(layout=layout()))
    for part in parts:
        yield _SECTION + pack(part) if isinstance(part, Section) else _OBJECTS + pack_objects(part)


_read_head: Final[Callable[[bytes], Head]] = unpacker(Head)
_read_section: Final[Callable[[bytes], Section]] = unpacker(Section)


def head_steps(file: BinaryIO) -> Job[Head]:
    """The head of a whole and readable snapshot, as the result of these steps. Raises UnusableFile, OSError.

    Objects may be read afterwards by `part_steps`, of the same open file.
    """
    yield from check_steps(file, KIND)
    frame = next(frames(file, KIND), b"")
    if frame[:1] != _HEAD:
        raise UnusableFile("damaged", "is damaged: it has no head")
    head = _read(_read_head, frame)
    if head.layout != layout():
        problem = f"has objects as topodns {head.program} writes them, which topodns {__version__} cannot read"
        raise UnusableFile("version", problem)
    return head


def part_steps(file: BinaryIO) -> Iterator[Part]:
    """The parts of a snapshot that `head_steps` has found readable. Raises UnusableFile, OSError."""
    kind: Kind = "Namespace"
    for frame in frames(file, KIND):
        if frame[:1] == _SECTION:
            section = _read(_read_section, frame)
            if section.kind not in KINDS:
                raise UnusableFile("damaged", f"is damaged: it has a kind {section.kind!r}")
            kind = section.kind
            yield section
        elif frame[:1] == _OBJECTS:
            yield _read(partial(unpack_objects, kind), frame)[0]


def _read(reader: Callable[[bytes], T], frame: bytes) -> T:
    try:
        return reader(frame[1:])
    except (ValueError, TypeError) as problem:  # msgspec's errors are ValueErrors
        raise UnusableFile("damaged", f"is damaged: {problem}") from problem
