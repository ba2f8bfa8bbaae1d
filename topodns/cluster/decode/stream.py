"""What an API server says in a list and in a watch, read from its bytes: objects, deletions, bookmarks, errors.

Pure: no connection and no clock. One object at a time is decoded, by `decode`; a page keeps its objects unread.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from topodns.cluster.api_objects import (
    UNREADABLE,
    ApiBookmark,
    ApiList,
    ApiMark,
    ApiMetadata,
    ApiObject,
    ApiStatus,
    ApiStatusDetails,
    ApiWatchEvent,
    Json,
    Reader,
    read_identity,
)
from topodns.cluster.decode import DecodeError, decode_whole
from topodns.cluster.decode_fields import version_of
from topodns.cluster.model import ClusterObject, Deleted, Kind, ObjectKey, Upserted

_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"  # KEP-3157
_TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
_CLUSTER_SCOPED: Final[frozenset[Kind]] = frozenset(("Namespace", "Node"))


class UnreadableReply(ValueError):
    """Bytes that no API server should send: not the JSON of a watch event, or of a list."""


@dataclass(frozen=True, slots=True)
class Event:
    """One object changed. `version` is its resourceVersion, opaque; "" where it has none.

    `triggered` is when the Pod or Service changed that made the control plane write this EndpointSlice, in Unix
    seconds; None where it does not say.
    """

    change: Upserted | Deleted
    version: str
    triggered: float | None = None


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All events up to this resourceVersion have been sent; `initial_events_end`: and so have all objects there are."""

    version: str
    initial_events_end: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """The server ends the watch: `status` is an HTTP status, 410 where what was asked for is too old."""

    status: int
    problem: str
    retry_after: float | None = None  # seconds


@dataclass(frozen=True, slots=True)
class Undecodable:
    """One object that cannot be read, which says nothing about the others. `key` is None where it is illegible."""

    key: ObjectKey | None
    problem: str


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list. `next_token` asks for the part after it, "" where there is none."""

    items: tuple[Json, ...]
    version: str
    next_token: str


_EVENT: Final = Reader(ApiWatchEvent)
_BOOKMARK: Final = Reader(ApiBookmark)
_STATUS: Final = Reader(ApiStatus)
_LIST: Final = Reader(ApiList)
_METADATA: Final = Reader(ApiObject)


def read_watch_line(kind: Kind, line: bytes) -> Event | Bookmark | Refusal | Undecodable:
    """One line of a watch of this kind. Raises UnreadableReply.

    An object that stands for nothing (a Pod that is over or has no address yet) is as good as deleted.
    """
    try:
        event = _EVENT.read(line)
        if event.type == "BOOKMARK":
            return _bookmark(_BOOKMARK.read(event.object))
        if event.type == "ERROR":
            return _refusal(_STATUS.read(event.object))
    except RecursionError:
        return Undecodable(None, f"{kind} (unnamed): nested too deeply")
    except UNREADABLE as error:
        raise UnreadableReply(f"no watch event: {error}") from error
    if event.type == "DELETED":
        return _deletion(kind, event.object)
    if event.type in ("ADDED", "MODIFIED"):
        return _upsert(kind, event.object)
    raise UnreadableReply(f"a watch event of type '{event.type[:40]}'")


def read_page(kind: Kind, body: bytes) -> Page:
    """One page of a list of this kind, or a whole one. Raises UnreadableReply.

    A reply of something else (a proxy's own, a Status) must not pass for a list without objects.
    """
    try:
        read = _LIST.read(body)
    except UNREADABLE as error:
        raise UnreadableReply(f"no list: {error}") from error
    if read.kind != f"{kind}List":
        raise UnreadableReply(f"no list: kind '{(read.kind or '')[:40]}', expected {kind}List")
    mark = read.metadata or ApiMark()
    if not mark.resource_version:
        raise UnreadableReply("no list: metadata.resourceVersion is missing")
    return Page(tuple(read.items or ()), mark.resource_version, mark.continue_token or "")


def read_listed(kind: Kind, item: Json) -> ClusterObject | Undecodable | None:
    """One object of a page; None where it stands for nothing."""
    try:
        decoded = decode_whole(kind, item)
    except DecodeError as error:
        return _undecodable(kind, error)
    return decoded.objects[0] if decoded is not None and decoded.objects else None


def _upsert(kind: Kind, source: Json) -> Event | Undecodable:
    try:
        decoded = decode_whole(kind, source)
    except DecodeError as error:
        return _undecodable(kind, error)
    if decoded is None:
        return Undecodable(None, f"{kind} of an apiVersion that is not ours")
    metadata, version = decoded.metadata, decoded.metadata.resource_version or ""
    if not decoded.objects:
        return Event(_deleted(kind, metadata), version)
    return Event(Upserted(decoded.objects[0]), version, _trigger_time(metadata.annotations))


def _deletion(kind: Kind, source: Json) -> Event | Undecodable:
    """Whatever else is wrong with an object, its name is enough to delete it by."""
    try:
        metadata = _METADATA.read(source).metadata
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


def _trigger_time(annotations: Mapping[str, str] | None) -> float | None:
    """Unix seconds; None for what is no RFC 3339 time, as in CoreDNS."""
    text = (annotations or {}).get(_TRIGGER_TIME)
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.timestamp() if moment is not None and moment.tzinfo is not None else None
