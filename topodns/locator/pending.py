"""Decides which locator to write next, and when. Pure: time is an argument, in seconds.

The first change of a locator is written at once, later ones at most once per window. An address is added to a locator
only when no other one has it any more, so that at no moment two of them disagree about it; meanwhile the rest of the
change waits for it, for a window at most.

Changes of labels alone are written after all others, at most LABEL_WRITES a second: a label of a Node is in the
locators of all its Pods, and a new topology key changes those of all Nodes.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from topodns.cluster.address_index import AddressIndex
from topodns.cluster.model import ObjectKey
from topodns.locator.objects import LocatorContent, StoredLocator, is_newer, is_older

FIRST_RETRY, LAST_RETRY = 1.0, 60.0  # seconds until a write that was refused is repeated; doubles each time
LABEL_WRITES: Final = 500  # a second, which change only labels: those of 5,000 locators in 10 s
_LABEL_BURST: Final = 0.1  # seconds, of which the writes that were not made then may be made together


@dataclass(frozen=True, slots=True, eq=False)
class LocatorWrite:
    """One write. `content` is to be stored, None: deleted; `stored` is what it changes, None: it creates the object."""

    key: ObjectKey
    content: LocatorContent | None
    stored: StoredLocator | None
    began: float

    @property
    def changes_only_labels(self) -> bool:
        before, after = self.stored.content if self.stored is not None else None, self.content
        if before is None or after is None or before.labels == after.labels:
            return False
        return replace(before, labels=after.labels) == after


@dataclass(slots=True)
class _Pending:
    since: float  # of the oldest change that is not written
    due: float
    refusals: int = 0


@dataclass(slots=True)
class _Waiting:
    """Keys of locators that wait for an address to leave another one."""

    keys: dict[bytes, set[ObjectKey]] = field(default_factory=dict)

    def add(self, key: ObjectKey, addresses: Iterable[bytes]) -> None:
        for address in addresses:
            self.keys.setdefault(address, set()).add(key)

    def released(self, addresses: Iterable[bytes]) -> set[ObjectKey]:
        return {key for address in addresses for key in self.keys.pop(address, ())}


class PendingWrites:
    """The locators that are not written as they should be. `desired` gives each as it should be, None for none."""

    def __init__(self, window: float, desired: Callable[[ObjectKey], LocatorContent | None]) -> None:
        self._window = window  # seconds
        self._desired = desired
        self.stored: dict[ObjectKey, StoredLocator] = {}  # the locators at the API server
        self._pending: dict[ObjectKey, _Pending] = {}
        self._order: list[tuple[float, ObjectKey]] = []  # a heap; an entry whose time is not `due` is outdated
        self._in_flight: dict[ObjectKey, LocatorWrite] = {}
        self._deleted: dict[ObjectKey, str] = {}  # the version at which one with a write in flight was deleted
        self._uncertain: set[ObjectKey] = set()  # those whose last write may have taken effect
        self._written: dict[ObjectKey, float] = {}  # when, within the last window
        self._recent: deque[tuple[float, ObjectKey]] = deque()  # `_written` in order of time
        # Of each address, the locators that have or may have it at the API server.
        self._holders: AddressIndex[ObjectKey] = AddressIndex()
        self._held: dict[ObjectKey, tuple[bytes, ...]] = {}
        self._waiting = _Waiting()
        self._relabelled: dict[ObjectKey, None] = {}  # those of which only labels may have to change, in order
        self._next_label_write = -math.inf  # the earliest time

    def __len__(self) -> int:
        """The number of locators that are not written as they should be."""
        return len(self._pending)

    @property
    def stored_addresses(self) -> int:
        """The number of addresses of Pods in the locators at the API server."""
        return sum(len(stored.ips) for stored in self.stored.values())

    def lag(self, now: float) -> float:
        """The age of the oldest change that is not written, without those of labels alone; 0.0 for none."""
        ages = (now - each.since for key, each in self._pending.items() if key not in self._relabelled)
        return max(ages, default=0.0)

    def touch(self, keys: Iterable[ObjectKey], now: float) -> None:
        """The locators with these keys may have to change."""
        for key in keys:
            if (pending := self._pending.get(key)) is None:
                self._pending[key] = _Pending(now, math.inf)
            elif pending.due <= now or (pending.refusals and pending.due < math.inf):
                continue  # it is due already, or to be repeated
            self._schedule(key, now)

    @property
    def newest(self) -> int:
        """The newest resourceVersion that is known of a locator, 0 for none."""
        return max((int(each.version) for each in self.stored.values() if each.version.isdecimal()), default=0)

    def forget_versions(self) -> None:
        """Accept older versions again, as etcd was restored: what is seen next of a locator is what is stored."""
        self.stored = {key: replace(each, version="") for key, each in self.stored.items()}

    def see(self, key: ObjectKey, stored: StoredLocator | None, version: str, now: float) -> None:
        """The locator is this at the API server since this resourceVersion; None: it was deleted.

        What is older than the known object, of which the response to a write came first, counts no more: so its
        addresses stay held where the deletion of the object before it is late.
        """
        known = self.stored.get(key)
        if known is not None:
            late = is_older(version, known.version) if stored is None else not is_newer(version, known.version)
            if late:
                return
        if stored is None:
            self.stored.pop(key, None)
        else:
            self.stored[key] = stored
        ips = stored.ips if stored is not None else ()
        if (write := self._in_flight.get(key)) is not None:
            if stored is None:
                self._deleted[key] = version
            self._hold(key, {*ips, *(write.content.ips if write.content is not None else ())}, now)
            return
        self._hold(key, ips, now)
        if (pending := self._pending.get(key)) is not None:
            pending.refusals = 0  # a conflict is over
        self.touch([key], now)

    def wait(self, now: float) -> float:
        """Seconds until `take` may have a write; infinite where it cannot before the next change."""
        while self._order and not self._is_current(*self._order[0]):
            heapq.heappop(self._order)
        due = self._order[0][0] if self._order else math.inf
        return max(0.0, min(due, self._next_label_write if self._relabelled else math.inf) - now)

    def take(self, now: float) -> LocatorWrite | None:
        """A write that is due, the longest first. Its outcome must be reported by one of the next three methods."""
        self._forget_windows(now)
        while self._order and self._order[0][0] <= now:
            due, key = heapq.heappop(self._order)
            if self._is_current(due, key) and (write := self._next_write(key, now)) is not None:
                if not write.changes_only_labels:
                    return self._begin(write, now)
                self._pending[key].due = math.inf
                self._relabelled[key] = None
        return self._take_relabelled(now)

    def _take_relabelled(self, now: float) -> LocatorWrite | None:
        while self._relabelled and self._next_label_write <= now:
            key = next(iter(self._relabelled))
            del self._relabelled[key]
            if key in self._pending and key not in self._in_flight and (write := self._next_write(key, now)):
                self._next_label_write = max(self._next_label_write, now - _LABEL_BURST) + 1 / LABEL_WRITES
                return self._begin(write, now)
        return None

    def _begin(self, write: LocatorWrite, now: float) -> LocatorWrite:
        key = write.key
        self._in_flight[key] = write
        self._pending[key].due = math.inf
        if write.content is not None:
            self._hold(key, {*self._held.get(key, ()), *write.content.ips}, now)
        return write

    def succeeded(self, write: LocatorWrite, stored: StoredLocator | None, now: float) -> None:
        """The write is done; `stored` is the result, None after a deletion."""
        key = write.key
        self._ended(write)
        deleted = self._deleted.pop(key, "")
        if stored is not None and deleted and not is_newer(stored.version, deleted):
            stored = None
        known = self.stored.get(key)
        if stored is None:
            if known is None or write.stored is None or known.uid == write.stored.uid:
                self.stored.pop(key, None)
        elif known is None or is_newer(stored.version, known.version):
            self.stored[key] = stored
        present = self.stored.get(key)
        self._hold(key, present.ips if present is not None else (), now)
        pending = self._pending[key]
        pending.refusals = 0
        self._uncertain.discard(key)
        if _is_written(present, self._desired(key)):
            del self._pending[key]  # at once, for the lag
        else:
            pending.since = max(pending.since, write.began)
            self._schedule(key, now)

    def refused(self, write: LocatorWrite, now: float) -> None:
        """The API server has refused the write, so nothing has changed there. It is repeated, ever later."""
        if write.key not in self._uncertain:
            present = self.stored.get(write.key)
            self._hold(write.key, present.ips if present is not None else (), now)
        self._repeat(write, now)

    def failed(self, write: LocatorWrite, now: float) -> None:
        """Record that a write failed and may have taken effect nevertheless: another write of the locator follows."""
        self._uncertain.add(write.key)
        self._repeat(write, now)

    def _repeat(self, write: LocatorWrite, now: float) -> None:
        self._ended(write)
        self._deleted.pop(write.key, None)
        pending = self._pending[write.key]
        pending.due = now + min(LAST_RETRY, FIRST_RETRY * 2**pending.refusals)
        pending.refusals = min(pending.refusals + 1, 10)
        heapq.heappush(self._order, (pending.due, write.key))

    def _ended(self, write: LocatorWrite) -> None:
        del self._in_flight[write.key]
        if write.content is not None:  # what replaces a deleted object is created at once
            self._written[write.key] = write.began
            self._recent.append((write.began, write.key))

    def _next_write(self, key: ObjectKey, now: float) -> LocatorWrite | None:
        """The write that brings this locator nearer to what it should be; None for none, or none yet."""
        pending, stored, desired = self._pending[key], self.stored.get(key), self._desired(key)
        certain = key not in self._uncertain
        if desired is not None:
            taken = [ip for ip in desired.ips if any(holder != key for holder in self._holders.keys(ip))]
            if taken:
                self._waiting.add(key, taken)
                if now < pending.since + self._window:
                    pending.due = pending.since + self._window
                    heapq.heappush(self._order, (pending.due, key))
                    return None
                desired = _without(desired, taken)
                if certain and _is_written(stored, desired):
                    pending.due = math.inf  # until the other locator is written
                    return None
        if certain and _is_written(stored, desired):
            del self._pending[key]
            return None
        if desired is not None and stored is not None and stored.owner_uids - {desired.owner_uid}:
            desired = None  # first: apply keeps the owners that it did not set, and Kubernetes deletes it with these
        return LocatorWrite(key, desired, stored, now)

    def _schedule(self, key: ObjectKey, now: float) -> None:
        """Make it due when its window allows; one with a write in flight is scheduled at its end."""
        pending = self._pending[key]
        if key in self._in_flight:
            pending.due = math.inf
            return
        due = max(now, self._written.get(key, -math.inf) + self._window)
        if due != pending.due:
            pending.due = due
            heapq.heappush(self._order, (due, key))

    def _hold(self, key: ObjectKey, addresses: Iterable[bytes], now: float) -> None:
        """Record which addresses this locator may have at the API server; those that wait for released ones are due."""
        old, new = self._held.pop(key, ()), tuple(addresses)
        if new:
            self._held[key] = new
        self._holders.move(key, old, new)
        self.touch(self._waiting.released(set(old).difference(new)), now)

    def _is_current(self, due: float, key: ObjectKey) -> bool:
        pending = self._pending.get(key)
        return pending is not None and pending.due == due and key not in self._in_flight

    def _forget_windows(self, now: float) -> None:
        while self._recent and self._recent[0][0] + self._window <= now:
            began, key = self._recent.popleft()
            if self._written.get(key) == began:
                del self._written[key]


def _is_written(stored: StoredLocator | None, desired: LocatorContent | None) -> bool:
    if stored is None or desired is None:
        return stored is None and desired is None
    return stored.content == desired


def _without(locator: LocatorContent, taken: Iterable[bytes]) -> LocatorContent | None:
    """The locator without these addresses; None for a PodLocator that has no other."""
    ips = tuple(ip for ip in locator.ips if ip not in set(taken))
    return replace(locator, ips=ips) if ips or not locator.node else None
