"""Decodes the API objects of manifest files and merges several files into one cluster. Pure: no I/O.

Text is parsed by `documents`, objects are decoded by `cluster.decode.objects`.
"""

import json
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, get_args

from topodns.cluster.decode.misspelt import misspellings
from topodns.cluster.decode.objects import Decoded, DecodeError, decode_whole
from topodns.cluster.decode.unreadable_elements import first_problems
from topodns.cluster.label_selector import Selector
from topodns.cluster.model import (
    ClusterObject,
    EndpointSlice,
    Kind,
    Namespace,
    ObjectKey,
    kind_of,
)
from topodns.kube.manifests.documents import Document, parse_documents
from topodns.kube.manifests.validation import check_fields, check_names, doubtful_ports
from topodns.kube.manifests.value import BadManifest

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_LONGEST_SHOWN: Final = 60  # characters of a value
_SERVICES: Final = ("Service", "ServiceImport")
# An API server makes them itself (`kubectl get` of other namespaces, or `helm template`, prints none).
_OF_EACH_CLUSTER: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
SELECTABLE: Final = frozenset(("Service", "EndpointSlice", "Endpoints", "Pod"))  # as CoreDNS applies `labels`


class ManifestEntry(NamedTuple):
    """One API object of a file, and the model objects decoded from it (an Endpoints gives several)."""

    kind: str  # as in the file, so that an Endpoints does not conflict with an EndpointSlice
    key: ObjectKey
    line: int
    objects: tuple[ClusterObject, ...]

    @property
    def name(self) -> str:
        """`namespace/name`, as messages have it."""
        return "/".join(filter(None, self.key))

    @property
    def identity(self) -> tuple[str, str]:
        return self.kind, self.name


class SkippedObject(NamedTuple):
    """An API object of a file that could not be decoded. `name` is `namespace/name` as in `DecodeError`.

    It is as written: without a namespace, it is of a kind that has none, or in the namespace `default`.
    """

    kind: str
    name: str
    line: int
    problem: str  # a log line

    @property
    def identities(self) -> tuple[tuple[str, str], ...]:
        """Those of the entries that it may be a later version of."""
        return (self.kind, self.name), (self.kind, f"default/{self.name}")


@dataclass(frozen=True, slots=True)
class Contents:
    """The decoded contents of one file.

    `left_out`: a log line for each object with elements that cannot be decoded, of which the others count. `remarks`: a
    log line for each document that is no manifest, or has misspelt words or repeated keys. `problem`: the error at
    which the reading ended, as with kubectl; "" if the file was read to its end.
    """

    entries: tuple[ManifestEntry, ...] = ()
    skipped: tuple[SkippedObject, ...] = ()
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    problem: str = ""

    def keeping(self, before: "Contents") -> "Contents":
        """These contents, with the last version that the file had of each object that was not read.

        As from an API server, that is each skipped object, and after a `problem` each object that is not there.
        """
        if not self.skipped and not self.problem:
            return self
        there = {entry.identity for entry in self.entries}
        last = {entry.identity: entry for entry in before.entries if entry.identity not in there}
        entries, skipped = list(self.entries), list[SkippedObject]()
        for each in self.skipped:
            kept = next((last.pop(identity) for identity in each.identities if identity in last), None)
            if kept is not None:
                entries.append(kept._replace(line=each.line))
                each = each._replace(problem=f"{each.problem}; its last version stays")
            skipped.append(each)
        if self.problem:
            entries += last.values()
        return replace(self, entries=tuple(entries), skipped=tuple(skipped))


@dataclass(frozen=True, slots=True)
class Merged:
    """All files merged: every kind, empty ones too.

    `problems`: a log line for each pair of files that overlap, and for each namespace with Services and no object.
    """

    objects: Mapping[Kind, tuple[ClusterObject, ...]]
    problems: tuple[str, ...]


