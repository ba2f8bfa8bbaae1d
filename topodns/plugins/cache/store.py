"""Store of one cache: tables of answers, denials and failures, and the precedence between them.

Answers and denials are in segmented LRU tables (Karedla, Love and Wherry 1994), which are bounded and scan-resistant:
new entries are on probation; entries queried again are protected. A flood of names that are queried once evicts only
entries that were queried once. Entries of a client above its share are evicted first, so that its queries for random
names, even if repeated, evict nothing that another client has queried.

Failures (SERVFAIL and NOTIMP), those of all caches of the process within one limit, are kept each until its TTL ends.
They are not data, so they are never served stale (RFC 8767 section 4); CoreDNS does serve them.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from math import inf
from typing import Final, NamedTuple

from topodns.dns.message import Flag, Query, Response
from topodns.dns.wire_format import DNSSEC_OK, MAX_MESSAGE
from topodns.memory.bounded import TLRUCache
from topodns.memory.budget import Budget, MemoryLimits
from topodns.plugins.cache.counts import CacheCounts, TableCounts
from topodns.plugins.cache.entry import AddressEntry, CacheEntry, EntryOwner, Rules, Sort
from topodns.plugins.cache.settings import Cache
from topodns.query.deferred import Timers

MAX_ENTRY: Final = MAX_MESSAGE  # octets; a hostile message is larger here, where names are uncompressed
CLIENT_SHARE: Final = 4  # divisor: a client may own a quarter of a full table

_PROTECTED_SHARE: Final = 0.8
# A dict keeps its order and is half as large as an OrderedDict, but finding its first key steps over all deleted ones.
# So entries are evicted in batches of one part in _BATCH_SHARE of the table.
_BATCH_SHARE: Final = 64
# Octets per entry of object headers and of slots in dictionaries with many deletions: see bench/cache_memory.py.
_ENTRY_OVERHEAD: Final = 360
_TIDY: Final = 64

# Octets per failure of object headers and of slots in dictionaries and the heap: see bench/cache_memory.py.
_FAILURE_OVERHEAD: Final = 800
_FAILURES_SHARE: Final = 16  # failures get this part of the memory for answers, and so evict no answer
# Octets. The failures of a flood may expire together, and then one insertion removes them all, in 2 us each.
_MAX_FAILURES: Final = 3 << 19

# The last octets of the keys for one name, type and class: DO and CD, set or not (`entry.key_of`).
_KEY_ENDS: Final = tuple((do | cd).to_bytes(2, "big") for do in (0, DNSSEC_OK) for cd in (0, Flag.CD))

_SUCCESS, _DENIAL, _FAILURE = Sort.SUCCESS, Sort.DENIAL, Sort.FAILURE  # attribute access on an Enum costs 0.1 us

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
        size = len(key) + len(entry.packed) + _ENTRY_OVERHEAD
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
    return len(key) + len(entry.packed) + _ENTRY_OVERHEAD


_Key = tuple[int, bytes]  # number of the cache, key of the entry


class _Failure(NamedTuple):
    entry: CacheEntry
    octets: int
    counts: TableCounts


class FailureTable:
    """At most `limit` octets of failures. To make room, what has expired goes first, then the least recently used."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self.limit = limit
        self.clock = clock  # seconds, as `CacheEntry.born`
        self.entries = _Entries(limit, _expiry, clock, _octets)
        self.numbers = count()  # of caches

    def sizes(self) -> Counter[int]:
        """The number of failures of each cache, by its number. Takes 1 us per failure: call it once for all caches."""
        return Counter(number for number, _ in self.entries)


