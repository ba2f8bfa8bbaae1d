"""What manifest files say: the objects of one file, and of several files as one cluster. Pure: touches no file.

Text is read by `documents`, objects by `cluster.decode`.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, get_args

from topodns.cluster.decode import DecodeError, decode_object
from topodns.cluster.model import (
    ClusterObject,
    EndpointSlice,
    Kind,
    Namespace,
    Node,
    ObjectKey,
    Pod,
    Service,
    StatefulSet,
)
from topodns.cluster.selector import Selector
from topodns.edge.documents import BadManifest, Document, parse_documents

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SELECTABLE: Final = frozenset(("Service", "EndpointSlice", "Endpoints", "Pod"))  # as CoreDNS applies `labels`
_KIND_OF_TYPE: Final[Mapping[type[ClusterObject], Kind]] = {
    Namespace: "Namespace",
    Node: "Node",
    Service: "Service",
    EndpointSlice: "EndpointSlice",
    Pod: "Pod",
    StatefulSet: "StatefulSet",
}


class Entry(NamedTuple):
    """One API object of a file, and the values it stands for."""

    kind: str  # as written, so that an Endpoints is not taken for an EndpointSlice
    key: ObjectKey
    line: int
    objects: tuple[ClusterObject, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What one file holds. `skipped` has a line for the log for each object that could not be read."""

    entries: tuple[Entry, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """What all files say together: every kind, empty ones too. `conflicts` has a line for the log per pair of files."""

    objects: Mapping[Kind, tuple[ClusterObject, ...]]
    conflicts: tuple[str, ...]


def read_contents(file: str, data: bytes, selector: Selector | None = None) -> Generator[None, None, Contents]:
    """The contents of a file, as the generator's return value; it yields where the caller may pause.

    `selector` applies to objects of the SELECTABLE kinds. Raises BadManifest where the file as a whole cannot
    be read, which is what half a file looks like: nothing to read in it is such a case, a comment alone is not.
    """
    if not data.strip():
        raise BadManifest(file, 1, "empty; is it still being written?")
    entries: list[Entry] = []
    skipped: list[str] = []
    for document in parse_documents(data, file):
        yield
        if document is None:
            continue
        try:
            entries += _entries(document, selector)
        except DecodeError as error:
            skipped.append(f"{file}:{document.line}: skipped {error}")
    return Contents(tuple(entries), tuple(skipped))


def _entries(document: Document, selector: Selector | None) -> Iterator[Entry]:
    kind = document.object.get("kind")
    if not isinstance(kind, str):
        raise DecodeError("object", "", "it has no kind")
    if objects := decode_object(kind, document.object, selector if kind in SELECTABLE else None):
        yield Entry(kind, _key_of(objects[0]), document.line, objects)


def _key_of(value: ClusterObject) -> ObjectKey:
    """The name of the API object. Slices made of an Endpoints are named after its subsets, itself after its Service."""
    if isinstance(value, EndpointSlice) and value.mirrored:
        return ObjectKey(value.namespace, value.service_name)
    return value.key


class ManifestSet:
    """The contents of several files as one cluster. The file whose name sorts last wins where two define one object."""

    def __init__(self) -> None:
        self._files: dict[str, Contents] = {}

    def put(self, file: str, contents: Contents) -> None:
        self._files[file] = contents

    def has_all(self, files: Iterable[str]) -> bool:
        """Whether each of these files was read, now or before it became unreadable."""
        return self._files.keys() >= set(files)

    def keep_only(self, files: Collection[str]) -> None:
        """Forget all other files."""
        self._files = {file: contents for file, contents in self._files.items() if file in files}

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(line for file in sorted(self._files) for line in self._files[file].skipped)

    def merged(self) -> Merged:
        chosen: dict[tuple[str, ObjectKey], tuple[str, Entry]] = {}
        overlaps: dict[tuple[str, str], list[tuple[Entry, Entry]]] = {}
        for file in sorted(self._files):
            for entry in self._files[file].entries:
                identity = (entry.kind, entry.key)
                if identity in chosen:
                    earlier, loser = chosen[identity]
                    overlaps.setdefault((earlier, file), []).append((loser, entry))
                chosen[identity] = (file, entry)
        return Merged(
            objects=_by_kind(value for _, entry in chosen.values() for value in entry.objects),
            conflicts=tuple(_conflict(*files, entries) for files, entries in overlaps.items()),
        )


def _conflict(earlier: str, later: str, overlap: Sequence[tuple[Entry, Entry]]) -> str:
    loser, winner = overlap[0]
    name = "/".join(filter(None, winner.key))
    more = f" and {len(overlap) - 1} more" if len(overlap) > 1 else ""
    places = f"{earlier}:{loser.line} and {later}:{winner.line}"
    return f"{places} both define {winner.kind} {name}{more}; the latter counts"


def _by_kind(objects: Iterable[ClusterObject]) -> Mapping[Kind, tuple[ClusterObject, ...]]:
    found: dict[Kind, list[ClusterObject]] = {kind: [] for kind in KINDS}
    for value in objects:
        found[_kind_of(value)].append(value)
    found["EndpointSlice"] = _without_covered(found["EndpointSlice"])
    return {kind: tuple(values) for kind, values in found.items()}


def _kind_of(value: ClusterObject) -> Kind:
    if isinstance(value, Service) and value.imported:
        return "ServiceImport"
    return _KIND_OF_TYPE[type(value)]


def _without_covered(values: Iterable[ClusterObject]) -> list[ClusterObject]:
    """Drop what an Endpoints says of a Service that has slices: it says the same, or what was true before."""
    slices = [value for value in values if isinstance(value, EndpointSlice)]
    covered = {(each.namespace, each.service_name) for each in slices if not each.mirrored and not each.imported}
    return [each for each in slices if not each.mirrored or (each.namespace, each.service_name) not in covered]
