"""State of one reflector: its resourceVersion, health, counters and undecodable objects, and lists under construction.

Also decides whether a complete list is plausible; only then does it replace the cluster state. Never waits.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from topodns.cluster.decode.fields import parse_version
from topodns.cluster.decode.stream import Bookmark, Event, Undecodable
from topodns.cluster.model import ClusterObject, Deleted, Kind, ObjectKey, Upserted
from topodns.cluster.state import ClusterState
from topodns.kube.client.contract import ApiError
from topodns.kube.informer.resources import Resource
from topodns.kube.informer.state_writer import Intake
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
    """Health and counters of one kind. `heard`: when data for it last arrived, in seconds of the loop's clock."""

    resource: Resource
    heard: float
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
        """Record a failure; whether its verb or status is new, and so worth a log line."""
        before, self.trouble = self.trouble, Trouble(verb, error.status, str(error))
        if before is None or (before.verb, before.status) != (verb, error.status):
            return True
        self.trouble = replace(self.trouble, also_denied=before.also_denied)
        return False

    def tried_other(self, verb: Verb, denied: bool) -> bool:
        """Record whether RBAC denies the other verb too; whether that is new."""
        if self.trouble is None:
            return False
        before, now = self.trouble.also_denied, verb if denied else None
        self.trouble = replace(self.trouble, also_denied=now)
        return denied and before is None

    def answered(self, now: float) -> bool:
        """Record a proof of health; whether it ends a failure."""
        self.heard = now
        before, self.trouble = self.trouble, None
        return before is not None

    def describe(self) -> str:
        """The kind and why it is not in sync, for the log and /ready."""
        name = self.resource.name
        if self.trouble is None:
            return f"{self.resource.kind} ({name}: no complete list yet)"
        more = f"; {self.trouble.also_denied} is denied too" if self.trouble.also_denied else ""
        return f"{self.resource.kind} (cannot {self.trouble.verb} {name}: {self.trouble.problem}{more})"


LET_GO_AT_ONCE: Final = 512  # objects; about 50 us


class Listing:
    """The objects of an incomplete list. An unchanged object is shared with the state, so it is in memory once."""

    version: str = ""  # the list's resourceVersion, once known

    def __init__(self, kind: Kind, state: ClusterState) -> None:
        self._kind = kind
        self._state = state
        self._objects: dict[ObjectKey, ClusterObject] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, listed: ClusterObject) -> None:
        self._objects[listed.key] = self._state.held_twin(listed)

    def take(self, change: Upserted | Deleted) -> None:
        """Apply one initial event of a watch: normally an addition; a deletion removes the object."""
        match change:
            case Upserted(value):
                self.add(value)
            case Deleted(_, key):
                self._objects.pop(key, None)

    def keep(self, undecodable: Undecodable) -> None:
        """Keep the held version of an object that cannot be decoded: it has not been deleted."""
        held = self._state.held(self._kind, undecodable.key) if undecodable.key is not None else None
        if held is not None:
            self._objects[held.key] = held

    def objects(self) -> tuple[ClusterObject, ...]:
        return tuple(self._objects.values())

    def let_go(self) -> Iterator[None]:
        """Empty the listing, LET_GO_AT_ONCE objects per step: 150,000 keys in one step would delay queries by 20 ms."""
        while self._objects:
            for _ in range(min(LET_GO_AT_ONCE, len(self._objects))):
                self._objects.popitem()
            yield


BELIEVED_SIZE: Final = 100  # objects held: with no more than these, any shorter list is plausible
BELIEVED_REMAINDER: Final = 0.1  # of the objects held: a list with fewer is implausible


