"""Decodes the API objects of manifest files and merges several files into one cluster. Pure: no I/O.

Text is parsed by `documents`, objects are decoded by `cluster.decode.objects`.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, get_args

from topodns.cluster.decode.objects import DecodeError, decode_object
from topodns.cluster.label_selector import Selector
from topodns.cluster.model import (
    ClusterObject,
    EndpointSlice,
    Kind,
    Namespace,
    Node,
    NodeLocator,
    ObjectKey,
    Pod,
    PodLocator,
    Service,
    StatefulSet,
)
from topodns.kube.manifests.documents import Document, parse_documents
from topodns.kube.manifests.value import BadManifest

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SELECTABLE: Final = frozenset(("Service", "EndpointSlice", "Endpoints", "Pod"))  # as CoreDNS applies `labels`
_KIND_OF_TYPE: Final[Mapping[type[ClusterObject], Kind]] = {
    Namespace: "Namespace",
    Node: "Node",
    Service: "Service",
    EndpointSlice: "EndpointSlice",
    Pod: "Pod",
    NodeLocator: "NodeLocator",
    PodLocator: "PodLocator",
    StatefulSet: "StatefulSet",
}


class ManifestEntry(NamedTuple):
    """One API object of a file, and the model objects decoded from it (an Endpoints gives several)."""

    kind: str  # as in the file, so that an Endpoints does not conflict with an EndpointSlice
    key: ObjectKey
    line: int
    objects: tuple[ClusterObject, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """The decoded contents of one file. `skipped` has one log line per object that could not be decoded."""

    entries: tuple[ManifestEntry, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """All files merged: every kind, empty ones too. `conflicts`: a log line per pair of files that overlap."""

    objects: Mapping[Kind, tuple[ClusterObject, ...]]
    conflicts: tuple[str, ...]


def read_contents(file: str, data: bytes, selector: Selector | None = None) -> Generator[None, None, Contents]:
    """Decode a file; the generator returns its Contents, and yields where the caller may pause.

    `selector` applies to objects of the SELECTABLE kinds. Raises BadManifest where the file as a whole is unreadable,
    also where it is empty, since it may be half written; a file of comments alone is readable.
    """
    if not data.strip():
        raise BadManifest(file, 1, "empty; is it still being written?")
    entries: list[ManifestEntry] = []
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


def _entries(document: Document, selector: Selector | None) -> Iterator[ManifestEntry]:
    kind = document.object.get("kind")
    if not isinstance(kind, str):
        raise DecodeError("object", "", "it has no kind")
    if objects := decode_object(kind, document.object, selector if kind in SELECTABLE else None):
        yield ManifestEntry(kind, _key_of(objects[0]), document.line, objects)


def _key_of(value: ClusterObject) -> ObjectKey:
    """The key of the API object that `value` was decoded from. For a slice made of an Endpoints, which is named by
    subset, that is the key of the Endpoints, which has the name of its Service.
    """
    if isinstance(value, EndpointSlice) and value.mirrored:
        return ObjectKey(value.namespace, value.service_name)
    return value.key


class ManifestSet:
    """Merges several files into one cluster. Where two define one object, the file whose name sorts last wins."""

    def __init__(self) -> None:
        self._files: dict[str, Contents] = {}

    def put(self, file: str, contents: Contents) -> None:
        self._files[file] = contents

    def has_all(self, files: Iterable[str]) -> bool:
        """Whether each of these files was read at least once, even if it is unreadable now."""
        return self._files.keys() >= set(files)

    def keep_only(self, files: Collection[str]) -> None:
        """Forget all other files."""
        self._files = {file: contents for file, contents in self._files.items() if file in files}

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(line for file in sorted(self._files) for line in self._files[file].skipped)

    def merged(self) -> Merged:
        chosen: dict[tuple[str, ObjectKey], tuple[str, ManifestEntry]] = {}
        overlaps: dict[tuple[str, str], list[tuple[ManifestEntry, ManifestEntry]]] = {}
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


def _conflict(earlier: str, later: str, overlap: Sequence[tuple[ManifestEntry, ManifestEntry]]) -> str:
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
    """The EndpointSlices, except those made of an Endpoints whose Service also has real ones: the Endpoints repeats
    these or is outdated.
    """
    slices = [value for value in values if isinstance(value, EndpointSlice)]
    covered = {(each.namespace, each.service_name) for each in slices if not each.mirrored and not each.imported}
    return [each for each in slices if not each.mirrored or (each.namespace, each.service_name) not in covered]
