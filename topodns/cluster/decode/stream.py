"""Decoders of an API server's list and watch responses: objects, deletions, bookmarks, errors.

Pure: no connection, no clock. Objects are decoded one at a time, by a Decoder; a Page keeps its items undecoded.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from topodns.cluster.decode.fields import version_of
from topodns.cluster.decode.objects import Decoded, DecodeError, decode_whole
from topodns.cluster.decode.structs import (
    UNREADABLE,
    ApiBookmark,
    ApiGroup,
    ApiList,
    ApiMark,
    ApiMetadata,
    ApiObject,
    ApiOwned,
    ApiStatus,
    ApiStatusDetails,
    ApiStruct,
    ApiWatchEvent,
    Json,
    StructReader,
    read_identity,
)
from topodns.cluster.model import Deleted, Kind, ObjectKey, T_co, Upserted

_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"  # KEP-3157
_TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
_CLUSTER_SCOPED: Final[frozenset[Kind]] = frozenset(("Namespace", "Node", "NodeLocator", "ClusterProperty"))


class UnreadableReply(ValueError):
    """A response that is not the JSON of a watch event or of a list."""


@dataclass(frozen=True, slots=True)
class Event(Generic[T_co]):
    """A change of one object. `version` is its resourceVersion, opaque; "" if it has none.

    `triggered`: Unix seconds of the change of the Pod or Service for which the control plane wrote this EndpointSlice
    (annotation endpoints.kubernetes.io/last-change-trigger-time); None if absent. `left_out`: a log line about the
    elements of the object's lists that cannot be read and are left out; "" for none.
    """

    change: Upserted[T_co] | Deleted
    version: str
    triggered: float | None = None
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All events up to and including this resourceVersion were sent; `version` is "" if the bookmark has none.

    `initial_events_end`: also all objects of the initial list (KEP-3157).
    """

    version: str
    initial_events_end: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """An ERROR event, which ends the watch. `status`: HTTP status, 0 if absent; 410: the resourceVersion is too old."""

    status: int
    problem: str
    retry_after: float | None = None  # seconds


@dataclass(frozen=True, slots=True)
class Undecodable:
    """One object that cannot be decoded; others are not affected. `key` is None if it could not be determined."""

    key: ObjectKey | None
    problem: str


