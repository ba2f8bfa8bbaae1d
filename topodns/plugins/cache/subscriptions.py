"""Subscriptions of a `cache` to its entries at the upstream (DNS Push Notifications, RFC 8765).

A name and type whose entry is queried again is subscribed to over a DSO session. From then on a PUSH about it expires
its entry and the copies in the packet cache, so that the next query fetches the new answer. Without a session entries
live by their TTL, which ends them in any case. `SessionBackoff` decides when the next session begins, and with which
upstream. The records that an upstream has pushed are remembered as hashes, and fetched answers are compared with them.
"""

import logging
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import islice
from random import Random
from typing import Final, Protocol

from topodns.dependency import Fact, cached_fact
from topodns.dns.dso import DsoType, Tlv
from topodns.dns.message import RRset
from topodns.dns.push_messages import (
    ALL_REMOVED,
    REMOVED,
    PushChange,
    Subscribe,
    read_push,
    write_subscribe,
    write_unsubscribe,
)
from topodns.dns.rrtype import RCODE_LABELS, Rcode, RRClass, RRType
from topodns.dns.wire_format import QUESTION_TAIL_SIZE, pack_question_tail, unpack_question_tail
from topodns.dns.wire_reader import WireError
from topodns.net.upstream.dso_session import MAX_RETRY_DELAY, DsoEnd, DsoSession, SessionBackoff, SessionUser
from topodns.plugins.cache.counts import SubscriptionCounts
from topodns.plugins.cache.store import Memory
from topodns.query.deferred import Timer, Timers

log = logging.getLogger(__name__)


WINDOW: Final = 64  # SUBSCRIBEs without a response at a time
RETRY_SUBSCRIBE: Final = 60.0  # seconds until a refused SUBSCRIBE is sent again, unless the upstream wants another time
RETRY_SOONEST: Final = 5.0  # seconds: the shortest wait that an upstream may ask for
MAX_REFUSALS: Final = 4096  # subjects whose SUBSCRIBE was refused: of more the oldest ones may be tried again
IDLE: Final = 60  # seconds without a query after which a subscription ends
SWEEP: Final = 10.0  # seconds: the longest time from then to its end
UNSETTLED: Final = 2.0  # seconds after a PUSH in which another replica of the upstream may be behind
UNSETTLED_TTL: Final = 1  # seconds for an answer that may be of a replica that is behind

MAX_OF_ONE: Final = 1 << 13  # octets of hashes of one subscription, eight for each record
MAX_OF_ALL: Final = 1 << 20

_PAUSE: Final = 2.5  # seconds between two looks for idle subscriptions; fewer where there are many
_AT_ONCE: Final = 256  # subscriptions of one look
_SHARED_PART: Final = 4  # the last part in so many of the table is for names that several clients have queried
_GROUPED: Final = 64  # changes of a PUSH that are grouped in one step

_SUBSCRIBED: Final = frozenset(
    {
        *(RRType.A, RRType.AAAA, RRType.CNAME, RRType.MX, RRType.NS),
        *(RRType.PTR, RRType.SOA, RRType.SRV, RRType.TXT),
    }
)
_TAILS: Final = {pack_question_tail(rtype, RRClass.IN) for rtype in _SUBSCRIBED}


class RecordMatch(Enum):
    """How an answer compares with the pushed records of its name and type."""

    SAME = "same"
    OTHER = "other"  # the upstream has other records now, or had when it answered
    UNKNOWN = "unknown"  # a part of the answer is nothing that is pushed, or too many records were pushed