class FailureCache:
    """The failures of one cache, in a table that it shares with others.

    When a reload ends the cache, its failures stay in the table until they expire; no other cache finds them.
    """

    def __init__(self, table: FailureTable, counts: TableCounts) -> None:
        self.table = table
        self._clock = table.clock
        self._counts = counts
        self.number = next(table.numbers)
        # Monotonic seconds: no failure of this cache lives longer. Mostly there is none, and the table is not asked.
        self.until = -inf

    def __len__(self) -> int:
        return self.table.sizes()[self.number]

    def __contains__(self, key: bytes) -> bool:
        return self._clock() < self.until and (self.number, key) in self.table.entries

    def find(self, key: bytes) -> CacheEntry | None:
        """The entry, if its TTL has not ended; counts as a use."""
        if self._clock() >= self.until:
            return None
        failure = self.table.entries.get((self.number, key))
        return None if failure is None else failure.entry

    def insert(self, key: bytes, entry: CacheEntry) -> bool:
        """Insert or replace the entry. False, without effect, if it is larger than MAX_ENTRY or than the table."""
        octets = len(key) + len(entry.packed) + _FAILURE_OVERHEAD
        if len(entry.packed) > MAX_ENTRY or octets > self.table.limit:
            return False
        self.table.entries[self.number, key] = _Failure(entry, octets, self._counts)
        self.until = max(self.until, entry.born + entry.ttl)
        return True

    def remove(self, key: bytes) -> None:
        """Remove the entry if it exists."""
        if self._clock() < self.until:
            self.table.entries.pop((self.number, key), None)


class _Entries(TLRUCache[_Key, _Failure]):
    """Counts evictions: what `popitem` removes to make room, but not what has expired."""

    def popitem(self) -> tuple[_Key, _Failure]:
        key, failure = super().popitem()
        failure.counts.evictions += 1
        return key, failure


def _expiry(key: _Key, failure: _Failure, now: float) -> float:
    return failure.entry.born + failure.entry.ttl


def _octets(failure: _Failure) -> int:
    return failure.octets


@dataclass(frozen=True, slots=True)
class Room:
    """What all caches of the process share: memory budgets of answers and denials, and the table of failures."""

    success: Budget
    denial: Budget
    failure: FailureTable


