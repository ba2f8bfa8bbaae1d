"""Subscriptions of a `cache` to its entries at the upstream (DNS Push Notifications, RFC 8765).

A name and type whose entry is queried again is subscribed to over a DSO session. From then on a PUSH about it expires
its entry and the copies in the packet cache, so that the next query fetches the new answer. Without a session entries
live by their TTL, which ends them in any case.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from random import Random
from typing import Final, Protocol

from topodns.dependency import Fact, cached_fact
from topodns.dns.dso import DsoType, Tlv
from topodns.dns.message import RRset
from topodns.dns.push import (
    PushChange,
    Subscribe,
    read_push,
    write_subscribe,
    write_unsubscribe,
)
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.dns.wire_format import QUESTION_TAIL_SIZE, pack_question_tail, unpack_question_tail
from topodns.dns.wire_reader import WireError
from topodns.net.upstream.dso_session import DsoEnd, DsoSession, SessionUser
from topodns.plugins.cache.counts import SubscriptionCounts
from topodns.plugins.cache.remembered_records import RememberedRecords
from topodns.query.deferred import Timer, Timers

log = logging.getLogger(__name__)

WINDOW: Final = 64  # SUBSCRIBEs without a response at a time
RETRY_REFUSED: Final = 60.0  # seconds until an upstream that has refused is asked again, unless it wants another time
RETRY_SOONEST: Final = 5.0  # seconds: the shortest wait that an upstream may ask for
RETRY_LOST: Final = 1.0  # seconds after a lost session; doubled with each failure, up to RETRY_REFUSED
MAX_RETRY_DELAY: Final = 3600.0  # seconds: the longest wait that an upstream may ask for
IDLE: Final = 60  # seconds without a query after which a subscription ends

_SWEEP: Final = 2.5  # seconds between two looks for idle subscriptions
_AT_ONCE: Final = 256  # subscriptions of one look
_SHARED_PART: Final = 4  # the last part in so many of the table is for names that several clients have queried

_SUBSCRIBED: Final = frozenset(
    {
        *(RRType.A, RRType.AAAA, RRType.CNAME, RRType.MX, RRType.NS),
        *(RRType.PTR, RRType.SOA, RRType.SRV, RRType.TXT),
    }
)
_TAILS: Final = {pack_question_tail(rtype, RRClass.IN) for rtype in _SUBSCRIBED}


class PushUpstream(Protocol):
    """An upstream with which sessions can be begun."""

    name: str

    def begin_session(self, user: SessionUser) -> bool: ...


class PushedEntries(Protocol):
    """The entries of the cache, by subject: name in lower case, type and class, in wire form."""

    def expire(self, subject: bytes) -> None:
        """No entry for this subject is fresh any more."""

    def is_used(self, subject: bytes, grace: int) -> bool:
        """Whether an entry for this subject is fresh, or was so within the last `grace` seconds."""


class Subscription:
    """A name and type. `ident`: the id of its SUBSCRIBE, 0 before that is sent."""

    __slots__ = ("ident", "is_live", "refused_until", "used")

    def __init__(self) -> None:
        self.used = 0  # monotonic seconds of the latest query that came as far as the cache
        self.renew()

    def renew(self) -> None:
        """Begin anew, in another session."""
        self.ident = 0
        self.is_live = False
        self.refused_until = 0.0  # monotonic seconds; 0.0: not refused


class PushSubscriptions:
    """The subscriptions of one cache: at most `most`, all over one session, with one of `upstreams`."""

    def __init__(
        self,
        most: int,
        upstreams: Sequence[PushUpstream],
        entries: PushedEntries,
        changed: Callable[[frozenset[Fact]], object],
        timers: Timers,
        rng: Random,
        counts: SubscriptionCounts,
        node_name: bytes = b"",
    ) -> None:
        """`changed` takes the facts of changed subjects: copies of their answers must go.

        `node_name`: the Node of this cache, sent with each SUBSCRIBE, since it has no EDNS options; b"": not sent.
        """
        self.counts = counts
        self.live = 0  # subscriptions that the upstream has confirmed
        self._most = most
        self._upstreams = upstreams
        self._entries = entries
        self._changed = changed
        self._timers = timers
        self._rng = rng
        self.additional = (Tlv(DsoType.NODE_NAME, node_name),) if node_name else ()
        self._table: dict[bytes, Subscription] = {}
        self._waiting: deque[bytes] = deque()  # subjects to subscribe to
        self._session: DsoSession | None = None  # once established
        self._opening = self._closed = False
        self._turn = 0  # index of the upstream to ask
        self._failures = 0  # sessions that were lost since one was established
        self._retry_at = 0.0
        self._retry: Timer | None = None
        self._sweeping: Timer | None = None
        self._remembered = RememberedRecords()
        self._said_refused = False

    @property
    def is_connected(self) -> bool:
        return self._session is not None

    @property
    def active(self) -> bool:
        return bool(self._table)

    def served(self, key: bytes, one_client: bool) -> tuple[Fact, ...]:
        """Note a query that the entry of this key answers; the facts on which copies of the answer depend.

        Subscribes, unless the subject has a subscription, its type is none of `_SUBSCRIBED`, or the table is full.
        `one_client`: no other client has queried the entry.
        """
        subject = key[:-2]
        known = self._table.get(subject)
        if known is None:
            known = self._begin(subject, one_client)
            if known is None:
                return ()
        now = self._timers.time()
        known.used = int(now)
        if known.refused_until:
            if now < known.refused_until:
                return ()
            known.renew()
            self._waiting.append(subject)
            self._pump()
        return (cached_fact(subject),)

    def contradicts(self, key: bytes, answer: Iterable[RRset]) -> bool:
        """Whether an answer section for this key has other records than those pushed: another replica is behind."""
        subject = key[:-2]
        if not self._remembered.contradict(subject, subject[:-QUESTION_TAIL_SIZE], answer):
            return False
        self.counts.contradicted += 1
        return True

    def close(self) -> None:
        """End the session and subscribe to nothing any more."""
        self._closed = True
        self._clear()
        for timer in (self._retry, self._sweeping):
            if timer is not None:
                timer.cancel()
        if self._session is not None:
            self._session.close()

    def established(self, session: DsoSession) -> None:
        """Subscribe, as a session has begun."""
        self._session, self._opening, self._failures = session, False, 0
        self.counts.sessions += 1
        log.info("plugin/cache: push notifications from %s", self._upstreams[self._turn].name)
        self._said_refused = False
        if self._closed:
            session.close()
            return
        self._pump()

    def received(self, kind: int, octets: bytes) -> None:
        """A PUSH message: expires the entries of the subjects in it."""
        if kind != DsoType.PUSH:
            raise WireError(f"unidirectional message of type {kind}")
        self.counts.messages += 1
        found: dict[bytes, list[PushChange]] = {}
        for change in read_push(octets):
            for subject in self._subjects(change):
                found.setdefault(subject, []).append(change)
        for subject, changes in found.items():
            if self._table[subject].is_live:
                self._remembered.apply(subject, changes)
        self._expire(found)

    def ended(self, end: DsoEnd) -> None:
        """Without a session entries stay for their TTL; after a lost one, another makes its subscriptions again."""
        was_open = self._session is not None
        self._session, self._opening = None, False
        name = self._upstreams[self._turn].name
        self._turn = (self._turn + 1) % len(self._upstreams)
        if self._closed:
            return
        if end.refused:
            self.counts.refused_sessions += 1
            if not self._said_refused:
                log.info("plugin/cache: no push notifications from %s: %s", name, end.problem)
            self._said_refused = True
            self._clear()
            delay = max(RETRY_REFUSED, min(end.retry_after, MAX_RETRY_DELAY))
            self._retry_at = self._timers.time() + delay * (1 + self._rng.random() / 4)
            return
        if was_open:
            self.counts.lost_sessions += 1
            log.warning("plugin/cache: no push notifications from %s any more: %s", name, end.problem)
        self._restart(end.retry_after)

    def _begin(self, subject: bytes, one_client: bool) -> Subscription | None:
        if self._closed or subject[-QUESTION_TAIL_SIZE:] not in _TAILS:
            return None
        if self._session is None and self._timers.time() < self._retry_at:
            return None
        most = self._most - self._most // _SHARED_PART if one_client else self._most
        if len(self._table) >= most:
            return None
        known = self._table[subject] = Subscription()
        self._waiting.append(subject)
        if self._session is None:
            self._open()
        else:
            self._pump()
        if self._sweeping is None:
            self._sweeping = self._timers.call_later(_SWEEP, self._sweep)
        return known

    def _open(self) -> None:
        if self._opening or self._closed or self._session is not None:
            return
        self._opening = True
        if not self._upstreams[self._turn].begin_session(self):
            self._opening = False
            self._turn = (self._turn + 1) % len(self._upstreams)
            self._restart(0.0)

    def _restart(self, wanted: float) -> None:
        """Begin another session later, `wanted` seconds from now at least, and make all subscriptions again in it."""
        for known in self._table.values():
            known.renew()
        self.live = 0
        self._remembered.clear()
        self._waiting = deque(self._table)
        own = min(RETRY_LOST * 2**self._failures, RETRY_REFUSED)
        self._failures = min(self._failures + 1, 8)
        delay = max(own, min(wanted, MAX_RETRY_DELAY)) + own * self._rng.random()
        self._retry_at = self._timers.time() + delay
        if self._retry is not None:
            self._retry.cancel()
        self._retry = self._timers.call_later(delay, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        if self._table:
            self._open()

    def _pump(self) -> None:
        """Send waiting subscriptions, with at most WINDOW SUBSCRIBEs without a response."""
        session = self._session
        while session is not None and self._waiting and session.waiting < WINDOW:
            subject = self._waiting.popleft()
            known = self._table.get(subject)
            if known is not None and not known.ident:
                write = partial(_subscribe, subject, self.additional)
                known.ident = session.request(write, partial(self._responded, subject, known), goes_on=True)

    def _responded(self, subject: bytes, known: Subscription, rcode: int, retry_after: float) -> None:
        if self._table.get(subject) is not known:
            if rcode == Rcode.NOERROR and self._session is not None:
                self._session.finish(known.ident, write_unsubscribe(known.ident))
        elif rcode == Rcode.NOERROR:
            known.is_live = True
            self.live += 1
            # The entry is older than the subscription, and what changed in between is not pushed.
            self._expire((subject,))
        else:
            delay = min(max(retry_after, RETRY_SOONEST), MAX_RETRY_DELAY) if retry_after else RETRY_REFUSED
            known.refused_until = self._timers.time() + delay
            self.counts.refused[rcode] += 1
            self._changed(frozenset((cached_fact(subject),)))
        self._pump()

    def _subjects(self, change: PushChange) -> list[bytes]:
        """The subscriptions that a change concerns: of a CNAME, those to any type of its owner."""
        if change.rtype in (RRType.CNAME, RRType.ANY) or change.rclass == RRClass.ANY:
            subjects = [change.owner + tail for tail in _TAILS]
        else:
            subjects = [change.owner + pack_question_tail(change.rtype, change.rclass)]
        found = [subject for subject in subjects if subject in self._table]
        if not found:
            self.counts.strays += 1
        return found

    def _expire(self, subjects: Iterable[bytes]) -> None:
        facts = set()
        for subject in subjects:
            self._entries.expire(subject)
            facts.add(cached_fact(subject))
        if facts:
            self.counts.expired += len(facts)
            self._changed(frozenset(facts))

    def _sweep(self) -> None:
        """End subscriptions to names that are queried no more, some at each call."""
        self._sweeping = None
        now = int(self._timers.time())
        for subject in list(islice(self._table, _AT_ONCE)):
            known = self._table.pop(subject)
            is_pending = known.ident and not known.is_live and not known.refused_until
            if now - known.used < IDLE or is_pending or self._entries.is_used(subject, IDLE):
                self._table[subject] = known
            else:
                self._drop(subject, known)
        if self._table:
            self._sweeping = self._timers.call_later(_SWEEP, self._sweep)

    def _drop(self, subject: bytes, known: Subscription) -> None:
        if known.is_live:
            self.live -= 1
            if self._session is not None:
                self._session.finish(known.ident, write_unsubscribe(known.ident))
        self._remembered.forget(subject)

    def _clear(self) -> None:
        self._table.clear()
        self._waiting.clear()
        self._remembered.clear()
        self.live = 0


def _subscribe(subject: bytes, additional: Iterable[Tlv], ident: int) -> bytes:
    name_end = len(subject) - QUESTION_TAIL_SIZE
    return write_subscribe(ident, Subscribe(subject[:name_end], *unpack_question_tail(subject, name_end)), *additional)