class RememberedRecords:
    """The pushed records by subject: name in lower case, type and class, in wire form.

    A subject with more than `MAX_OF_ONE` octets of hashes, or beyond `MAX_OF_ALL`, is not remembered any more.
    """

    def __init__(self) -> None:
        self.octets = 0
        self._by_subject: dict[bytes, bytes | None] = {}  # sorted hashes; None: too many

    def begin(self, subject: bytes) -> None:
        """A subscription has begun: its subject has no records before the first ones are pushed.

        RFC 8765 section 6.3: the upstream pushes those that exist at once, so without a PUSH there are none.
        """
        self.forget(subject)
        self._by_subject[subject] = b""

    def apply(self, subject: bytes, changes: Iterable[PushChange]) -> None:
        """Apply changes to the records of a subject that has begun, in time linear in their number; else no effect."""
        before = self._by_subject.get(subject)
        if before is None:
            return
        others, aliases = _split(before)
        for _, rtype, rclass, ttl, rdata in changes:
            records = aliases if rtype == RRType.CNAME else others
            if ttl == ALL_REMOVED:
                records.clear()
                if rtype == RRType.ANY or rclass == RRClass.ANY:
                    others.clear()
                    aliases.clear()
            elif ttl == REMOVED:
                records.discard(_hash(rtype, rdata))
            else:
                records.add(_hash(rtype, rdata))
        packed = _packed(others | aliases)
        self.octets += len(packed) - len(before)
        self._by_subject[subject] = packed
        if len(packed) > MAX_OF_ONE or self.octets > MAX_OF_ALL:
            self.octets -= len(packed)
            self._by_subject[subject] = None

    def compare(self, subject: bytes, answer: Iterable[RRset], additional: Sequence[RRset] = ()) -> RecordMatch:
        """Compare the sections of an answer with the pushed records.

        Pushed are records of the subject's name, of its type or CNAME. So the target of an alias, and the addresses
        beside an SRV record, are unknown; of a denial it is unknown whether the name exists; and some upstreams push no
        CNAME, so an alias is unknown where nothing is pushed.
        """
        pushed = self._by_subject.get(subject)
        if pushed is None:
            return RecordMatch.UNKNOWN
        name = subject[:-QUESTION_TAIL_SIZE]
        types = (int.from_bytes(subject[-QUESTION_TAIL_SIZE : 2 - QUESTION_TAIL_SIZE], "big"), RRType.CNAME)
        fetched: set[int] = set()
        is_known = True
        for rrset in answer:
            if rrset.rtype in types and rrset.owner.lower() in (b"", name):
                fetched.update(_hash(rrset.rtype, rdata) for rdata in rrset.rdatas)
            else:
                is_known = False
        if _packed(fetched) != pushed:
            return RecordMatch.UNKNOWN if not pushed and _has_alias(fetched) else RecordMatch.OTHER
        return RecordMatch.SAME if is_known and fetched and not additional else RecordMatch.UNKNOWN

    def forget(self, subject: bytes) -> None:
        """Forget the records of a subject, if there are any."""
        self.octets -= len(self._by_subject.pop(subject, None) or b"")

    def clear(self) -> None:
        self._by_subject.clear()
        self.octets = 0


def _split(packed: bytes) -> tuple[set[int], set[int]]:
    """The hashes of records that are no CNAME, and of those that are."""
    records = set(array("q", packed))
    aliases = {each for each in records if each & 1}
    return records - aliases, aliases


def _packed(hashes: Iterable[int]) -> bytes:
    return array("q", sorted(hashes)).tobytes()


def _has_alias(hashes: Iterable[int]) -> bool:
    return any(each & 1 for each in hashes)


def _hash(rtype: int, rdata: bytes) -> int:
    """A hash of the record; its lowest bit says whether it is a CNAME."""
    return hash((rtype, rdata)) & ~1 | (rtype == RRType.CNAME)


class PushUpstream(Protocol):
    """An upstream with which sessions can be begun."""

    name: str

    def begin_session(self, user: SessionUser) -> bool: ...


class Subscription:
    """A name and type. `ident`: the id of its SUBSCRIBE, 0 before that is sent."""

    __slots__ = ("ident", "is_live", "pushed_at", "used")

    def __init__(self) -> None:
        self.used = 0  # monotonic seconds of the latest query that came as far as the cache
        self.pushed_at = 0.0  # monotonic seconds of the latest PUSH about it
        self.renew()

    def renew(self) -> None:
        """Begin anew, in another session."""
        self.ident = 0
        self.is_live = False


