"""The cache as an around: an answer that is kept, or what the steps below it say, kept where it may be."""

import logging
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Final, NamedTuple

from topodns.dns.message import Ede, Flag, Query, Rcode, Response
from topodns.dns.names import ROOT, Name, is_subdomain, name_text
from topodns.resolve.cache.counts import CacheCounts, zones_label
from topodns.resolve.cache.entry import Entry, Sort, key_of
from topodns.resolve.cache.memory import Memory, Room, room_of
from topodns.resolve.cache.prefetching import Prefetching
from topodns.resolve.cache.rules import is_positive
from topodns.resolve.course import Course, Outcome, Timers, at_most, pursue
from topodns.resolve.step import Answered, Below, Client, Dropped, Resolution, Scope, settled
from topodns.settings.cache import Cache, ServeStale
from topodns.settings.memory import SERVER

log = logging.getLogger(__name__)

_AD: Final = int(Flag.AD)
_RD: Final = int(Flag.RD)
_TC: Final = int(Flag.TC)
_REFRESHING: Final = frozenset({int(Rcode.NOERROR), int(Rcode.NXDOMAIN)})  # RFC 8767 section 4
_STALE_ANSWER: Final = 3  # RFC 8914 section 4.4
_STALE_NXDOMAIN: Final = 19  # and 4.20


Hopeless = Callable[[], bool]
"""Whether no upstream is there to answer, as far as is known."""


def _hopeful() -> bool:
    return False


class _Asked(NamedTuple):
    """One question on its way through the cache."""

    key: bytes
    query: Query
    client: Client
    below: Below


class _Refresh(NamedTuple):
    """A question to the upstream about an entry. The outcome is None where that brought nothing better."""

    outcome: Outcome[Resolution | None]
    began: float