def read_contents(
    file: str, data: bytes, selector: Selector | None = None, pod_labels: Collection[str] = ()
) -> Generator[None, None, Contents]:
    """Decode a file; the generator returns its Contents, and yields where the caller may pause.

    `selector` applies to objects of the SELECTABLE kinds; `pod_labels`: the keys of the labels that Pods keep. An empty
    file is unreadable, since it may be half written; a file of comments alone is readable.
    """
    if not data.strip():
        return Contents(problem=f"{file}:1: empty; is it still being written?")
    entries: list[ManifestEntry] = []
    skipped: list[SkippedObject] = []
    left_out: list[str] = []
    remarks: list[str] = []
    problems: list[str] = []

    def note(line: int, remark: str) -> None:
        remarks.append(f"{file}:{line}: {remark}")

    for document in _up_to_an_error(parse_documents(data, file, note), problems):
        yield
        if document is None:
            continue
        if _is_kubeconfig(document):
            note(document.line, "a kubeconfig, which has no objects; the option for it is `kubeconfig`")
            continue
        if remark := _misspelt(document):
            note(document.line, remark)
        try:
            kind, decoded = _decoded(document, selector, pod_labels)
        except DecodeError as error:
            problem = f"{file}:{document.line}: skipped {_described(document, error)}"
            skipped.append(SkippedObject(error.kind, error.name, document.line, problem))
            continue
        if decoded is not None and decoded.objects:
            entries.append(ManifestEntry(kind, _key_of(decoded.objects[0]), document.line, decoded.objects))
        if doubt := doubtful_ports(kind, document.object):
            note(document.line, f"{kind} {_name(document)}: {doubt}")
        if decoded is not None and decoded.left_out:
            left_out.append(f"{file}:{document.line}: {decoded.summary(kind)}")
    return Contents(tuple(entries), tuple(skipped), tuple(left_out), tuple(remarks), "".join(problems))


def _up_to_an_error(documents: Iterator[Document | None], problems: list[str]) -> Iterator[Document | None]:
    """The documents before the first error, which is added to `problems`."""
    try:
        yield from documents
    except BadManifest as error:
        problems.append(str(error))


def _decoded(
    document: Document, selector: Selector | None, pod_labels: Collection[str]
) -> tuple[str, Decoded[ClusterObject] | None]:
    """The kind of a document and what it decodes to, as far as an API server admits it. Raises DecodeError."""
    kind = document.object.get("kind")
    if not isinstance(kind, str):
        raise DecodeError("object", "", "it has no kind")
    _fill_null_annotations(document.object)
    try:
        decoded = decode_whole(kind, document.object, selector if kind in SELECTABLE else None, pod_labels)
    except DecodeError as error:
        check_fields(kind, document.object, error.name)  # which says what was expected
        raise
    if decoded is None:
        return kind, None
    check_names(kind, decoded)
    if decoded.objects:
        check_fields(kind, document.object, f"{decoded.metadata.namespace or 'default'}/{decoded.metadata.name}")
    return kind, decoded


def _fill_null_annotations(manifest: dict[str, object]) -> None:
    """Make an annotation without a value "", as kubectl and API servers do (kubernetes/kubernetes#129257).

    The values of labels are texts to the decoder, which does that itself.
    """
    metadata = manifest.get("metadata")
    texts = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(texts, dict) and None in texts.values():
        metadata["annotations"] = {name: "" if value is None else value for name, value in texts.items()}


def _misspelt(document: Document) -> str:
    """A remark about the misspelt words of a document; "" for none."""
    kind = document.object.get("kind")
    words = misspellings(kind, document.object) if isinstance(kind, str) else []
    if not words:
        return ""
    return f"{kind} {_name(document)}: {first_problems(words)}"


def _name(document: Document) -> str:
    """`namespace/name` as written, or the name alone; the metadata may be anything."""
    metadata = document.object.get("metadata")
    namespace, name = (metadata.get(each) if isinstance(metadata, dict) else "" for each in ("namespace", "name"))
    named = name if isinstance(name, str) else "(unnamed)"
    return f"{namespace}/{named}" if namespace and isinstance(namespace, str) else named


def _is_kubeconfig(document: Document) -> bool:
    found = document.object
    is_config = (found.get("kind"), found.get("apiVersion")) == ("Config", "v1")
    return is_config and not found.keys().isdisjoint(("clusters", "contexts"))


