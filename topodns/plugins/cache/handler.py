"""The `cache` plugin: answers a query from the cache, or from the plugins below and caches that answer if allowed."""

import logging
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

from topodns.dns.message import Ede, Flag, Query, Response
from topodns.dns.name import ROOT, Name, is_below_any, name_text
from topodns.dns.rrtype import Rcode
from topodns.memory.budget import SERVER
from topodns.plugins.cache.counts import CacheCounts
from topodns.plugins.cache.entry import CacheEntry, Sort, address_rrset, is_positive, key_of
from topodns.plugins.cache.settings import Cache, Prefetch, ServeStale, zones_label
from topodns.plugins.cache.store import Memory, Room, room_of
from topodns.query.counters import CacheHit
from topodns.query.deferred import Deferred, Outcome, Timers, at_most, pursue
from topodns.query.plugin import Answered, Below, Client, Dropped, Resolution, Scope, forwarded_options, settled

if TYPE_CHECKING:
    from topodns.plugins.cache.pod_naming import PodNaming
    from topodns.plugins.cache.subscriptions import PushSubscriptions

log = logging.getLogger(__name__)


class Prefetching:
    """Prefetching by one `prefetch` option: popular entries are refreshed shortly before their TTL expires."""

    def __init__(self, settings: Prefetch) -> None:
        self._settings = settings

    def note(self, entry: CacheEntry, now: float) -> bool:
        """Count a query for the entry; whether the entry is popular by now.

        A gap of more than the window between two queries restarts the count.
        """
        history = entry.history
        if now - history.last_asked > self._settings.window:
            history.hits = 0
        history.hits += 1
        history.last_asked = now
        return history.hits >= self._settings.amount

    def begins_at(self, entry: CacheEntry) -> int:
        """The age in seconds from which a popular entry is refreshed, at least one second before its TTL expires."""
        return entry.ttl - ceil(entry.ttl * self._settings.percentage / 100)

    def look_again_at(self, entry: CacheEntry, now: float) -> int:
        """The age in seconds up to which the packet cache may serve copies of a popular entry.

        That is half of the window from now, but at least 1 s, and not past `begins_at`: hits in the packet cache are
        not counted here, so with longer copies an entry in constant use would look unused.
        """
        return min(self.begins_at(entry), entry.ticks(now) + max(1, int(self._settings.window / 2)))


_LONGEST_FOR_CLIENTS: Final = 5  # seconds, of an answer that is not for all clients: addresses of Pods change hands
_REFRESHING: Final = frozenset({Rcode.NOERROR, Rcode.NXDOMAIN})  # RFC 8767 section 4
_STALE_ANSWER: Final = 3  # RFC 8914 section 4.4
_STALE_NXDOMAIN: Final = 19  # and 4.20

UpstreamsDown = Callable[[], bool]
"""Whether all upstreams are known to be down."""


def _some_upstream_up() -> bool:
    return False


class _Asked(NamedTuple):
    """One query that the cache handles."""

    key: bytes  # of the entry
    query: Query
    client: Client
    below: Below
    question: bytes  # the key of the question; that of the entry is another one if it is not for all clients


class _Refresh(NamedTuple):
    """A refresh of an entry in progress. The outcome is None if the upstream's answer does not replace the entry."""

    outcome: Outcome[Resolution | None]
    began: float


