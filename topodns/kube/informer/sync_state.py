"""State of one reflector: its resourceVersion, health, counters and undecodable objects. Never waits."""

import logging
from dataclasses import dataclass, replace
from typing import Literal

from topodns.cluster.decode.fields import parse_version
from topodns.cluster.decode.stream import Bookmark, Event, Undecodable
from topodns.cluster.model import ObjectKey, Upserted
from topodns.kube.client.contract import ApiError
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.state_writer import StateWriter
from topodns.logs import one_line

log = logging.getLogger(__name__)


Verb = Literal["list", "watch"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """The failure of the last request."""

    verb: Verb
    status: int  # HTTP status; 0 where no response came
    problem: str
    also_denied: Verb | None = None  # the other verb, where RBAC denies it too


@dataclass(slots=True)
class Progress:
    """Health and counters of one kind."""

    resource: Resource
    last_received: float  # when data for it last arrived, in seconds of the loop's clock
    listed: bool = False  # whether a complete list was applied at least once
    trouble: Trouble | None = None
    lists: int = 0
    repairs: int = 0  # objects that differed from a verifying list
    decode_errors: int = 0
    events: int = 0

    @property
    def relists(self) -> int:
        return max(0, self.lists - 1)

    def failed(self, verb: Verb, error: ApiError) -> bool:
        """Record a failed request. Returns whether to log it: there was no failure, or one of other verb or status."""
        before, self.trouble = self.trouble, Trouble(verb, error.status, str(error))
        if before is None or (before.verb, before.status) != (verb, error.status):
            return True
        self.trouble = replace(self.trouble, also_denied=before.also_denied)
        return False

    def tried_other(self, verb: Verb, denied: bool) -> bool:
        """Record whether RBAC denies `verb`, the other one, too. Returns whether it does, but not when last tried."""
        if self.trouble is None:
            return False
        before, now = self.trouble.also_denied, verb if denied else None
        self.trouble = replace(self.trouble, also_denied=now)
        return denied and before is None

    def succeeded(self, now: float) -> bool:
        """Record a proof of health at `now` (loop seconds). Returns whether it ends a failure."""
        self.last_received = now
        before, self.trouble = self.trouble, None
        return before is not None

    def describe(self) -> str:
        """The kind and why it is not in sync, for the log and /ready."""
        name = self.resource.name
        if self.trouble is None:
            return f"{self.resource.kind} ({name}: no complete list yet)"
        more = f"; {self.trouble.also_denied} is denied too" if self.trouble.also_denied else ""
        return f"{self.resource.kind} (cannot {self.trouble.verb} {name}: {self.trouble.problem}{more})"


class SyncState:
    """How far one kind is in sync: the resourceVersions seen, and the objects that cannot be decoded."""

    version: str | None = None  # the resourceVersion to watch from; None: list first

    def __init__(self, progress: Progress, writer: StateWriter) -> None:
        self._progress = progress
        self._kind = progress.resource.kind
        self._writer = writer
        self._seen = ""  # the last resourceVersion seen; a list must not be older
        self._any_age = False  # the next list is the newest there is (no resourceVersion), even if older than `_seen`
        self._changed_keys: set[ObjectKey] | None = None  # see `record_changes`
        self._undecodable: dict[ObjectKey | None, str] = {}  # the problem last logged, by key

    @property
    def not_older_than(self) -> dict[str, str]:
        """Parameters for a list at least as new as the last seen version (replicas of the API server may lag).

        {}, for a list of the newest version, if no version was seen yet or the newest is requested.
        """
        if not self._seen or self._any_age:
            return {}
        return {"resourceVersion": self._seen, "resourceVersionMatch": "NotOlderThan"}

    def forget_version(self, any_age: bool = False) -> None:
        """Force a list; `any_age` where the server lacks the last seen version, as after etcd was restored."""
        self.version = None
        if any_age:
            self.request_newest()

    def request_newest(self) -> None:
        """Request the next list as the newest there is, even if that is older than the last seen version."""
        self._any_age = True

    def apply(self, item: Event | Bookmark | Undecodable) -> None:
        """Apply one item of a watch to the cluster state."""
        match item:
            case Event(change, version):
                self._progress.events += 1
                if self._undecodable or self._changed_keys is not None:
                    self._changed(change.object.key if isinstance(change, Upserted) else change.key)
                self._writer.apply(self._kind, item)
                self._advance(version)
            case Bookmark(version):
                self._advance(version)
            case Undecodable():
                self.note_undecodable(item)

    def is_behind(self, version: str) -> bool:
        """Whether a newer version was seen before. Versions that are not numbers have no order: False."""
        return 0 < parse_version(version) < parse_version(self._seen)

    def lag(self, version: str) -> str:
        """`is_behind` as a clause for a log line; "" if it is not."""
        if not self.is_behind(version):
            return ""
        return f"its resourceVersion {version} is older than {self._seen}, which was seen before"

    def list_applied(self, version: str) -> None:
        """Record that a list of this version was applied: the watch starts from it."""
        self.version = self._seen = version
        self._any_age = False
        self._progress.lists += 1
        self._progress.listed = True

    def record_changes(self) -> set[ObjectKey]:
        """A set that gets the keys of all objects changed by events from now until `stop_recording`."""
        self._changed_keys = set()
        return self._changed_keys

    def stop_recording(self) -> None:
        self._changed_keys = None

    def note_undecodable(self, item: Undecodable) -> None:
        """Count an object that cannot be decoded, and log its problem unless that was the last one logged of it."""
        self._progress.decode_errors += 1
        problem = one_line(item.problem)
        if self._undecodable.get(item.key) != problem:
            self._undecodable[item.key] = problem
            log.warning("plugin/kubernetes: skipped %s", problem)

    def note_decoded(self, key: ObjectKey) -> None:
        """Forget the problem of an object that can be decoded (again), so that it is logged if it comes back."""
        if self._undecodable:
            self._undecodable.pop(key, None)

    def _changed(self, key: ObjectKey) -> None:
        self.note_decoded(key)
        if self._changed_keys is not None:
            self._changed_keys.add(key)

    def _advance(self, version: str) -> None:
        """Move the watch position forward; an older version never moves it back."""
        if version and not self.is_behind(version):
            self.version = self._seen = version
