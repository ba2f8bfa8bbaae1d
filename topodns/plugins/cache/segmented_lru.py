"""Segmented LRU table (Karedla, Love and Wherry 1994): a bounded, scan-resistant table of cache entries.

New entries are on probation; entries queried again are protected. A flood of names that are queried once evicts only
entries that were queried once. Entries of a client above its share are evicted first, so that its queries for random
names, even if repeated, evict nothing that another client has queried.
"""

from itertools import islice
from typing import Final

from topodns.dns.wire_format import MAX_MESSAGE
from topodns.memory.budget import Budget
from topodns.plugins.cache.counts import TableCounts
from topodns.plugins.cache.entry import CacheEntry, EntryOwner

MAX_ENTRY: Final = MAX_MESSAGE  # octets; a hostile message is larger here, where names are uncompressed
CLIENT_SHARE: Final = 4  # divisor: a client may own a quarter of a full table

_PROTECTED_SHARE: Final = 0.8
# A dict keeps its order and is half as large as an OrderedDict, but finding its first key steps over all deleted ones.
# So entries are evicted in batches of one part in _BATCH_SHARE of the table.
_BATCH_SHARE: Final = 64
# Octets per entry of object headers and of slots in dictionaries with many deletions: see bench/cache_memory.py.
_OVERHEAD: Final = 360
_TIDY: Final = 64

Segment = dict[bytes, CacheEntry]