class ResponseCache:
    """The cache of one server block: answers from `memory`, or asks the plugins below and keeps their answer.

    Hits are a `Resolution` of plugin "cache" with a `CacheHit`.

    The packet cache may serve copies of a hit until `valid_until`, a whole number of seconds after the entry was
    cached. Without it, for their own client only: stale answers, hits with `keepttl`, and with `prefetch` hits whose
    refresh is due or that are not popular yet.
    """

    def __init__(
        self,
        settings: Cache,
        timers: Timers,
        counts: CacheCounts | None = None,
        room: Room | None = None,
        upstreams_down: UpstreamsDown = _some_upstream_up,
    ) -> None:
        """`room`: memory budgets of all caches of the process. While `upstreams_down`, no query awaits a refresh."""
        self.counts = counts or CacheCounts()
        self.memory = Memory(settings, timers, self.counts, room or room_of(SERVER, timers.time))
        self._upstreams_down = upstreams_down
        zones = zones_label(settings)
        self._success, self._denial = CacheHit("success", zones), CacheHit("denial", zones)
        self._origins = settings.origins
        self._everywhere = ROOT in settings.origins
        self._keepttl = settings.keepttl
        self._serve_stale = settings.serve_stale or ServeStale()
        self._prefetching = Prefetching(settings.prefetch) if settings.prefetch is not None else None
        self._timers = timers
        self._refreshing: dict[bytes, _Refresh] = {}
        self.push: PushSubscriptions | None = None  # with the option `push`
        self.naming: PodNaming | None = None  # in a node cache, before the cluster DNS

    def counting(self, counts: CacheCounts) -> "ResponseCache":
        """This cache with its entries for another server: misses, refreshes and stale answers count in `counts`."""
        same = copy(self)
        same.counts = counts
        return same

    def __call__(self, query: Query, client: Client, below: Below) -> Answered:
        """The cached answer, fresh or stale, or that of the plugins `below`, which is cached if allowed.

        Names outside the origins of the `cache` directive bypass the cache.
        """
        if not self._everywhere and not self._covers(query.qname):
            return below(query, client)
        key = key_of(query)
        if self.naming is not None and self.naming.wanted and self.naming.goes_on():
            return self._for_client(self.naming, key, self.naming.named(query, client), client, below)
        entry = self.memory.find(key, client.address)
        if entry is None:
            return self._ask(key, query, client, below)
        asked, now = _Asked(key, query, client, below, key), self._timers.time()
        return self._fresh(entry, asked, now) if entry.left(now) > 0 else self._stale(entry, asked, now)

    def _for_client(self, naming: "PodNaming", question: bytes, query: Query, client: Client, below: Below) -> Answered:
        """`__call__` for a query that names its client: an entry for the Node, the namespace or the client, if fresh.

        Only one for the Node may be stale: addresses of Pods change hands.
        """
        now, stale = self._timers.time(), None
        for key in naming.keys(question, client):
            entry = self.memory.find(key, client.address)
            if entry is None:
                continue
            if entry.left(now) > 0:
                return self._fresh(entry, _Asked(key, query, client, below, question), now)
            stale = entry if key == question else stale
        if stale is not None:
            return self._stale(stale, _Asked(question, query, client, below, question), now)
        return self._ask(question, query, client, below)

    def asks_for_client(self, rcode: int, ede: Ede | None) -> bool:
        """Whether this response to a query that named no client asks for it."""
        return self.naming is not None and self.naming.is_asked_for(rcode, ede)

    def arrived(self, query: Query, client: Client, resolution: Resolution) -> Resolution:
        """Count a miss and cache this answer to the query if allowed. Returns it, without AD unless requested."""
        return self._arrived(key_of(query), query, client, resolution)

    def positive_ttl(self, ttl: int) -> int:
        """The TTL of a positive answer with this TTL, as far as `success` limits it."""
        return self.memory.positive_ttl(ttl)

    def keep_addresses(self, key: bytes, packed: bytes, ttl: int, recursion_desired: bool, client: bytes) -> int:
        """`arrived` for a response that is an `AddressEntry` with this `packed`, and a TTL of `positive_ttl`.

        Returns the TTL to send: a lower one if `push` limits it.
        """
        self.counts.misses += 1
        if self.push is not None and self.push.limits(key):
            longest = self.push.longest_ttl(key, (address_rrset(packed, ttl),), ())
            if longest is not None and longest < ttl:
                ttl = longest
        if ttl and recursion_desired:
            self.memory.learn_addresses(key, packed, ttl, client)
        return ttl

    def _covers(self, qname: Name) -> bool:
        return is_below_any(qname, self._origins)

    def _ask(self, key: bytes, query: Query, client: Client, below: Below) -> Answered:
        # The AD bit requests AD in the answer (RFC 6840 section 5.7), which other queries with this key may need.
        answered = below(_with(query, Flag.AD), client)
        if not isinstance(answered, Resolution):
            return self._ask_on(key, query, client, answered, below)
        if answered.upstream:
            return self._arrived(key, query, client, answered)
        self.memory.cap(answered.response)
        return answered

    async def _ask_on(
        self, key: bytes, query: Query, client: Client, deferred: Deferred[Resolution], below: Below
    ) -> Resolution:
        resolution = await self._asked_by_name(query, client, await deferred, below)
        return self._arrived(key, query, client, resolution)

    async def _asked_by_name(self, query: Query, client: Client, resolution: Resolution, below: Below) -> Resolution:
        """The resolution, or, if it asks for the client, that of the query with its name, which is asked once."""
        naming = self.naming
        if naming is None or not naming.is_asked_for(resolution.response.rcode, resolution.response.ede):
            return resolution
        return await settled(below(naming.named(_with(query, Flag.AD), client), client))

    def _arrived(self, key: bytes, query: Query, client: Client, resolution: Resolution) -> Resolution:
        self.counts.misses += 1
        place: bytes | None = key
        if self.naming is not None:
            place = self._place(self.naming, key, client, resolution)
        if place is not None:
            self._learn(place, query, client, resolution, _LONGEST_FOR_CLIENTS if place != key else None)
        return _for_asker(query, resolution)

    def _place(self, naming: "PodNaming", question: bytes, client: Client, resolution: Resolution) -> bytes | None:
        """The key for an answer to this client, by what its reply says; None if it may not be kept."""
        place = naming.key_for(question, client, resolution.response)
        if place != question:
            self.memory.forget(question)  # an answer for all clients, from before the cluster DNS distinguished them
        return place

    def _learn(
        self, key: bytes, query: Query, client: Client, resolution: Resolution, longest: int | None = None
    ) -> CacheEntry | None:
        """Cache the response if an upstream gave it and it does not depend on cluster state, else cap its TTLs.

        `longest`: the most seconds, if they are limited. Returns the new entry, None if nothing was cached.
        """
        if resolution.upstream and not resolution.facts and resolution.selection is None:
            response = resolution.response
            if longest is None and self.push is not None and response.rcode in _REFRESHING:
                longest = self.push.longest_ttl(key, response.answer, response.additional)
            return self.memory.learn(key, query, response, client.address, longest)
        self.memory.cap(resolution.response)
        return None

    def _fresh(self, entry: CacheEntry, asked: _Asked, now: float) -> Resolution:
        until: int | None = entry.ttl
        if self._prefetching is not None:
            until = self._look_ahead(self._prefetching, entry, asked, now)
        hit = self._hit(entry)
        if until is None or self._keepttl:  # copies would escape prefetching, or count down the TTLs
            ttl = entry.ttl if self._keepttl else entry.left(now)
            resolution = _given(entry, asked.query, ttl, hit, Scope.CLIENT)
        else:
            for_all = asked.key == asked.question
            resolution = _given(entry, asked.query, entry.left(now), hit, Scope.EVERYONE if for_all else Scope.CLIENT)
            resolution.valid_until = entry.born + until
        if self.push is not None and not forwarded_options(asked.query.edns):  # a subscription has no options
            resolution.facts = self.push.served(asked.key, entry.owner is not None)
        return resolution

    def _look_ahead(self, prefetching: Prefetching, entry: CacheEntry, asked: _Asked, now: float) -> int | None:
        """The age of the entry up to which copies may be served; None for not at all: not popular yet, or a refresh is
        due.

        Counts the query, and starts a refresh that is due.
        """
        if not prefetching.note(entry, now):
            return None
        if entry.ticks(now) < prefetching.begins_at(entry):
            return prefetching.look_again_at(entry, now)
        self._refresh_behind(entry, asked, now)
        return None

    def _stale(self, entry: CacheEntry, asked: _Asked, now: float) -> Answered:
        if not self._serve_stale.verify or self._upstreams_down():
            self._refresh_behind(entry, asked, now)
            return self._stale_answer(entry, asked.query)
        refresh = self._refreshing.get(asked.key) or self._refresh(entry, asked, now)
        return self._stale_answer(entry, asked.query) if refresh is None else self._verified(entry, asked, refresh)

    async def _verified(self, entry: CacheEntry, asked: _Asked, refresh: _Refresh) -> Resolution:
        """The refreshed answer if it arrives in time, else the stale one. Each client gets its own copy to modify."""
        resolution = await self._in_time(refresh, asked.client)
        if resolution is None:
            return self._stale_answer(entry, asked.query)
        self.counts.misses += 1
        return _for_asker(asked.query, replace(resolution, response=replace(resolution.response)))

    async def _in_time(self, refresh: _Refresh, client: Client) -> Resolution | None:
        """The refreshed answer; None after `verify_timeout` (0: without limit), or if the refresh fails.

        The timeout counts from the start of the refresh, so that an unresponsive upstream is waited for once; or from
        the client's query, if that is earlier (RFC 8767 section 5): time spent on other names for it counts.
        """
        timeout = self._serve_stale.verify_timeout
        if not timeout:
            return await refresh.outcome
        left = min(refresh.began, client.asked or refresh.began) + timeout - self._timers.time()
        return await at_most(refresh.outcome, left, self._timers) if left > 0 else None

    def _stale_answer(self, entry: CacheEntry, query: Query) -> Resolution:
        self.counts.served_stale += 1
        ttl = self._serve_stale.ttl or (entry.ttl if self._keepttl else 0)
        resolution = _given(entry, query, ttl, self._hit(entry)._replace(stale=True), Scope.CLIENT)
        nxdomain = resolution.response.rcode == Rcode.NXDOMAIN
        resolution.response.ede = Ede(_STALE_NXDOMAIN if nxdomain else _STALE_ANSWER, "")
        return resolution

    def _hit(self, entry: CacheEntry) -> CacheHit:
        return self._success if entry.sort is Sort.SUCCESS else self._denial

    def _refresh_behind(self, entry: CacheEntry, asked: _Asked, now: float) -> None:
        if asked.key not in self._refreshing and self._refresh(entry, asked, now) is not None:
            self.counts.prefetches += 1

    def _refresh(self, entry: CacheEntry, asked: _Asked, now: float) -> _Refresh | None:
        """Start a refresh; None within `recheck` seconds after one whose reply did not replace an expired entry.

        (RFC 8767 section 5: the failure recheck timer.)
        """
        if now < entry.history.retry_at:
            return None
        refresh = self._refreshing[asked.key] = _Refresh(Outcome(), now)
        pursue(self._fetch(entry, asked), refresh.outcome.settle)
        return refresh

    async def _fetch(self, entry: CacheEntry, asked: _Asked) -> Resolution | None:
        """Query the plugins below, and cache the answer if allowed; the resolution that replaces `entry`, else None."""
        query = _with(asked.query, Flag.RD | Flag.AD)
        try:
            # As a query over TCP, as in CoreDNS: an answer truncated to a client's UDP size could not be cached.
            client = asked.client._replace(transport="tcp")
            resolution = await settled(asked.below(query, client))
            resolution = await self._asked_by_name(query, client, resolution, asked.below)
            return self._refreshed(entry, asked, query, resolution)
        except Dropped:  # too many queries are in flight
            return None
        except Exception:
            log.exception("bug: the refresh of %s", name_text(query.qname))
            return None
        finally:
            del self._refreshing[asked.key]

    def _refreshed(self, entry: CacheEntry, asked: _Asked, query: Query, resolution: Resolution) -> Resolution | None:
        now = self._timers.time()
        limit = _LONGEST_FOR_CLIENTS if asked.key != asked.question else None
        if self.naming is not None:
            place = self._place(self.naming, asked.question, asked.client, resolution)
            if place != asked.key:  # an answer for other clients than those who wait for this one
                self.memory.forget(asked.key)
                return None
        learned = self._learn(asked.key, query, asked.client, resolution, limit)
        if not self._replaces(entry, query, resolution.response):
            if entry.left(now) <= 0:
                entry.history.retry_at = now + self._serve_stale.recheck
            return None
        if learned is None:
            self.memory.forget(asked.key)
        else:
            learned.succeed(entry)
        return resolution

    def _replaces(self, entry: CacheEntry, query: Query, response: Response) -> bool:
        """Whether the response replaces the entry: any untruncated NOERROR or NXDOMAIN (RFC 8767 section 4).

        With `prefer_positive`, only a positive response replaces a positive entry.
        """
        if not _is_news(response):
            return False
        if self._serve_stale.prefer_positive and entry.sort is Sort.SUCCESS:
            return is_positive(query, response)
        return True


def _is_news(response: Response) -> bool:
    return response.rcode in _REFRESHING and not response.flags & ~response.cleared & Flag.TC


def _given(entry: CacheEntry, query: Query, ttl: int, hit: CacheHit, scope: Scope) -> Resolution:
    return _for_asker(query, Resolution(entry.response(ttl), "cache", scope, detail=hit))


def _for_asker(query: Query, resolution: Resolution) -> Resolution:
    """Clear AD unless the query has AD or DO set (RFC 6840 sections 5.7 and 5.8)."""
    edns = query.edns
    if not query.flags & Flag.AD and (edns is None or not edns.dnssec_ok):
        resolution.response.flags &= ~Flag.AD
    return resolution


def _with(query: Query, flags: int) -> Query:
    # Takes half the time of `_replace`: queries for names of the cluster run this, too.
    ident, known, qname, spelling, qtype, qclass, edns, size = query
    return Query(
        id=ident, flags=known | flags, qname=qname, spelling=spelling, qtype=qtype, qclass=qclass, edns=edns, size=size
    )