@dataclass(frozen=True, slots=True)
class Listed(Generic[T_co]):
    """An object of a list; `left_out` as in `Event`."""

    object: T_co
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list. `next_token` is the `continue` token for the next page, "" on the last."""

    items: tuple[Json, ...]
    version: str
    next_token: str


_EVENT: Final = StructReader(ApiWatchEvent)
_BOOKMARK: Final = StructReader(ApiBookmark)
_STATUS: Final = StructReader(ApiStatus)
_LIST: Final = StructReader(ApiList)
_GROUP: Final = StructReader(ApiGroup)
_METADATA: Final = StructReader(ApiObject)
_OWNED: Final = StructReader(ApiOwned)

# A pair of surrogates in a JSON text, or group 1: half of one (RFC 8259 section 8.2). It may follow an odd number of
# other backslashes; then it begins with no escape.
_SURROGATE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|([89a-fA-F][0-9a-fA-F]{2}))"
)
_NO_TEXT: Final = 6 * b"\xff"  # in no UTF-8, and as long as the escape
_WINDOW: Final = 256  # octets in which backslashes are counted at once
_MAX_SURROGATES: Final = 1 << 16  # of one text; an API server writes none, and those of this number take 0.05 s

T = TypeVar("T", bound=ApiStruct)

Decoder = Callable[[Kind, Json], Decoded[Any] | None]
"""Decodes an object like `objects.decode_whole`, perhaps to other values; no value counts as a deletion."""


def read_watch_line(
    kind: Kind, line: bytes, decode: Decoder = decode_whole
) -> Event[Any] | Bookmark | Refusal | Undecodable:
    """Decode one line of a watch of this kind. Raises UnreadableReply.

    An object without a value (a Pod that has ended or has no address yet) gives a deletion.
    """
    try:
        event = _read_whole(_EVENT, line)
        if event.type == "BOOKMARK":
            return _bookmark(_BOOKMARK.read_json(event.object))
        if event.type == "ERROR":
            return _refusal(_STATUS.read_json(event.object))
    except RecursionError:
        return Undecodable(None, f"{kind} (unnamed): nested too deeply")
    except UNREADABLE as error:
        raise UnreadableReply(f"no watch event: {error}") from error
    if event.type == "DELETED":
        return _deletion(kind, event.object)
    if event.type in ("ADDED", "MODIFIED"):
        return _upsert(kind, event.object, decode)
    raise UnreadableReply(f"a watch event of type '{event.type[:40]}'")


def read_page(kind: Kind, body: bytes) -> Page:
    """Decode one page of a list of this kind, or a whole list. Raises UnreadableReply.

    Any other body (from a proxy, a Status) must not pass for a list without objects.
    """
    try:
        read = _read_whole(_LIST, body)
    except UNREADABLE as error:
        raise UnreadableReply(f"no list: {error}") from error
    if read.kind != f"{kind}List":
        raise UnreadableReply(f"no list: kind '{(read.kind or '')[:40]}', expected {kind}List")
    mark = read.metadata or ApiMark()
    if not mark.resource_version:
        raise UnreadableReply("no list: metadata.resourceVersion is missing")
    return Page(tuple(read.items or ()), mark.resource_version, mark.continue_token or "")


def read_uid(item: Json) -> str:
    """The uid of an object of a page. Raises UnreadableReply."""
    try:
        return _OWNED.read_json(item).metadata.uid or ""
    except UNREADABLE as error:
        raise UnreadableReply(f"no object: {error}") from error


def read_listed(kind: Kind, item: Json, decode: Decoder = decode_whole) -> Listed[Any] | Undecodable | None:
    """Decode one object of a page; None if it has no value (as in `read_watch_line`) or an unsupported apiVersion."""
    try:
        decoded = decode(kind, item)
    except DecodeError as error:
        return _undecodable(kind, error)
    if decoded is None or not decoded.objects:
        return None
    return Listed(decoded.objects[0], decoded.summary(kind) if decoded.left_out else "")


def read_group(body: bytes) -> tuple[str, ...]:
    """The versions in the discovery document of an API group (`/apis/GROUP`). Raises UnreadableReply."""
    try:
        group = _GROUP.read_json(body)
    except UNREADABLE as error:
        raise UnreadableReply(f"no APIGroup: {error}") from error
    return tuple(each.version for each in group.versions or () if each.version)


def _read_whole(reader: StructReader[T], text: bytes) -> T:
    """Read a text that has objects in it, of which any may have a text that is none. Raises one of UNREADABLE.

    The reader skips octets that are no UTF-8, and refuses all for half of a surrogate pair: that becomes such octets,
    so that it costs its own object alone. With more than _MAX_SURROGATES the text is refused.
    """
    try:
        return reader.read_json(text)
    except RecursionError:
        raise
    except UNREADABLE:
        marked = _mark_halves(text)
        if marked is None:
            raise
    return reader.read_json(marked)


def _mark_halves(text: bytes) -> bytes | None:
    """The text with _NO_TEXT in place of halves of surrogate pairs; None without any, and with too many surrogates.

    It takes the memory of two such texts, whatever is in it.
    """
    marked, at = None, 0
    for _ in range(_MAX_SURROGATES):
        found = _SURROGATE.search(text, at)
        if found is None:
            return None if marked is None else bytes(marked)
        at = found.start()
        if _backslashes_before(text, at) % 2:
            at += 2
            continue
        if found[1] is not None:
            marked = bytearray(text) if marked is None else marked
            marked[at : found.end()] = _NO_TEXT
        at = found.end()
    return None


def _backslashes_before(text: bytes, end: int) -> int:
    start = end
    while start:
        window = text[max(0, start - _WINDOW) : start]
        others = len(window.rstrip(b"\\"))
        start -= len(window) - others
        if others:
            break
    return end - start


def _upsert(kind: Kind, source: Json, decode: Decoder) -> Event[Any] | Undecodable:
    try:
        decoded = decode(kind, source)
    except DecodeError as error:
        return _undecodable(kind, error)
    if decoded is None:
        return Undecodable(None, f"{kind} of an apiVersion that is not ours")
    metadata, version = decoded.metadata, decoded.metadata.resource_version or ""
    left_out = decoded.summary(kind) if decoded.left_out else ""
    if not decoded.objects:
        return Event(_deleted(kind, metadata), version, left_out=left_out)
    return Event(Upserted(decoded.objects[0]), version, _trigger_time(metadata.annotations), left_out)


def _deletion(kind: Kind, source: Json) -> Event[Any] | Undecodable:
    """Only the metadata is decoded: an object with any other error can still be deleted."""
    try:
        metadata = _METADATA.read_json(source).metadata
    except UNREADABLE as error:
        return _undecodable(kind, DecodeError(kind, read_identity(source)[1], str(error)))
    return Event(_deleted(kind, metadata), metadata.resource_version or "")


def _deleted(kind: Kind, metadata: ApiMetadata) -> Deleted:
    namespace = "" if kind in _CLUSTER_SCOPED else metadata.namespace or "default"
    return Deleted(kind, ObjectKey(namespace, metadata.name), version_of(metadata))


def _undecodable(kind: Kind, error: DecodeError) -> Undecodable:
    namespace, _, name = error.name.rpartition("/")
    whole = bool(name) and bool(namespace) != (kind in _CLUSTER_SCOPED)
    return Undecodable(ObjectKey(namespace, name) if whole else None, str(error))


def _bookmark(read: ApiBookmark) -> Bookmark:
    mark = read.metadata or ApiMark()
    ended = (mark.annotations or {}).get(_INITIAL_EVENTS_END) == "true"
    return Bookmark(mark.resource_version or "", ended)


def _refusal(status: ApiStatus) -> Refusal:
    details = status.details or ApiStatusDetails()
    problem = ": ".join(filter(None, (status.reason, status.message))) or "no reason given"
    return Refusal(status.code or 0, problem, details.retry_after_seconds)


def _trigger_time(annotations: Mapping[str, Any] | None) -> float | None:
    """The trigger time in Unix seconds; None if absent or not an RFC 3339 time, as in CoreDNS."""
    text = (annotations or {}).get(_TRIGGER_TIME)
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment.timestamp() if moment is not None and moment.tzinfo is not None else None
