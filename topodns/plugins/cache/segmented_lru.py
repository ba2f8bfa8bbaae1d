"""A bounded table of entries that a scan does not empty: least recently used, in two segments.

What is new is on probation; only what is asked for again is protected. A flood of names that are asked for once
pushes out nothing but itself and others that were asked for once. (Karedla, Love and Wherry 1994: "segmented LRU".)
And where a client has more than its share, all room is made at its own cost: its junk, also where it asks twice for
it, pushes out nothing that another client has asked for.
"""

from itertools import islice
from typing import Final

from topodns.resolve.budget import Budget
from topodns.resolve.cache.counts import TableCounts
from topodns.resolve.cache.entry import Entry, Owner

MAX_ENTRY: Final = 65_535  # octets: a whole message; names in it are kept uncompressed, so a hostile one can be more
CLIENT_SHARE: Final = 4  # a client may have a quarter of a full table to itself

_PROTECTED_SHARE: Final = 0.8
# Plain dictionaries keep their order and are half as large as an OrderedDict, but to find the first key they step over
# all that was deleted before it. So room is made for many at once: this part of the whole.
_BATCH_SHARE: Final = 64
# Octets of the objects of one entry beside their content, and its place in dictionaries in which much came and went:
# see bench/cache_memory.py.
_OVERHEAD: Final = 360
_TIDY: Final = 64

Segment = dict[bytes, Entry]


class Table:
    """At most `capacity` entries, in as many octets as the budget gives, keys and Python's own overhead counted."""

    def __init__(self, capacity: int, budget: Budget, counts: TableCounts | None = None) -> None:
        self.counts = counts or TableCounts()
        self.limit = 0  # octets
        self._capacity = capacity
        self._budget = budget
        budget.enrol(self)
        self._probation: Segment = {}  # both from the one that was asked for longest ago
        self._protected: Segment = {}
        self._max_protected = int(capacity * _PROTECTED_SHARE)
        self._batch = max(1, capacity // _BATCH_SHARE)
        self._owners: dict[bytes, Owner] = {}
        self._largest = Owner(b"")  # as far as insertions tell
        self.octets = 0

    def __repr__(self) -> str:
        return f"<Table {len(self._probation)}+{len(self._protected)} entries, {self.octets} octets>"

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    def peek(self, key: bytes) -> Entry | None:
        """The entry, whatever its age."""
        return self._protected.get(key) or self._probation.get(key)

    def __contains__(self, key: bytes) -> bool:
        return key in self._probation or key in self._protected

    def touch(self, key: bytes, client: bytes = b"") -> None:
        """The entry, which is there, was asked for again; `client` is who did, b"" nobody in particular."""
        segment = self._protected if key in self._protected else self._probation
        entry = self._protected[key] = segment.pop(key)
        if entry.owner is not None and entry.owner.address != client:
            self._disown(key, entry)
        if len(self._protected) > self._max_protected:
            for oldest in list(islice(self._protected, self._batch)):
                self._probation[oldest] = self._protected.pop(oldest)

    def insert(self, key: bytes, entry: Entry, client: bytes = b"") -> bool:
        """Put in the entry, in the place of the one that was there. False: it is larger than any message."""
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
            self._make_room()
        return True

    def remove(self, key: bytes) -> None:
        """Take out the entry, if it is there."""
        segment = self._protected if key in self._protected else self._probation
        if key in segment:
            self._drop(segment, key)

    def lower(self, octets: int) -> None:
        """Let another table have so many octets of the limit."""
        self.limit -= octets
        if self.octets > self.limit:
            self._make_room()

    def _own(self, key: bytes, entry: Entry, client: bytes, size: int) -> None:
        owner = self._owners.get(client)
        if owner is None:
            owner = self._owners[client] = Owner(client)
        entry.owner = owner
        owner.octets += size
        owner.keys.append(key)
        if owner.octets > self._largest.octets:
            self._largest = owner
        if len(owner.keys) > owner.tidy_at:
            self._tidy(owner)

    def _tidy(self, owner: Owner) -> None:
        """Keep the keys of what is the owner's own."""
        own = (key for key in owner.keys if (entry := self.peek(key)) is not None and entry.owner is owner)
        owner.keys = type(owner.keys)(own)
        owner.tidy_at = 2 * len(owner.keys) + _TIDY

    def _disown(self, key: bytes, entry: Entry) -> None:
        owner = entry.owner
        if owner is not None:
            entry.owner = None
            owner.octets -= _size(key, entry)
            if owner.keys[0] == key:  # as nearly always: what goes is the oldest
                owner.keys.popleft()
            if not owner.octets:
                del self._owners[owner.address]

    def _drop(self, segment: Segment, key: bytes) -> None:
        entry = segment.pop(key)
        self.octets -= _size(key, entry)
        self._disown(key, entry)

    def _make_room(self) -> None:
        """Evict until a batch more fits in: what a client has above its share, then what is on probation, then others.

        Never what has just come in.
        """
        few, light = self._capacity - self._batch, self.limit - self.limit // _BATCH_SHARE
        before = len(self)
        self._evict_own(self._largest, few, light)
        for segment, spared in ((self._probation, 1), (self._protected, 0)):
            # A few keys at a time: a list of all of them, each time that room is made, costs more than the rest.
            while len(segment) > spared and (len(self) > few or self.octets > light):
                for key in list(islice(segment, min(self._batch, len(segment) - spared))):
                    if len(self) <= few and self.octets <= light:
                        break
                    self._drop(segment, key)
        self.counts.evictions += before - len(self)

    def _evict_own(self, owner: Owner, few: int, light: int) -> None:
        """Evict the oldest of an owner that has more than its share; what it asked for again, at the second time."""
        keys, probation, protected = owner.keys, self._probation, self._protected
        much, many = self.octets - light, len(self) - few
        while len(keys) > 1 and (many > 0 or much > 0) and owner.octets * CLIENT_SHARE > self.octets:
            key = keys.popleft()
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


def _size(key: bytes, entry: Entry) -> int:
    return len(key) + len(entry.packed) + _OVERHEAD
