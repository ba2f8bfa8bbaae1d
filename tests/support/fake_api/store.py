"""The objects of one resource with their resourceVersions, and the recent changes that a watch may start from."""

import asyncio
import base64
import json
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from tests.support.fake_api.exchange import encoded
from tests.support.fake_api.resources import Object, Resource
from tests.support.fake_api.selectors import Matcher

WINDOW: Final = 10_000  # changes that are remembered for watches to start from
CREATED: Final = "2024-05-01T10:00:00Z"

Key = tuple[str, str]
"""(namespace, name)"""


class Stored(Protocol):
    """An object as JSON that begins with its kind and apiVersion; it may be made anew whenever it is asked for."""

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields that field selectors can name."""

    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Held:
    text: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    def body(self) -> bytes:
        return self.text


@dataclass(slots=True)
class Revisions:
    """etcd's one counter, which all resources share."""

    last: int = 1000

    def next(self) -> int:
        self.last += 1
        return self.last


class Event(NamedTuple):
    """One change. `old` or `new` is None where the object was not or is no longer; `body` is its part of a watch."""

    revision: int
    old: Stored | None
    new: Stored | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a request is about."""

    namespace: str
    by_labels: Matcher
    by_fields: Matcher

    def __call__(self, stored: Stored | None) -> bool:
        return (
            stored is not None
            and (not self.namespace or stored.fields.get("metadata.namespace") == self.namespace)
            and self.by_labels(stored.labels)
            and self.by_fields(stored.fields)
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    revision: int
    objects: Sequence[Stored]


@dataclass(eq=False, slots=True)
class Watcher:
    """The server's end of one watch: lines that wait to be sent. `wake` is set whenever there is something to do."""

    selection: Selection
    bookmarks: bool  # whether the client allows them
    lines: deque[bytes] = field(default_factory=deque)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    silent: bool = False  # a stalled watch: nothing is sent, and it does not end
    garbled: bool = False  # next comes something that HTTP does not know, and then a silence
    over: bool = False  # ends once the lines are sent
    hung_up: bool = False  # by the client

    def offer(self, event: Event) -> None:
        """Take a change in, as far as the client sees it through its selectors."""
        before, after = self.selection(event.old), self.selection(event.new)
        if before or after:
            kind = "DELETED" if not after else "MODIFIED" if before else "ADDED"
            self.send(watch_line(kind, event.body))

    def send(self, line: bytes) -> None:
        self.lines.append(line)
        self.wake.set()

    def end(self) -> None:
        self.over = True
        self.wake.set()

    def hang_up(self) -> None:
        self.hung_up = True
        self.wake.set()


class Store:
    """One resource. `lose` is how many of the next changes no watch gets, now or later."""

    def __init__(self, resource: Resource, revisions: Revisions) -> None:
        self.resource = resource
        self.watchers: set[Watcher] = set()
        self.older: Snapshot | None = None  # what this server sees if it is behind in time
        self.restored = False  # and whether there is no newer one
        self.deaf = False  # watches from the future are served, with no events
        self.listed_empty = False
        self.lose = 0
        self.oldest = 0  # a watch from before this revision is too old
        self._revisions = revisions
        self._objects: dict[Key, Stored] = {}
        self._history: deque[Event] = deque()
        self._pages: dict[str, tuple[Snapshot, int]] = {}

    def load(self, key: Key, stored: Stored) -> None:
        """Have an object since before anyone watched; its body names a resourceVersion of up to `Revisions.last`."""
        self._objects[key] = stored

    def get(self, key: Key) -> Object | None:
        stored = self._objects.get(key)
        return None if stored is None else _as_object(stored.body())

    def keys(self) -> Sequence[Key]:
        return sorted(self._objects)

    def objects(self) -> list[Object]:
        return [_as_object(stored.body()) for stored in self._objects.values()]

    def put(self, value: Object) -> Object:
        """Create or replace, with what the server adds to metadata; the object as stored."""
        metadata = value["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        revision, old = self._revisions.next(), self._objects.get(key)
        added = {"uid": str(uuid.uuid5(uuid.NAMESPACE_OID, repr(key))), "creationTimestamp": CREATED}
        whole = {
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
            **value,
            "metadata": {**added, **metadata, "resourceVersion": str(revision)},
        }
        new = self._objects[key] = held(whole)
        self._publish(Event(revision, old, new, new.text))
        return whole

    def delete(self, key: Key) -> Object | None:
        """The last state of the object with the resourceVersion of its deletion; None where there was none."""
        old = self._objects.pop(key, None)
        if old is None:
            return None
        revision, whole = self._revisions.next(), _as_object(old.body())
        whole["metadata"]["resourceVersion"] = str(revision)
        self._publish(Event(revision, old, None, encoded(whole)))
        return whole

    @property
    def revision(self) -> int:
        """How far this server has seen."""
        return self.older.revision if self.older is not None else self._revisions.last

    @property
    def last_revision(self) -> int:
        """How far etcd is."""
        return self.revision if self.restored else self._revisions.last

    def snapshot(self, selection: Selection, newest: bool = False) -> Snapshot:
        """All objects that are selected, ordered by key. `newest`: of etcd itself, and not of this server's cache."""
        seen = Snapshot(self._revisions.last, [self._objects[key] for key in self.keys()])
        if self.older is not None and (self.restored or not newest):
            seen = self.older
        objects = () if self.listed_empty else seen.objects
        return Snapshot(seen.revision, [one for one in objects if selection(one)])

    def events_since(self, revision: int) -> list[Event]:
        return [event for event in self._history if event.revision > revision]

    def compact(self) -> None:
        """Forget all changes and pages: a client that wants to go on from an earlier version is too late."""
        self._history.clear()
        self._pages.clear()
        self.oldest = self._revisions.next()

    def keep_page(self, snapshot: Snapshot, start: int) -> str:
        """A `continue` token for the rest of a list from this position on."""
        token = encoded({"v": "meta.k8s.io/v1", "rv": snapshot.revision, "start": str(len(self._pages))})
        text = base64.urlsafe_b64encode(token).decode().rstrip("=")
        self._pages[text] = (snapshot, start)
        return text

    def page(self, token: str) -> tuple[Snapshot, int] | None:
        """Where a `continue` token leads; None where it is too old."""
        return self._pages.get(token)

    def _publish(self, event: Event) -> None:
        if self.lose:
            self.lose -= 1
            return
        if len(self._history) == WINDOW:
            self.oldest = self._history.popleft().revision
        self._history.append(event)
        for watcher in self.watchers:
            watcher.offer(event)


def held(value: Object) -> Held:
    metadata = value["metadata"]
    fields = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata.get("namespace", ""),
        "spec.nodeName": (value.get("spec") or {}).get("nodeName", ""),
        "status.phase": (value.get("status") or {}).get("phase", ""),
    }
    return Held(encoded(value), metadata.get("labels") or {}, fields)


def watch_line(kind: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


def _as_object(body: bytes) -> Object:
    value: Object = json.loads(body)
    return value