class Ledger:
    """Versions seen of one kind. `version` is the resourceVersion to watch from; None means list first."""

    version: str | None = None

    def __init__(self, progress: Progress, intake: Intake) -> None:
        self._progress = progress
        self._kind = progress.resource.kind
        self._intake = intake
        self._seen = ""  # the last resourceVersion seen; a list must not be older
        self._any_age = False  # the next list is the newest there is (no resourceVersion), even if older than `_seen`
        self._doubted = False  # the last list was implausible, so the next one is accepted
        self._news: set[ObjectKey] | None = None  # see `follow_news`
        self._undecodable: dict[ObjectKey | None, str] = {}  # the problem last logged, by key

    @property
    def floor(self) -> dict[str, str]:
        """Parameters for a list at least as new as the last seen version (replicas of the API server may lag)."""
        if not self._seen or self._any_age:
            return {}
        return {"resourceVersion": self._seen, "resourceVersionMatch": "NotOlderThan"}

    def forget_version(self, any_age: bool = False) -> None:
        """Force a list; `any_age` where the server lacks the last seen version, as after etcd was restored."""
        self.version = None
        self._any_age = self._any_age or any_age

    def take(self, item: Event | Bookmark | Undecodable) -> None:
        """Apply one item of a watch to the state."""
        match item:
            case Event(change, version):
                self._progress.events += 1
                if self._undecodable or self._news is not None:
                    self._changed(change.object.key if isinstance(change, Upserted) else change.key)
                self._intake.take(self._kind, item)
                self._advance(version)
            case Bookmark(version):
                self._advance(version)
            case Undecodable():
                self._complain(item)

    def collect(self, listing: Listing, item: Event | Undecodable | ClusterObject | None) -> None:
        """Add one item of a list to `listing`; None is an object without effect on answers (a finished Pod)."""
        match item:
            case None:
                return
            case Undecodable():
                self._complain(item)
                listing.keep(item)
            case Event(change):
                listing.take(change)
            case value:
                self._readable(value.key)
                listing.add(value)

    def doubt(self, listing: Listing, version: str) -> str:
        """Why this list is implausible, "" if it is plausible. The list after an implausible one is always accepted."""
        doubt = "" if self._doubted else self._shrinkage(len(listing)) or self.age(version)
        self._doubted = bool(doubt)
        self._any_age = self._any_age or bool(doubt)
        return doubt

    def is_behind(self, version: str) -> bool:
        """Whether a newer version was seen before. Versions that are not numbers have no order: False."""
        return 0 < parse_version(version) < parse_version(self._seen)

    def age(self, version: str) -> str:
        """`is_behind` as text for the log; "" if it is not."""
        if not self.is_behind(version):
            return ""
        return f"its resourceVersion {version} is older than {self._seen}, which was seen before"

    def listed(self, version: str) -> None:
        """Record that a list of this version was applied: the watch starts from it."""
        self.version = self._seen = version
        self._any_age = False
        self._progress.lists += 1
        self._progress.listed = True

    def follow_news(self) -> set[ObjectKey]:
        """A set that collects the keys of all objects changed by events from now until `ignore_news`."""
        self._news = set()
        return self._news

    def ignore_news(self) -> None:
        self._news = None

    def _changed(self, key: ObjectKey) -> None:
        self._readable(key)
        if self._news is not None:
            self._news.add(key)

    def _advance(self, version: str) -> None:
        """Move the watch position forward; an older version never moves it back."""
        if version and not self.is_behind(version):
            self.version = self._seen = version

    def _shrinkage(self, listed: int) -> str:
        held = self._intake.state.counts()[self._kind]
        if held <= BELIEVED_SIZE or listed >= held * BELIEVED_REMAINDER:
            return ""
        return f"it has {listed} objects where there were {held}"

    def _complain(self, item: Undecodable) -> None:
        self._progress.decode_errors += 1
        problem = one_line(item.problem)
        if self._undecodable.get(item.key) != problem:
            self._undecodable[item.key] = problem
            log.warning("plugin/kubernetes: skipped %s", problem)

    def _readable(self, key: ObjectKey) -> None:
        if self._undecodable:
            self._undecodable.pop(key, None)