class PushSubscriptions:
    """The subscriptions of one cache: at most `most`, all over one session, with one of `upstreams`."""

    def __init__(
        self,
        most: int,
        upstreams: Sequence[PushUpstream],
        entries: Memory,
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
        self.additional = (Tlv(DsoType.NODE_NAME, node_name),) if node_name else ()
        self._table: dict[bytes, Subscription] = {}
        self._waiting: deque[bytes] = deque()  # subjects to subscribe to
        self._session: DsoSession | None = None  # once established
        self._opening = self._closed = False
        self._backoff = SessionBackoff(len(upstreams), rng)
        self._upstream = upstreams[0]  # that of the session, or of the last one
        self._retry: Timer | None = None
        self._sweeping: Timer | None = None
        self._round = self._unswept = 0  # subscriptions to look at in this round of looks, and those left
        self._pause = _PAUSE  # seconds between two looks of this round
        self._remembered = RememberedRecords()
        self._refused: OrderedDict[bytes, float] = OrderedDict()  # subject -> monotonic seconds of the next try
        self._refused_by = self._upstream
        self._is_logged = False  # that there are no notifications, since there were some

    @property
    def is_connected(self) -> bool:
        return self._session is not None

    @property
    def active(self) -> bool:
        return bool(self._table)

    def served(self, key: bytes, one_client: bool) -> tuple[Fact, ...]:
        """Note a query that the entry of this key answers; the facts on which copies of the answer depend.

        Subscribes if that is possible now. Copies depend on the subject in any case, since they may live longer than
        what prevents a subscription now: only types that are none of `_SUBSCRIBED` are never pushed. `one_client`: no
        other client has queried the entry.
        """
        subject = key[:-2]
        known = self._table.get(subject)
        now = self._timers.time()
        if known is None:
            if self._closed or subject[-QUESTION_TAIL_SIZE:] not in _TAILS:
                return ()
            known = self._begin(subject, one_client, now)
        if known is not None:
            known.used = int(now)
        return (cached_fact(subject),)

    def limits(self, key: bytes) -> bool:
        """Whether `longest_ttl` may limit the TTL of an answer for this key."""
        known = self._table.get(key[:-2])
        return known is not None and known.is_live

    def longest_ttl(self, key: bytes, answer: Sequence[RRset], additional: Sequence[RRset]) -> int | None:
        """The longest TTL for an upstream's answer for this key, with these sections; None: no limit.

        That is UNSETTLED_TTL for other records than those pushed: another replica of the upstream is behind, and no
        further PUSH would correct them. It is UNSETTLED_TTL, too, for what cannot be compared, shortly after a PUSH.
        """
        subject = key[:-2]
        known = self._table.get(subject)
        if known is None or not known.is_live:
            return None
        compared = self._remembered.compare(subject, answer, additional)
        if compared is RecordMatch.OTHER:
            self.counts.contradicted += 1
            return UNSETTLED_TTL
        is_settled = compared is RecordMatch.SAME or self._timers.time() - known.pushed_at > UNSETTLED
        return None if is_settled else UNSETTLED_TTL

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
        self._session, self._opening = session, False
        self._backoff.established()
        self.counts.sessions += 1
        log.info("plugin/cache: push notifications from %s", self._upstream.name)
        self._is_logged = False
        if self._closed:
            session.close()
            return
        if self._refused_by is not self._upstream:
            self._refused.clear()
        self._pump()

    def received(self, kind: int, octets: bytes) -> Iterator[None]:
        """A PUSH message: expires the entries of the subjects in it, one in each step."""
        if kind != DsoType.PUSH:
            raise WireError(f"unidirectional message of type {kind}")
        self.counts.messages += 1
        found: dict[bytes, list[PushChange]] = {}
        for number, change in enumerate(read_push(octets), 1):
            for subject in self._subjects(change):
                found.setdefault(subject, []).append(change)
            if not number % _GROUPED:
                yield
        now = self._timers.time()
        for subject, changes in found.items():
            yield
            known = self._table.get(subject)
            if known is not None and known.is_live:
                self._remembered.apply(subject, changes)
                known.pushed_at = now
            self._expire(subject)

    def ended(self, end: DsoEnd) -> None:
        """Without a session entries stay for their TTL; another one makes the subscriptions again."""
        was_open = self._session is not None
        self._session, self._opening = None, False
        if self._closed:
            return
        now = self._timers.time()
        if end.refused:
            self.counts.refused_sessions += 1
            self._backoff.refused(now, end.retry_after)
        else:
            self.counts.lost_sessions += was_open
            self.counts.failed_sessions += not was_open
            self._backoff.lost(now, end.retry_after)
        self._log_end(end, was_open)
        if end.refused and self._backoff.due > now:  # no other upstream can be asked soon
            self._clear()
        else:
            self._restart(now)

    def _log_end(self, end: DsoEnd, was_open: bool) -> None:
        if was_open:
            log.warning("plugin/cache: no push notifications from %s any more: %s", self._upstream.name, end.problem)
        elif not self._is_logged:
            log.info("plugin/cache: no push notifications from %s: %s", self._upstream.name, end.problem)
        self._is_logged = True

    def _begin(self, subject: bytes, one_client: bool, now: float) -> Subscription | None:
        """Begin a subscription, if there may be a session, the upstream has not refused it, and there is room."""
        if self._session is None and now < self._backoff.due:
            return None
        if now < self._refused.get(subject, 0.0):
            return None
        most = self._most - self._most // _SHARED_PART if one_client else self._most
        if len(self._table) >= most:
            return None
        known = self._table[subject] = Subscription()
        self._waiting.append(subject)
        if self._session is None:
            self._open(now)
        else:
            self._pump()
        if self._sweeping is None:
            self._sweeping = self._timers.call_later(_PAUSE, self._sweep)
        return known

    def _open(self, now: float) -> None:
        if self._opening or self._closed or self._session is not None:
            return
        self._opening = True
        self._upstream = self._upstreams[self._backoff.choose(now)]
        if not self._upstream.begin_session(self):
            self._opening = False
            self._backoff.lost(now)
            self._restart(now)

    def _restart(self, now: float) -> None:
        """Begin another session when one is due, and make all subscriptions again in it."""
        for known in self._table.values():
            known.renew()
        self.live = 0
        self._remembered.clear()
        self._waiting = deque(self._table)
        if self._retry is not None:
            self._retry.cancel()
        self._retry = self._timers.call_later(max(0.0, self._backoff.due - now), self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        if self._table:
            self._open(self._timers.time())

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
            self._remembered.begin(subject)
            # The entry is older than the subscription, and what changed in between is not pushed.
            self._expire(subject)
        else:
            del self._table[subject]
            self._note_refusal(subject, rcode, retry_after)
        self._pump()

    def _note_refusal(self, subject: bytes, rcode: int, retry_after: float) -> None:
        """Wait for as long as the upstream wants, in later sessions with it as well (RFC 8490 section 7.2.2)."""
        delay = min(max(retry_after, RETRY_SOONEST), MAX_RETRY_DELAY) if retry_after else RETRY_SUBSCRIBE
        self.counts.refused[RCODE_LABELS[rcode]] += 1
        self._refused_by = self._upstream
        self._refused[subject] = self._timers.time() + delay
        self._refused.move_to_end(subject)
        if len(self._refused) > MAX_REFUSALS:
            self._refused.popitem(last=False)

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

    def _expire(self, subject: bytes) -> None:
        self._entries.expire(subject)
        self.counts.expired += 1
        self._changed(frozenset((cached_fact(subject),)))

    def _sweep(self) -> None:
        """End subscriptions to names that are queried no more, some at each call, and all within SWEEP seconds."""
        self._sweeping = None
        now = int(self._timers.time())
        if self._unswept <= 0:
            # Some of the subscriptions of the round before may have become idle after they were looked at.
            self._pause = min(_PAUSE, SWEEP * _AT_ONCE / max(1, self._round, len(self._table)))
            self._round = self._unswept = len(self._table)
        self._unswept -= _AT_ONCE
        for subject in list(islice(self._table, _AT_ONCE)):
            known = self._table.pop(subject)
            is_pending = known.ident and not known.is_live
            if now - known.used < IDLE or is_pending or self._entries.is_used(subject, IDLE):
                self._table[subject] = known
            else:
                self._drop(subject, known)
        if self._table:
            self._sweeping = self._timers.call_later(self._pause, self._sweep)

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
