"""What one reflector knows: how far it has read, what it may believe, what could not be read. Does no waiting.

Between a list that is complete and the state there is only this: whether to believe it.
"""

import logging
from typing import Final

from topodns.cluster.decode_fields import parse_version
from topodns.cluster.model import ClusterObject, ObjectKey, Upserted
from topodns.cluster.watch import Bookmark, Event, Undecodable
from topodns.edge.api_source.intake import Intake
from topodns.edge.api_source.listing import Listing
from topodns.edge.api_source.progress import Progress
from topodns.edge.foreign_text import one_line

log = logging.getLogger(__name__)

BELIEVED_SIZE: Final = 100  # objects: fewer may well vanish at once
BELIEVED_REMAINDER: Final = 0.1  # of the objects held: a list shorter than that is hard to believe


class Ledger:
    """Of one kind. `version` is the resourceVersion to watch from; None: a list comes first."""

    version: str | None = None

    def __init__(self, progress: Progress, intake: Intake) -> None:
        self._progress = progress
        self._kind = progress.resource.kind
        self._intake = intake
        self._seen = ""  # the last version read; no list may be older
        self._any_age = False  # the next list is to be the newest there is, whatever its number
        self._doubted = False  # the last list was, so the next one counts
        self._news: set[ObjectKey] | None = None
        self._undecodable: dict[ObjectKey | None, str] = {}  # what the log knows

    @property
    def floor(self) -> dict[str, str]:
        """The parameters that ask for a list no older than what was seen (two API servers may differ in age)."""
        if not self._seen or self._any_age:
            return {}
        return {"resourceVersion": self._seen, "resourceVersionMatch": "NotOlderThan"}

    def forget_version(self, any_age: bool = False) -> None:
        """List again; of `any_age` where the server does not know what was seen, as after etcd was restored."""
        self.version = None
        self._any_age = self._any_age or any_age

    def take(self, item: Event | Bookmark | Undecodable) -> None:
        """Something that a watch says."""
        match item:
            case Event(change, version):
                key = change.object.key if isinstance(change, Upserted) else change.key
                self._readable(key)
                self._progress.events += 1
                if self._news is not None:
                    self._news.add(key)
                self._intake.take(self._kind, item)
                self._advance(version)
            case Bookmark(version):
                self._advance(version)
            case Undecodable():
                self._complain(item)

    def collect(self, listing: Listing, item: Event | Undecodable | ClusterObject | None) -> None:
        """Something that a list says; None is an object that stands for nothing."""
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
        """Why this list is hard to believe, "" if it is not. The one after a list in doubt is believed."""
        doubt = "" if self._doubted else self._shrinkage(len(listing)) or self.age(version)
        self._doubted = bool(doubt)
        self._any_age = self._any_age or bool(doubt)
        return doubt

    def is_behind(self, version: str) -> bool:
        """Whether something newer was seen already. Versions that are no numbers have no order."""
        return 0 < parse_version(version) < parse_version(self._seen)

    def age(self, version: str) -> str:
        """In words that something newer was seen already, "" if it was not."""
        if not self.is_behind(version):
            return ""
        return f"its resourceVersion {version} is older than {self._seen}, which was seen before"

    def listed(self, version: str) -> None:
        """A list was taken in, the watch goes on from here."""
        self.version = self._seen = version
        self._any_age = False
        self._progress.lists += 1
        self._progress.listed = True

    def follow_news(self) -> set[ObjectKey]:
        """The keys of all objects that events tell of from now on, until `ignore_news`."""
        self._news = set()
        return self._news

    def ignore_news(self) -> None:
        self._news = None

    def _advance(self, version: str) -> None:
        """An event that comes late does not move the watch back."""
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