def _described(document: Document, error: DecodeError) -> str:
    """The error as text; of a name or label such as `yes` or `5`, which YAML reads as no text, with the
    value and the remedy.
    """
    metadata = document.object.get("metadata")
    if not isinstance(metadata, dict):
        return str(error)
    for field in ("namespace", "name"):
        if isinstance(value := metadata.get(field), bool | int | float):
            found = f"metadata.{field} is read as {json.dumps(value)}, expected text: put it in quotes"
            return str(DecodeError(error.kind, error.name, found))
    labels = metadata.get("labels")
    for name, value in labels.items() if isinstance(labels, dict) else ():
        if not isinstance(value, str):
            text = json.dumps(value)
            read = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
            found = f"metadata.labels: {name} is read as {read}, expected text: put it in quotes"
            return str(DecodeError(error.kind, error.name, found))
    return str(error)


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
        self._whole: set[str] = set()  # files that were read to their end at least once

    def put(self, file: str, contents: Contents) -> None:
        self._files[file] = contents.keeping(self._files.get(file, Contents()))
        if not contents.problem:
            self._whole.add(file)

    def has_all(self, files: Iterable[str]) -> bool:
        """Whether each of these files was read to its end at least once, even if it is unreadable now."""
        return self._whole >= set(files)

    def has_objects(self, file: str) -> bool:
        """Whether some object of this file is there."""
        return bool(self._files.get(file, Contents()).entries)

    def keep_only(self, files: Collection[str]) -> None:
        """Forget all other files."""
        self._files = {file: contents for file, contents in self._files.items() if file in files}
        self._whole &= set(files)

    @property
    def undecodable(self) -> tuple[str, ...]:
        """A log line for each object that could not be decoded, wholly or in part."""
        contents = [self._files[file] for file in sorted(self._files)]
        return tuple(line for each in contents for line in (*(one.problem for one in each.skipped), *each.left_out))

    @property
    def remarks(self) -> tuple[str, ...]:
        """A log line for each document that is no manifest, or has misspelt words or repeated keys."""
        return tuple(line for file in sorted(self._files) for line in self._files[file].remarks)

    def place(self, kind: str, key: ObjectKey) -> str:
        """FILE:LINE of the object that counts; "" if no file has it."""
        for file in sorted(self._files, reverse=True):
            for entry in reversed(self._files[file].entries):
                if (entry.kind, entry.key) == (kind, key):
                    return f"{file}:{entry.line}"
        return ""

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
        objects = _by_kind(value for _, entry in chosen.values() for value in entry.objects)
        lacking = _namespaces_without_object(objects["Namespace"], chosen.values())
        implied = tuple(Namespace(name) for name in lacking if name in _OF_EACH_CLUSTER)
        absent = (place for name, place in lacking.items() if name not in _OF_EACH_CLUSTER)
        return Merged(
            objects={**objects, "Namespace": (*objects["Namespace"], *implied)},
            problems=(*(_conflict(*files, entries) for files, entries in overlaps.items()), *absent),
        )


def _namespaces_without_object(
    known: Iterable[ClusterObject], entries: Iterable[tuple[str, ManifestEntry]]
) -> dict[str, str]:
    """A log line for each namespace that has a Service and is not among the known ones."""
    names, found = {each.key.name for each in known}, dict[str, str]()
    for file, entry in entries:
        namespace = entry.key.namespace
        if entry.kind in _SERVICES and namespace not in names and namespace not in found:
            found[namespace] = (
                f"{file}:{entry.line}: {entry.kind} {entry.name}: there is no Namespace {namespace}, so its names are "
                "NXDOMAIN"
            )
    return found


def _conflict(earlier: str, later: str, overlap: Sequence[tuple[ManifestEntry, ManifestEntry]]) -> str:
    loser, winner = overlap[0]
    more = f" and {len(overlap) - 1} more" if len(overlap) > 1 else ""
    places = f"{earlier}:{loser.line} and {later}:{winner.line}"
    return f"{places} both define {winner.kind} {winner.name}{more}; the latter counts"


def _by_kind(objects: Iterable[ClusterObject]) -> Mapping[Kind, tuple[ClusterObject, ...]]:
    found: dict[Kind, list[ClusterObject]] = {kind: [] for kind in KINDS}
    for value in objects:
        found[kind_of(value)].append(value)
    found["EndpointSlice"] = _without_covered(found["EndpointSlice"])
    return {kind: tuple(values) for kind, values in found.items()}


def _without_covered(values: Iterable[ClusterObject]) -> list[ClusterObject]:
    """The EndpointSlices, except those made of an Endpoints whose Service also has real ones: the Endpoints repeats
    these or is outdated.
    """
    slices = [value for value in values if isinstance(value, EndpointSlice)]
    covered = {(each.namespace, each.service_name) for each in slices if not each.mirrored and not each.imported}
    return [each for each in slices if not each.mirrored or (each.namespace, each.service_name) not in covered]