class SegmentedLru:
    """At most `capacity` entries within the octets granted by the budget, including keys and Python's overhead."""

    def __init__(self, capacity: int, budget: Budget, counts: TableCounts | None = None) -> None:
        self.counts = counts or TableCounts()
        self.limit = 0  # octets
        self._capacity = capacity
        self._budget = budget
        budget.add(self)
        # Both ordered from the least recently used, and never replaced.
        self._probation: Segment = {}
        self._protected: Segment = {}
        self._max_protected = int(capacity * _PROTECTED_SHARE)
        self._batch = max(1, capacity // _BATCH_SHARE)
        self._owners: dict[bytes, EntryOwner] = {}
        self._largest = EntryOwner(b"")  # the owner of most octets, updated at insertions only
        self.octets = 0

    def __repr__(self) -> str:
        return f"<Table {len(self._probation)}+{len(self._protected)} entries, {self.octets} octets>"

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    def peek(self, key: bytes) -> CacheEntry | None:
        """The entry, even with an expired TTL, None if there is none. This does not count as a use."""
        return self._protected.get(key) or self._probation.get(key)

    @property
    def segments(self) -> tuple[Segment, Segment]:
        """The entries by key, in two dictionaries that stay the same, for a lookup without a call. Only to be read."""
        return self._probation, self._protected

    def __contains__(self, key: bytes) -> bool:
        return key in self._probation or key in self._protected

    def touch(self, key: bytes, client: bytes = b"") -> None:
        """Make this entry, which must exist, the most recently used of the protected ones, which are evicted last.

        `client`: who used it, b"" for no particular client. A client other than the owner ends the ownership. With too
        many protected entries, the least recently used of them go on probation.
        """
        segment = self._protected if key in self._protected else self._probation
        entry = self._protected[key] = segment.pop(key)
        if entry.owner is not None and entry.owner.address != client:
            self._disown(key, entry)
        if len(self._protected) > self._max_protected:
            for oldest in list(islice(self._protected, self._batch)):
                self._probation[oldest] = self._protected.pop(oldest)

    def insert(self, key: bytes, entry: CacheEntry, client: bytes = b"") -> bool:
        """Insert or replace the entry, and evict others if need be. False, without effect, if it exceeds MAX_ENTRY.

        A new entry gets the owner `client`, none for b""; a replaced one hands on its owner.
        """
        if len(entry.packed) > MAX_ENTRY:
            return False
        segment = self._protected if key in self._protected else self._probation
        size = len(key) + len(entry.packed) + _OVERHEAD
        known = segment.get(key)
        segment[key] = entry
        if known is None:
            self.octets += size
            if client:
                self._own(key, entry, client, size)
        else:
            more = size - _size(key, known)
            self.octets += more
            if known.owner is not None:
                known.owner.octets += more
                entry.owner = known.owner
        while self.octets > self.limit and self._budget.grant(self):
            pass
        if len(self._probation) + len(self._protected) > self._capacity or self.octets > self.limit:
            self._make_room(spared=key)
        return True

    def remove(self, key: bytes) -> None:
        """Remove the entry if it exists."""
        segment = self._protected if key in self._protected else self._probation
        if key in segment:
            self._drop(segment, key)

    def lower(self, octets: int) -> None:
        """Lower the limit by `octets`, which the budget gives to another table, and evict what no longer fits."""
        self.limit -= octets
        if self.octets > self.limit:
            self._make_room()

    def _own(self, key: bytes, entry: CacheEntry, client: bytes, size: int) -> None:
        owner = self._owners.get(client)
        if owner is None:
            owner = self._owners[client] = EntryOwner(client)
        entry.owner = owner
        owner.octets += size
        owner.keys.append(key)
        if owner.octets > self._largest.octets:
            self._largest = owner
        if len(owner.keys) > owner.tidy_at:
            self._tidy(owner)

    def _tidy(self, owner: EntryOwner) -> None:
        """Remove from `owner.keys` those of entries that the owner no longer owns."""
        own = (key for key in owner.keys if (entry := self.peek(key)) is not None and entry.owner is owner)
        owner.keys = type(owner.keys)(own)
        owner.tidy_at = 2 * len(owner.keys) + _TIDY

    def _disown(self, key: bytes, entry: CacheEntry) -> None:
        owner = entry.owner
        if owner is not None:
            entry.owner = None
            owner.octets -= _size(key, entry)
            if owner.keys[0] == key:  # nearly always, since the oldest is removed first
                owner.keys.popleft()
            if not owner.octets:
                del self._owners[owner.address]

    def _drop(self, segment: Segment, key: bytes) -> None:
        entry = segment.pop(key)
        self.octets -= _size(key, entry)
        self._disown(key, entry)

    def _make_room(self, spared: bytes = b"") -> None:
        """Evict until one part in _BATCH_SHARE of the table is free, in number and in octets.

        The largest owner's entries above its share go first, then those on probation, then protected ones. `spared`:
        key of the entry to keep in any case, since it is the one inserted last.
        """
        few, light = self._capacity - self._batch, self.limit - self.limit // _BATCH_SHARE
        before = len(self)
        self._evict_own(self._largest, few, light, spared)
        for segment in (self._probation, self._protected):
            kept = int(spared in segment)
            # A batch of keys at a time: a list of all keys at each call would cost more than the eviction.
            while len(segment) > kept and (len(self) > few or self.octets > light):
                for key in list(islice(segment, self._batch + kept)):
                    if len(self) <= few and self.octets <= light:
                        break
                    if key != spared:
                        self._drop(segment, key)
        self.counts.evictions += before - len(self)

    def _evict_own(self, owner: EntryOwner, few: int, light: int, spared: bytes) -> None:
        """Evict the owner's oldest entries but `spared` while the owner exceeds its share.

        Protected ones are not evicted but go on probation. Ends once at most `few` entries and `light` octets remain in
        the table.
        """
        keys, probation, protected = owner.keys, self._probation, self._protected
        much, many = self.octets - light, len(self) - few
        while len(keys) > 1 and (many > 0 or much > 0) and owner.octets * CLIENT_SHARE > self.octets:
            key = keys.popleft()
            if key == spared:
                kept = self.peek(key)
                if kept is not None and kept.owner is owner and keys[-1] != key:
                    keys.append(key)
                continue
            entry = probation.get(key)
            if entry is None:
                asked_again = protected.get(key)
                if asked_again is not None and asked_again.owner is owner:
                    probation[key] = protected.pop(key)
                    keys.append(key)
            elif entry.owner is owner and key != keys[-1]:
                del probation[key]
                size = _size(key, entry)
                owner.octets -= size
                self.octets -= size
                much -= size
                many -= 1


def _size(key: bytes, entry: CacheEntry) -> int:
    return len(key) + len(entry.packed) + _OVERHEAD
