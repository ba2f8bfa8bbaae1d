"""Store of one cache: tables of answers, denials and failures, and the precedence between them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from topodns.dns.message import Flag, Query, Response
from topodns.dns.wire_format import DNSSEC_OK
from topodns.memory.budget import Budget, MemoryLimits
from topodns.plugins.cache.counts import CacheCounts
from topodns.plugins.cache.entry import AddressEntry, CacheEntry, Sort, pack
from topodns.plugins.cache.failures import FailureCache, FailureTable
from topodns.plugins.cache.segmented_lru import SegmentedLru
from topodns.plugins.cache.settings import Cache
from topodns.plugins.cache.ttl import Rules, set_ttl
from topodns.query.deferred import Timers

_FAILURES_SHARE: Final = 16  # failures get this part of the memory for answers, and so evict no answer
# Octets. The failures of a flood may expire together, and then one insertion removes them all, in 2 us each.
_MAX_FAILURES: Final = 3 << 19

# The last octets of the keys for one name, type and class: DO and CD, set or not (`entry.key_of`).
_KEY_ENDS: Final = tuple((do | cd).to_bytes(2, "big") for do in (0, DNSSEC_OK) for cd in (0, Flag.CD))

_SUCCESS, _DENIAL, _FAILURE = Sort.SUCCESS, Sort.DENIAL, Sort.FAILURE  # attribute access on an Enum costs 0.1 us


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
            if self._servable(entry):
                table.touch(key, client)
                return entry
            table.remove(key)
        return self.failure.find(key)

    def learn(
        self, key: bytes, query: Query, response: Response, client: bytes, longest: int | None = None
    ) -> CacheEntry | None:
        """Set the TTLs of an upstream's response, at most `longest`, and cache it; the entry, None if it is not cached.

        A new entry is owned by this client. Answers to queries without RD are not cached: an upstream that may not
        recurse can leave out data that other clients would get. (CoreDNS caches them and serves them to all clients.)
        """
        verdict = self._rules.judge(query, response)
        if verdict is None:
            self._rules.cap(response)
            return None
        ttl = verdict.ttl if longest is None else min(verdict.ttl, longest)
        set_ttl(response, ttl)
        if not query.flags & Flag.RD or not self._rules.keeps(verdict.sort, query.qname):
            return None
        return self._insert(key, CacheEntry(pack(response), verdict.sort, ttl, self._timers.time()), client)

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

    def _servable(self, entry: CacheEntry) -> bool:
        """Whether the answer or denial is fresh, or stale but not too old."""
        return self._timers.time() - entry.born < entry.ttl + self._max_stale
