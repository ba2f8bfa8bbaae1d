"""The state of synchronisation of one kind: its resourceVersions, the keys that change while a list is read, and the
objects that cannot be decoded.

Of the latter each is counted, and logged once. One that is undecodable as a whole is skipped, and its last version
stays; of one with undecodable elements the others count (`cluster.decode.unreadable_elements`). So one bad object costs
neither the others their updates, nor its own clients the answers from the version before it.
"""

from typing import Any

from topodns.cluster.decode.fields import parse_version
from topodns.cluster.decode.stream import Bookmark, Event, Undecodable
from topodns.cluster.model import ObjectKey, Upserted
from topodns.kube.informer.progress import Progress, lag
from topodns.kube.informer.store import Store
from topodns.logs import one_line


class SyncState:
    """The resourceVersions of one kind: that to watch from, and the newest one seen; and its undecodable objects.

    Events of the kind go through here to `store`.
    """

    version: str | None = None  # the resourceVersion to watch from; None: list first

    def __init__(self, progress: Progress, store: Store) -> None:
        self._progress = progress
        self._kind = progress.resource.kind
        self._store = store
        self.seen = ""  # the last resourceVersion seen; a list must not be older
        self._any_age = False  # the next list is the newest there is (no resourceVersion), even if older than `seen`
        self._recordings: list[set[ObjectKey]] = []  # see `record_changes`
        self.undecodable = UndecodableObjects(progress)

    @property
    def not_older_than(self) -> dict[str, str]:
        """Parameters for a list at least as new as the last seen version (replicas of the API server may lag).

        {}, for a list of the newest version, if no version was seen yet or the newest is requested.
        """
        if not self.seen or self._any_age:
            return {}
        return {"resourceVersion": self.seen, "resourceVersionMatch": "NotOlderThan"}

    def forget_version(self, any_age: bool = False) -> None:
        """Force a list; with `any_age` it may be older than the last seen version, as after etcd was restored."""
        self.version = None
        if any_age:
            self.request_newest()

    def request_newest(self) -> None:
        """Request the next list as the newest there is, even if that is older than the last seen version."""
        self._any_age = True

    def apply(self, item: Event[Any] | Bookmark | Undecodable) -> None:
        """Apply one item of a watch, in the order of the watch.

        An event goes to the store; then its resourceVersion is the one to watch from, unless it
        is older than that. A bookmark only advances the version. An undecodable object is only counted and, if its
        problem is new, logged: its last decoded version stays in the store.
        """
        match item:
            case Event(change, version):
                self._progress.events += 1
                if item.left_out or self.undecodable.problems or self._recordings:
                    self._changed(change.object.key if isinstance(change, Upserted) else change.key, item.left_out)
                self._store.apply(self._kind, item)
                self._advance(version)
            case Bookmark(version):
                self._advance(version)
            case Undecodable():
                self.undecodable.skip(item)

    def is_behind(self, version: str) -> bool:
        """Whether a version newer than this one was seen before. Versions that are not numbers have no order: False."""
        return 0 < parse_version(version) < parse_version(self.seen)

    def lag(self, version: str) -> str:
        """`is_behind` as a clause for a log line; "" if it is not."""
        return lag(version, self.seen) if self.is_behind(version) else ""

    def list_applied(self, version: str) -> None:
        """Record that a list of this version was applied: the watch starts from it."""
        self.version = self.seen = version
        self._any_age = False
        self._progress.lists += 1
        self._progress.listed = True
        self.undecodable.end_list()

    def record_changes(self) -> set[ObjectKey]:
        """A set that gets the keys of all objects changed by events from now until `stop_recording`."""
        self._recordings.append(set())
        return self._recordings[-1]

    def stop_recording(self, changed: set[ObjectKey]) -> None:
        self._recordings = [each for each in self._recordings if each is not changed]

    def _changed(self, key: ObjectKey, left_out: str) -> None:
        self.undecodable.note(key, left_out)
        for recording in self._recordings:
            recording.add(key)

    def _advance(self, version: str) -> None:
        """Move the watch position forward; an older version never moves it back."""
        if version and not self.is_behind(version):
            self.version = self.seen = version


class UndecodableObjects:
    """The undecodable objects of one kind. `problems`: the problem logged last of each, by key."""

    def __init__(self, progress: Progress) -> None:
        self.problems: dict[ObjectKey | None, str] = {}
        self._reported: set[ObjectKey | None] = set()  # since the last list
        self._progress = progress

    def skip(self, item: Undecodable) -> None:
        """Report an object that cannot be decoded."""
        self._report(item.key, f"skipped {item.problem}")

    def note(self, key: ObjectKey, left_out: str) -> None:
        """Report the elements left out of an object that was decoded.

        Without any, or where it was deleted, forget its problem, so that a problem with it is logged again.
        """
        if left_out:
            self._report(key, left_out)
        else:
            self.problems.pop(key, None)

    def end_list(self) -> None:
        """Forget the problems of objects that are not in the list that was just applied: they are deleted."""
        self.problems = {key: problem for key, problem in self.problems.items() if key in self._reported}
        self._reported.clear()

    def _report(self, key: ObjectKey | None, found: str) -> None:
        """Count the object, and log its problem unless that was the last one logged of it."""
        self._reported.add(key)
        self._progress.decode_errors += 1
        problem = one_line(found)
        if self.problems.get(key) != problem:
            self.problems[key] = problem
            self._progress.reports.say(problem)
