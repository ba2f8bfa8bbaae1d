"""Bounded dictionaries, by cachetools. To make room all evict the least recently used entry; TTLCache and TLRUCache
remove expired entries first.

Their operations take 0.2 to 3 us. So none is on the path of every query, or of a hit: a plain dictionary is, and
`ReadLRU` bounds one.
"""

from typing import Final, Generic, TypeVar

from cachetools import LRUCache, TLRUCache, TTLCache

__all__: Final = ("LRUCache", "ReadLRU", "TLRUCache", "TTLCache")

K = TypeVar("K")
V = TypeVar("V")


class ReadLRU(Generic[K, V]):
    """At most `maxsize` entries: a further one replaces the one written least recently.

    `entries`, a plain dictionary, is for reading. A read does not count as a use, so it costs no bookkeeping.
    """

    def __init__(self, maxsize: int) -> None:
        self.entries: dict[K, V] = {}
        self._order = _Order(maxsize, self.entries)

    def __setitem__(self, key: K, value: V) -> None:
        self._order[key] = None
        self.entries[key] = value

    def discard(self, key: K) -> None:
        """Remove the entry if it exists."""
        self.entries.pop(key, None)
        self._order.pop(key, None)


class _Order(LRUCache[K, None]):
    """The keys of `entries` in the order of writing; what it evicts leaves `entries`, too."""

    def __init__(self, maxsize: int, entries: dict[K, V]) -> None:
        super().__init__(maxsize)
        self._entries = entries

    def popitem(self) -> tuple[K, None]:
        key, _ = super().popitem()
        self._entries.pop(key, None)
        return key, None