class ResponseCache:
    """The cache of one server block. Hits are a `Resolution` of plugin "cache" with the note `[stale ]TYPE ZONES`.

    These are CoreDNS's labels of a hit that no tally has. Ready-made copies of it may be given out until its
    `valid_until`, which is a whole number of seconds after the TTLs began to count down. Stale answers have none, and
    are this client's only.
    """

    def __init__(
        self,
        settings: Cache,
        timers: Timers,
        counts: CacheCounts | None = None,
        room: Room | None = None,
        hopeless: Hopeless = _hopeful,
    ) -> None:
        """`room` is that of all caches of the process. While all is `hopeless`, nobody waits for a refresh."""
        self.counts = counts or CacheCounts()
        self.memory = Memory(settings, timers, self.counts, room or room_of(SERVER))
        self._hopeless = hopeless
        zones = zones_label(settings)
        self._success, self._denial = f"success {zones}", f"denial {zones}"  # notes
        self._origins = settings.origins
        self._everywhere = ROOT in settings.origins
        self._keepttl = settings.keepttl
        self._serve_stale = settings.serve_stale or ServeStale()
        self._prefetching = Prefetching(settings.prefetch) if settings.prefetch is not None else None
        self._timers = timers
        self._refreshing: dict[bytes, _Refresh] = {}

    def counting(self, counts: CacheCounts) -> "ResponseCache":
        """The same cache for another server, whose misses, refreshes and stale answers are counted apart."""
        same = copy(self)
        same.counts = counts
        return same

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The answer kept for the question, or what `below` answers."""
        if not self._everywhere and not self._covers(query.qname):
            return below(query, client)
        key = key_of(query)
        entry = self.memory.find(key, client.address)
        if entry is None:
            return self._ask(key, query, client, below)
        asked, now = _Asked(key, query, client, below), self._timers.time()
        return self._fresh(entry, asked, now) if entry.left(now) > 0 else self._stale(entry, asked, now)

    def arrived(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """What an upstream answered to a question that was not kept: kept now, and as its asker is to see it."""
        return self._arrived(key_of(query), query, client, resolution)

    def _covers(self, qname: Name) -> bool:
        return any(is_subdomain(qname, origin) for origin in self._origins)

    def _ask(self, key: bytes, query: Query, client: Client, below: Below) -> Answered:
        # The AD bit asks for AD in the answer (RFC 6840 section 5.7), which others of the same key may want to see.
        answered = below(_with(query, _AD), client)
        if not isinstance(answered, Resolution):
            return self._ask_on(key, query, client, answered)
        if answered.upstream:
            return self._arrived(key, query, client, answered)
        self.memory.cap(answered.response)
        return answered

    async def _ask_on(self, key: bytes, query: Query, client: Client, course: Course[Resolution]) -> Resolution:
        return self._arrived(key, query, client, await course)

    def _arrived(self, key: bytes, query: Query, client: Client, resolution: Resolution) -> Resolution:
        self.counts.misses += 1
        self._learn(key, query, client, resolution)
        return _for_asker(query, resolution)

    def _learn(self, key: bytes, query: Query, client: Client, resolution: Resolution) -> Entry | None:
        """The entry, where the resolution is an upstream's own and nothing of the cluster's went into it."""
        if resolution.upstream and not resolution.facts and resolution.selection is None:
            return self.memory.learn(key, query, resolution.response, client.address)
        self.memory.cap(resolution.response)
        return None

    def _fresh(self, entry: Entry, asked: _Asked, now: float) -> Resolution:
        until: int | None = entry.ttl
        if self._prefetching is not None:
            until = self._look_ahead(self._prefetching, entry, asked, now)
        note = self._note(entry)
        if until is None or self._keepttl:  # copies would not be noted, or would count the TTLs down
            ttl = entry.ttl if self._keepttl else entry.left(now)
            return _given(entry, asked.query, ttl, note, Scope.CLIENT)
        resolution = _given(entry, asked.query, entry.left(now), note, Scope.EVERYONE)
        resolution.valid_until = entry.born + until
        return resolution

    def _look_ahead(self, prefetching: Prefetching, entry: Entry, asked: _Asked, now: float) -> int | None:
        """Up to which age of the entry its copies may be given out; None: not at all. Refreshes what wants it."""
        if not prefetching.note(entry, now):
            return None
        if entry.ticks(now) < prefetching.begins_at(entry):
            return prefetching.look_again_at(entry, now)
        self._refresh_behind(entry, asked, now)
        return None

    def _stale(self, entry: Entry, asked: _Asked, now: float) -> Answered:
        if not self._serve_stale.verify or self._hopeless():
            self._refresh_behind(entry, asked, now)
            return self._stale_answer(entry, asked.query)
        refresh = self._refreshing.get(asked.key) or self._refresh(entry, asked, now)
        return self._stale_answer(entry, asked.query) if refresh is None else self._verified(entry, asked, refresh)

    async def _verified(self, entry: Entry, asked: _Asked, refresh: _Refresh) -> Resolution:
        """What the refresh brings in time, else the stale answer. Each asker gets a response of its own to alter."""
        resolution = await self._in_time(refresh, asked.client)
        if resolution is None:
            return self._stale_answer(entry, asked.query)
        self.counts.misses += 1
        return _for_asker(asked.query, replace(resolution, response=replace(resolution.response)))

    async def _in_time(self, refresh: _Refresh, client: Client) -> Resolution | None:
        """Nobody waits for a refresh beyond its own first seconds, so that a dead upstream is waited for once.

        Nor beyond the client's own (RFC 8767 section 5): what it waited for other names on the way counts.
        """
        timeout = self._serve_stale.verify_timeout
        if not timeout:
            return await refresh.outcome
        left = min(refresh.began, client.asked or refresh.began) + timeout - self._timers.time()
        return await at_most(refresh.outcome, left, self._timers) if left > 0 else None

    def _stale_answer(self, entry: Entry, query: Query) -> Resolution:
        self.counts.served_stale += 1
        ttl = self._serve_stale.ttl or (entry.ttl if self._keepttl else 0)
        resolution = _given(entry, query, ttl, f"stale {self._note(entry)}", Scope.CLIENT)
        nxdomain = resolution.response.rcode == Rcode.NXDOMAIN
        resolution.response.ede = Ede(_STALE_NXDOMAIN if nxdomain else _STALE_ANSWER, "")
        return resolution

    def _note(self, entry: Entry) -> str:
        return self._success if entry.sort is Sort.SUCCESS else self._denial

    def _refresh_behind(self, entry: Entry, asked: _Asked, now: float) -> None:
        if asked.key not in self._refreshing and self._refresh(entry, asked, now) is not None:
            self.counts.prefetches += 1

    def _refresh(self, entry: Entry, asked: _Asked, now: float) -> _Refresh | None:
        """Begin to ask anew; None where the last time it failed is too near (RFC 8767 section 5)."""
        if now < entry.history.retry_at:
            return None
        refresh = self._refreshing[asked.key] = _Refresh(Outcome(), now)
        pursue(self._fetch(entry, asked), refresh.outcome.settle)
        return refresh

    async def _fetch(self, entry: Entry, asked: _Asked) -> Resolution | None:
        """What is known now instead of `entry`, None if nothing."""
        query = _with(asked.query, _RD | _AD)
        try:
            # As if over TCP, as in CoreDNS: what a client's UDP size cut short could not be kept.
            resolution = await settled(asked.below(query, asked.client._replace(transport="tcp")))
            return self._refreshed(entry, asked, query, resolution)
        except Dropped:  # too much is on its way already
            return None
        except Exception:
            log.exception("bug: the refresh of %s", name_text(query.qname))
            return None
        finally:
            del self._refreshing[asked.key]

    def _refreshed(self, entry: Entry, asked: _Asked, query: Query, resolution: Resolution) -> Resolution | None:
        now = self._timers.time()
        if self._doubts(entry, query, resolution.response, now):
            return None
        learned = self._learn(asked.key, query, asked.client, resolution)
        if not self._replaces(entry, query, resolution.response):
            if entry.left(now) <= 0:
                entry.history.retry_at = now + self._serve_stale.recheck
            return None
        if learned is None:
            self.memory.forget(asked.key)
        else:
            learned.succeed(entry)
        return resolution

    def _doubts(self, entry: Entry, query: Query, response: Response, now: float) -> bool:
        """Whether the response denies what was known, and has not done so for long enough to be believed."""
        doubt = self._serve_stale.doubt
        if not doubt or entry.sort is not Sort.SUCCESS or not _is_denial(query, response):
            return False
        history = entry.history
        if not history.denied_at:
            history.denied_at = now
            history.retry_at = now + doubt
        return now < history.denied_at + doubt

    def _replaces(self, entry: Entry, query: Query, response: Response) -> bool:
        """Whether the response is news about what the entry says: anything but a failure (RFC 8767 section 4)."""
        if not _is_news(response):
            return False
        if self._serve_stale.prefer_positive and entry.sort is Sort.SUCCESS:
            return is_positive(query, response)
        return True


def _is_news(response: Response) -> bool:
    return response.rcode in _REFRESHING and not response.flags & ~response.cleared & _TC


def _is_denial(query: Query, response: Response) -> bool:
    return _is_news(response) and not is_positive(query, response)


def _given(entry: Entry, query: Query, ttl: int, note: str, scope: Scope) -> Resolution:
    return _for_asker(query, Resolution(entry.response(ttl), "cache", scope, note=note))


def _for_asker(query: Query, resolution: Resolution) -> Resolution:
    """AD is for those who asked for it, or for DNSSEC records (RFC 6840 sections 5.7 and 5.8)."""
    edns = query.edns
    if not query.flags & _AD and (edns is None or not edns.dnssec_ok):
        resolution.response.flags &= ~_AD
    return resolution


def _with(query: Query, flags: int) -> Query:
    # In half the time of `_replace`: this is on the path of the cluster's names, too.
    ident, known, qname, spelling, qtype, qclass, edns, size = query
    return Query(ident, known | flags, qname, spelling, qtype, qclass, edns, size)
