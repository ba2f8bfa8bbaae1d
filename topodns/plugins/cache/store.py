"""What one cache knows: answers and denials, each in a table of its own, and which of them counts."""

from dataclasses import dataclass
from typing import Final

from topodns.dns.message import Flag, Query, Response, RRset
from topodns.resolve.budget import Budget
from topodns.resolve.cache.counts import CacheCounts
from topodns.resolve.cache.entry import Entry, Sort, pack, pack_plain
from topodns.resolve.cache.rules import Rules, set_ttl
from topodns.resolve.cache.table import Table
from topodns.resolve.course import Timers
from topodns.settings.cache import Cache
from topodns.settings.memory import MemoryLimits

_MAX_FAILURES: Final = 1024  # entries; they live for seconds
_FAILURES_SHARE: Final = 16  # of what answers may take, one part is for failures, which so push out nothing

_RD: Final = int(Flag.RD)
_SUCCESS, _DENIAL = Sort.SUCCESS, Sort.DENIAL  # reading an Enum's member costs 0.1 us


@dataclass(frozen=True, slots=True)
class Room:
    """The memory of all caches of a process."""

    success: Budget
    denial: Budget
    failure: Budget


def room_of(limits: MemoryLimits) -> Room:
    """Room for all caches together."""
    failures = limits.answers // _FAILURES_SHARE
    return Room(Budget(limits.answers - failures), Budget(limits.denials), Budget(failures))


class Memory:
    """The entries of one `cache` directive. Of an answer and a denial the one learned last counts.

    With `prefer_positive` the answer does, as long as it may be served at all. Failures are apart: they count where
    nothing else is there, and push nothing out.
    """

    def __init__(self, settings: Cache, timers: Timers, counts: CacheCounts, room: Room) -> None:
        self.success = Table(settings.success.capacity, room.success, counts.success)
        self.denial = Table(settings.denial.capacity, room.denial, counts.denial)
        self.failure = Table(_MAX_FAILURES, room.failure, counts.denial)
        self._counts = counts
        self._rules = Rules(settings)
        self._timers = timers
        stale = settings.serve_stale
        self._max_stale = stale.max_age if stale is not None else 0.0
        self._prefer_positive = stale is not None and stale.prefer_positive

    def find(self, key: bytes, client: bytes) -> Entry | None:
        """The entry that answers this client: fresh, or stale but not too old. What is too old is forgotten."""
        for table in (self.success, self.denial, self.failure):
            entry = table.peek(key)
            if entry is None:
                continue
            if self._servable(entry):
                table.touch(key, client)
                return entry
            table.remove(key)
        return None

    def learn(self, key: bytes, query: Query, response: Response, client: bytes) -> Entry | None:
        """Give the records of an upstream's response their TTL; and the entry, where it is kept for this client's sake.

        What was asked without RD is not: a server that was not to fetch anything may have left out what it would have
        told everybody else. (CoreDNS keeps it, and tells them the same.)
        """
        verdict = self._rules.judge(query, response)
        if verdict is None:
            self._rules.cap(response)
            return None
        set_ttl(response, verdict.ttl)
        if not query.flags & _RD or not self._rules.keeps(verdict.sort, query.qname):
            return None
        return self._insert(key, Entry(pack(response), verdict.sort, verdict.ttl, self._timers.time()), client)

    def knows(self, key: bytes) -> bool:
        """Whether there is anything about this question, fresh or not."""
        return key in self.success or key in self.denial or key in self.failure

    def learn_plain(self, key: bytes, rrset: RRset, flags: int, recursion_desired: bool, client: bytes) -> int:
        """`learn` for one RRset that is the question's own, under no origin that is not kept; its TTL."""
        given = rrset.ttl
        if not given:
            return given
        ttl = self._rules.positive_ttl(given)
        if recursion_desired:
            self._insert(key, Entry(pack_plain(rrset, flags), _SUCCESS, ttl, self._timers.time()), client)
        return ttl

    def cap(self, response: Response) -> None:
        """Lower the TTLs of a response that is not for keeping."""
        self._rules.cap(response)

    def forget(self, key: bytes) -> None:
        self.success.remove(key)
        self.denial.remove(key)

    def _insert(self, key: bytes, entry: Entry, client: bytes) -> Entry | None:
        sort = entry.sort
        table = self.success if sort is _SUCCESS else self.denial if sort is _DENIAL else self.failure
        if not table.insert(key, entry, client):
            self._counts.drops += 1
            return None
        if sort is _SUCCESS:
            self.denial.remove(key)
            self.failure.remove(key)
        elif sort is _DENIAL:
            self.failure.remove(key)
            if not self._prefer_positive:
                self.success.remove(key)  # RFC 8767 section 4: nothing stale over a name known not to be there
        return entry

    def _servable(self, entry: Entry) -> bool:
        """Failures are no data, so they are never served stale (RFC 8767 section 4); CoreDNS does."""
        age = self._timers.time() - entry.born
        if age < entry.ttl:
            return True
        return entry.sort is not Sort.FAILURE and age < entry.ttl + self._max_stale
