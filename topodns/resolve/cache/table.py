"""A bounded table of entries that a scan does not empty: least recently used, in two segments.

What is new is on probation; only what is asked for again is protected. A flood of names that are asked for once
pushes out nothing but itself and others that were asked for once. (Karedla, Love and Wherry 1994: "segmented LRU".)
"""

from itertools import islice
from typing import Final

from topodns.resolve.cache.counts import TableCounts
from topodns.resolve.cache.entry import Entry

MAX_ENTRY: Final = 65_535  # octets: a whole message; names in it are kept uncompressed, so a hostile one can be more

_PROTECTED_SHARE: Final = 0.8
# Plain dictionaries keep their order and are half as large as an OrderedDict, but to find the first key they step over
# all that was deleted before it. So room is made for many at once: this part of the whole.
_BATCH_SHARE: Final = 64
_OVERHEAD: Final = 230  # octets of the objects of one entry beside their content, and its place in the dictionary

Segment = dict[bytes, Entry]


class Table:
    """At most `capacity` entries, in at most `octets` together, keys and Python's own overhead counted."""

    def __init__(self, capacity: int, octets: int, counts: TableCounts | None = None) -> None:
        self.counts = counts or TableCounts()
        self._capacity, self._max_octets = capacity, octets
        self._probation: Segment = {}  # both from the one that was asked for longest ago
        self._protected: Segment = {}
        self._max_protected = int(capacity * _PROTECTED_SHARE)
        self._batch = max(1, capacity // _BATCH_SHARE)
        self.octets = 0

    def __repr__(self) -> str:
        return f"<Table {len(self._probation)}+{len(self._protected)} entries, {self.octets} octets>"

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    def peek(self, key: bytes) -> Entry | None:
        """The entry, whatever its age."""
        return self._protected.get(key) or self._probation.get(key)

    def touch(self, key: bytes) -> None:
        """The entry, which is there, was asked for again."""
        segment = self._protected if key in self._protected else self._probation
        self._protected[key] = segment.pop(key)
        if len(self._protected) > self._max_protected:
            for oldest in list(islice(self._protected, self._batch)):
                self._probation[oldest] = self._protected.pop(oldest)

    def insert(self, key: bytes, entry: Entry) -> bool:
        """Put in the entry, in the place of the one that was there. False: it is larger than any message."""
        if len(entry.packed) > MAX_ENTRY:
            return False
        segment = self._protected if key in self._protected else self._probation
        known = segment.get(key)
        if known is not None:
            self.octets -= _size(key, known)
        segment[key] = entry
        self.octets += _size(key, entry)
        if len(self) > self._capacity or self.octets > self._max_octets:
            self._make_room()
        return True

    def remove(self, key: bytes) -> None:
        """Take out the entry, if it is there."""
        entry = self._probation.pop(key, None) or self._protected.pop(key, None)
        if entry is not None:
            self.octets -= _size(key, entry)

    def _make_room(self) -> None:
        """Evict, those on probation first, until a batch more fits in; never what has just come in."""
        few, light = self._capacity - self._batch, self._max_octets - self._max_octets // _BATCH_SHARE
        for segment, spared in ((self._probation, 1), (self._protected, 0)):
            for key in list(islice(segment, max(0, len(segment) - spared))):
                if len(self) <= few and self.octets <= light:
                    return
                self.octets -= _size(key, segment.pop(key))
                self.counts.evictions += 1


def _size(key: bytes, entry: Entry) -> int:
    return len(key) + len(entry.packed) + _OVERHEAD