def room_of(limits: MemoryLimits, clock: Callable[[], float]) -> Room:
    """The budgets for answers and denials, and the table of failures.

    That gets a sixteenth of the limit for answers, at most _MAX_FAILURES. `clock` is that of the caches' timers.
    """
    failures = min(limits.answers // _FAILURES_SHARE, _MAX_FAILURES)
    return Room(Budget(limits.answers - failures), Budget(limits.denials), FailureTable(failures, clock))


class UsedEntry(NamedTuple):
    """An entry of a table, its key, and whether it was queried again after it was cached."""

    key: bytes
    entry: CacheEntry
    again: bool


class Memory:
    """The entries of one `cache` directive. Of an answer and a denial, the one cached last is served.

    With `prefer_positive` it is the answer, as long as it may be served at all. A failure is served only if there is
    neither, and replaces nothing.
    """

    def __init__(self, settings: Cache, timers: Timers, counts: CacheCounts, room: Room) -> None:
        self.success = SegmentedLru(settings.success.capacity, room.success, counts.success)
        self.denial = SegmentedLru(settings.denial.capacity, room.denial, counts.denial)
        self.failure = FailureCache(room.failure, counts.denial)
        self._success_segments, self._denial_segments = self.success.segments, self.denial.segments
        self._counts = counts
        self._rules = Rules(settings)
        self._timers = timers
        stale = settings.serve_stale
        self._max_stale = stale.max_age if stale is not None else 0.0
        self._prefer_positive = stale is not None and stale.prefer_positive
        self._keeps_expired = stale is not None and stale.verify and not stale.prefer_positive

    def find(self, key: bytes, client: bytes) -> CacheEntry | None:
        """The entry to serve to this client: fresh, or stale but not too old; else None. Removes those too old."""
        for table in (self.success, self.denial):
            entry = table.peek(key)
            if entry is None:
                continue
            if self.is_servable(entry):
                table.touch(key, client)
                return entry
            table.remove(key)
        return self.failure.find(key)

    def is_servable(self, entry: CacheEntry) -> bool:
        """Whether the answer or denial is fresh, or stale but not too old."""
        return self._timers.time() - entry.born < entry.ttl + self._max_stale

    def learn(
        self, key: bytes, query: Query, response: Response, client: bytes, longest: int | None = None
    ) -> CacheEntry | None:
        """Set the TTLs of an upstream's response, and cache it if allowed (`Rules.make_entry`): the entry, or None.

        A new entry is owned by this client.
        """
        entry = self._rules.make_entry(query, response, self._timers.time(), longest)
        return None if entry is None else self._insert(key, entry, client)

    def knows(self, key: bytes) -> bool:
        """Whether there is an entry for the key, fresh or not; of failures only a fresh one."""
        # Each query that misses the packet cache comes here, so the tables are looked up without calls.
        probation, protected = self._success_segments
        if key in probation or key in protected:
            return True
        probation, protected = self._denial_segments
        return key in probation or key in protected or (self.failure.until > 0 and key in self.failure)

    def positive_ttl(self, ttl: int) -> int:
        """The TTL to send and keep for an answer with this TTL. A TTL of 0 is not raised."""
        return self._rules.positive_ttl(ttl) if ttl else 0

    def learn_addresses(self, key: bytes, packed: bytes, ttl: int, client: bytes) -> None:
        """Cache an `AddressEntry` with this `packed` and a TTL of `positive_ttl`, which is not 0.

        Its name is none that `disable` covers. It is owned by this client.
        """
        self._insert(key, AddressEntry(packed, _SUCCESS, ttl, self._timers.time()), client)

    def cap(self, response: Response) -> None:
        """Lower the TTLs of a response that is not cached to the maximum."""
        self._rules.cap(response)

    def by_use(self) -> Iterator[UsedEntry]:
        """The answers and denials of the time of the first step, those that may not be served any more as well.

        The most used first: those queried again, then the others, each from the one used last. What has left its table
        before its turn is left out.
        """
        keys = [
            (table, again, list(reversed(table.segments[again])))
            for again in (True, False)
            for table in (self.success, self.denial)
        ]
        for table, again, each in keys:
            for key in each:
                entry = table.peek(key)
                if entry is not None:
                    yield UsedEntry(key, entry, again)

    def restore(self, key: bytes, entry: CacheEntry, again: bool) -> bool:
        """Take an entry of an earlier process, for the case that upstreams do not answer: its TTL ends now.

        `again` as of `UsedEntry`. False, without effect, if it is too old, or another entry for the key is fresh.
        """
        now = self._timers.time()
        entry.expire(now)
        known = (table.peek(key) for table in (self.success, self.denial))
        if not self.is_servable(entry) or any(each is not None and each.left(now) > 0 for each in known):
            return False
        table = self.success if entry.sort is _SUCCESS else self.denial
        table.insert(key, entry)
        if again:
            table.touch(key)
        return True

    def forget(self, key: bytes) -> None:
        self.success.remove(key)
        self.denial.remove(key)

    def expire(self, subject: bytes) -> None:
        """No entry for this name, type and class (`subject`, as in keys) is fresh any more.

        With `serve_stale verify` it is kept, for the case that the upstream fails now; else it is removed.
        """
        now = self._timers.time()
        for end in _KEY_ENDS:
            key = subject + end
            self.failure.remove(key)
            if not self._keeps_expired:
                self.forget(key)
                continue
            for table in (self.success, self.denial):
                entry = table.peek(key)
                if entry is not None:
                    entry.expire(now)

    def is_used(self, subject: bytes, grace: int) -> bool:
        """Whether an entry for this name, type and class is fresh, or was so within the last `grace` seconds."""
        now = self._timers.time()
        entries = (table.peek(subject + end) for end in _KEY_ENDS for table in (self.success, self.denial))
        return any(entry is not None and entry.left(now) > -grace for entry in entries)

    def _insert(self, key: bytes, entry: CacheEntry, client: bytes) -> CacheEntry | None:
        sort = entry.sort
        table = self.success if sort is _SUCCESS else self.denial
        kept = self.failure.insert(key, entry) if sort is _FAILURE else table.insert(key, entry, client)
        if not kept:
            self._counts.drops += 1
            return None
        if sort is _SUCCESS:
            probation, protected = self._denial_segments
            if key in probation or key in protected:
                self.denial.remove(key)
            if entry.born < self.failure.until:
                self.failure.remove(key)
        elif sort is _DENIAL:
            self.failure.remove(key)
            if not self._prefer_positive:
                self.success.remove(key)  # RFC 8767 section 4: a denial replaces a stale answer
        return entry
