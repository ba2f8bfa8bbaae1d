"""The answers that subscriptions follow: their records and how these differ (RFC 8765 section 6.3.1), their
subscribers, and the table of all by question and dependency.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from topodns.dependency import Fact
from topodns.dns.dso import retry_delay_tlv, write_dso_response
from topodns.dns.message import Response, RRset
from topodns.dns.push_messages import ALL_REMOVED, MAX_PUSHED_RDATA, REMOVED, PushChange
from topodns.dns.rrtype import ADDRESS_TYPES, Rcode, RRClass, RRType
from topodns.dns.tcp_framing import frame
from topodns.memory.budget import FairShares
from topodns.plugins.push import PushCounts, PushRefusal, SessionEnd
from topodns.query.session import SessionConnection

_ANSWER: Final = 1000  # octets of an answer beside its name, records and dependencies, as by bench/push_memory.py
_FACT: Final = 250  # octets of a dependency and its place in the index
_ADDRESS: Final = 16  # octets of an address record: its RDATA is also kept by the state of the cluster
_RECORD: Final = 64  # octets of another record beside its RDATA, which is made for the answer, as an SRV's target is


class PushedRecords(NamedTuple):
    """The records of an answer that a subscription follows.

    `rest` is a hash of all else that makes another answer: the rcode, and the other records of its sections answer and
    additional, such as the addresses behind a CNAME or of an SRV. Order does not count, nor do the TTLs of these
    records: those from an upstream decrease, and the client that has only some of them queries for the others.
    """

    rrsets: tuple[RRset, ...]  # of the subscription's name, and its type or CNAME; in most answers one
    rest: int

    @property
    def octets(self) -> int:
        """The memory of the records, as measured by bench/push_memory.py."""
        return sum(map(_octets, self.rrsets))


WITHHELD: Final = PushedRecords((), 0)
"""The records of an answer that the client must not have now (REFUSED), or that is not this server's (NOTAUTH)."""


def _octets(rrset: RRset) -> int:
    if rrset.rtype in ADDRESS_TYPES:
        return _ADDRESS * len(rrset.rdatas)
    return _RECORD * len(rrset.rdatas) + sum(map(len, rrset.rdatas))


_Record = tuple[int, bytes]
"""(type, RDATA)"""


def pushed_records(response: Response, qname: bytes, qtype: int) -> PushedRecords:
    """The records of a response that a subscription to this name (wire form, lower case) and type follows.

    The section AUTHORITY does not count: it has the SOA, whose serial changes with each change of the cluster.
    """
    followed: list[RRset] = []
    others: list[RRset] = []
    for rrset in response.answer:
        (followed if _is_followed(rrset, qname, qtype) else others).append(rrset)
    rest = frozenset(map(_identity, (*others, *response.additional)))
    return PushedRecords(tuple(followed), hash((response.rcode, rest)))


def _is_followed(rrset: RRset, qname: bytes, qtype: int) -> bool:
    return (
        rrset.rtype in (qtype, RRType.CNAME)
        and rrset.rclass == RRClass.IN
        and (not rrset.owner or rrset.owner.lower() == qname)
        and all(len(rdata) <= MAX_PUSHED_RDATA for rdata in rrset.rdatas)
    )


def _identity(rrset: RRset) -> tuple[object, ...]:
    owner, rtype, _, rdatas, rclass = rrset
    return owner.lower(), rtype, rclass, rdatas if len(rdatas) == 1 else frozenset(rdatas)


def all_changes(records: PushedRecords, qname: bytes) -> list[PushChange]:
    """The changes that add all records, for a client that has none."""
    return [_added(qname, record, ttl) for record, ttl in _ttls(records).items()]


def anew(records: PushedRecords, qname: bytes, qtype: int) -> list[PushChange]:
    """The changes that lead to these records, for any earlier records of the client."""
    types = dict.fromkeys((qtype, RRType.CNAME))
    return [*(_emptied(qname, rtype) for rtype in types), *all_changes(records, qname)]


def difference(old: PushedRecords, new: PushedRecords, qname: bytes, qtype: int) -> list[PushChange]:
    """The changes from `old` to `new`, none if they are equal but for their order.

    If only `rest` differs, the first record is added once more, which changes nothing in a client's set, or an empty
    set is removed: either way the client learns that its answer is outdated.
    """
    if old == new:
        return []
    before, after = _ttls(old), _ttls(new)
    added = [(record, ttl) for record, ttl in after.items() if before.get(record) != ttl]
    removed = [record for record in before if record not in after]
    if not added and not removed:
        if old.rest == new.rest:
            return []
        return [_added(qname, *each) for each in islice(after.items(), 1)] or [_emptied(qname, qtype)]
    return [*_removals(qname, removed, before), *(_added(qname, record, ttl) for record, ttl in added)]


def _removals(qname: bytes, removed: list[_Record], before: Iterable[_Record]) -> Iterator[PushChange]:
    """Removals of these records out of `before`: of a whole RRset where none of a type stays."""
    had = Counter(rtype for rtype, _ in before)
    lost = Counter(rtype for rtype, _ in removed)
    for rtype in lost:
        if lost[rtype] == had[rtype]:
            yield _emptied(qname, rtype)
    for rtype, rdata in removed:
        if lost[rtype] != had[rtype]:
            yield PushChange(qname, rtype, RRClass.IN, REMOVED, rdata)


def _ttls(records: PushedRecords) -> dict[_Record, int]:
    return {(rrset.rtype, rdata): rrset.ttl for rrset in records.rrsets for rdata in rrset.rdatas}


def _added(qname: bytes, record: _Record, ttl: int) -> PushChange:
    return PushChange(qname, record[0], RRClass.IN, ttl, record[1])


def _emptied(qname: bytes, rtype: int) -> PushChange:
    return PushChange(qname, rtype, RRClass.IN, ALL_REMOVED)


MINUTE: Final = 60_000  # milliseconds
_RCODES: Final = {
    PushRefusal.MALFORMED: (Rcode.FORMERR, 5 * MINUTE),
    PushRefusal.UNKNOWN: (Rcode.DSOTYPENI, 0),
    PushRefusal.SESSIONS: (Rcode.REFUSED, MINUTE),
    PushRefusal.SUBSCRIPTIONS: (Rcode.REFUSED, MINUTE),
    PushRefusal.MEMORY: (Rcode.REFUSED, MINUTE),
    PushRefusal.SHARE: (Rcode.REFUSED, MINUTE),
    PushRefusal.NAME: (Rcode.NOTAUTH, 5 * MINUTE),
    PushRefusal.TYPE: (Rcode.REFUSED, 0),
    PushRefusal.CLIENT: (Rcode.REFUSED, 0),
    PushRefusal.NOT_READY: (Rcode.SERVFAIL, 5_000),
}
"""The rcode of each refusal, and its Retry Delay in milliseconds; 0 for those that concern one name or type alone."""


class Viewer(NamedTuple):
    """The client of an answer, as far as the answer may depend on it. `node_name`: its claim, b"" for none."""

    address: bytes  # packed
    node_name: bytes


class PushedAnswer:
    """An answer to which sessions are subscribed.

    `viewer`: the client for which it is made; None: the same for all clients. `records` None: the first answer is
    awaited. `withheld`: the reason why the records are those of `WITHHELD`; None: they are not. `owner`: the address of
    a subscriber, for which the memory counts: that of the first one which still has its subscription.
    """

    __slots__ = (
        *("again", "due", "facts", "octets", "owner", "pending"),
        *("qname", "qtype", "records", "subscribers", "viewer", "waiting", "withheld"),
    )

    def __init__(self, qname: bytes, qtype: int, viewer: Viewer | None, owner: bytes) -> None:
        self.qname = qname
        self.qtype = qtype
        self.viewer = viewer
        self.owner = owner
        self.subscribers: dict[Subscriber, int] = {}  # -> the id of its SUBSCRIBE
        self.waiting: dict[Subscriber, int] = {}  # those without a response yet
        self.records: PushedRecords | None = None
        self.withheld: PushRefusal | None = None
        self.facts: frozenset[Fact] = frozenset()
        self.octets = 0  # as counted
        self.due = False  # in `DueAnswers`, touched by a change
        self.pending = False  # being made, by a deferred answer
        self.again = False  # to be made once more when that is done

    def __repr__(self) -> str:
        return f"<PushedAnswer {self.qname!r} {self.qtype}, {len(self.subscribers)} subscribers>"


class Subscriber:
    """The client of one session, whose messages `session.PushSession` reads.

    `answers`: the answer that each subscription follows, by the id of its SUBSCRIBE. `leave` is called when an
    established session is closed.
    """

    def __init__(
        self, connection: SessionConnection, counts: PushCounts, leave: "Callable[[Subscriber], object]"
    ) -> None:
        self.connection = connection
        self.viewer = Viewer(connection.address, b"")
        self.answers: dict[int, PushedAnswer] = {}
        self.is_established = False
        self.is_closed = False
        self.end = SessionEnd.CLOSED  # the reason, once it is closed
        self.last_rcode: int = Rcode.NOERROR  # of the last message, `farewell`
        self.replies: list[bytes] | None = None  # while a message is handled
        self._counts = counts
        self._leave = leave

    def write(self, messages: list[bytes]) -> None:
        """Send messages: with the reply to the message that is being handled, else by themselves."""
        if self.replies is not None:
            self.replies += messages
        else:
            self.deliver(b"".join(map(frame, messages)))

    def deliver(self, framed: bytes) -> None:
        """Send messages that have their lengths before them. A client that does not read loses its session."""
        if not self.is_closed and not self.connection.send(framed):
            self.end = SessionEnd.SLOW

    def respond(self, ident: int, refusal: PushRefusal | None = None) -> None:
        """Send the response to the request with this id."""
        if refusal is None:
            self.write([write_dso_response(ident)])
            return
        self._counts.refused[refusal] += 1
        rcode, delay = _RCODES[refusal]
        self.write([write_dso_response(ident, rcode, *((retry_delay_tlv(delay),) if delay else ()))])

    def finish(self, rcode: int = Rcode.NOERROR) -> None:
        """End the session with the connection, in good order; `farewell` is the last message, with this rcode."""
        self.end = SessionEnd.SERVER
        self.last_rcode = rcode
        self.connection.finish()

    def evict(self) -> None:
        """End the session in favour of another one, in good order; it is not counted any more from now on.

        The last message has SERVFAIL, for an overloaded server (RFC 8490 section 7.2.1).
        """
        self.end = SessionEnd.EVICTED
        self.last_rcode = Rcode.SERVFAIL
        self.closed()
        self.connection.finish()

    def closed(self) -> None:
        """Implements `StatefulSession`."""
        if not self.is_closed and self.is_established:
            self._leave(self)
        self.is_closed = True


class AnswerTable:
    """All answers of a listener, one for each question and viewer. `memory` has the octets of each owner."""

    def __init__(self, memory: FairShares) -> None:
        self._memory = memory
        self._answers: dict[tuple[bytes, int, Viewer | None], PushedAnswer] = {}
        self._by_fact: dict[Fact, set[PushedAnswer]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[PushedAnswer]:
        return iter(self._answers.values())

    def get(self, qname: bytes, qtype: int, viewer: Viewer | None) -> PushedAnswer | None:
        return self._answers.get((qname, qtype, viewer))

    def add(self, answer: PushedAnswer) -> None:
        """Add an answer; there is none for its question and viewer yet."""
        self._answers[(answer.qname, answer.qtype, answer.viewer)] = answer
        self._weigh(answer)

    def remove(self, answer: PushedAnswer) -> None:
        """Remove an answer; no effect if it is not there."""
        key = (answer.qname, answer.qtype, answer.viewer)
        if self._answers.get(key) is answer:
            del self._answers[key]
            self._index(answer, frozenset())
            self._count(answer, 0)

    def share(self, answer: PushedAnswer) -> None:
        """Make the answer of one viewer that of all; there is none for all yet."""
        del self._answers[(answer.qname, answer.qtype, answer.viewer)]
        answer.viewer = None
        self._answers[(answer.qname, answer.qtype, None)] = answer

    def update(self, answer: PushedAnswer, records: PushedRecords, facts: frozenset[Fact]) -> None:
        """Set the records and dependencies of an answer in the table."""
        answer.records = records
        if facts != answer.facts:
            self._index(answer, facts)
        self._weigh(answer)

    def charge(self, answer: PushedAnswer, owner: bytes) -> None:
        """Let the memory of an answer count for another address."""
        octets = answer.octets
        self._count(answer, 0)
        answer.owner = owner
        self._count(answer, octets)

    def rests(self, fact: Fact) -> bool:
        """Whether any answer depends on this fact."""
        return fact in self._by_fact

    def resting_on(self, fact: Fact) -> tuple[PushedAnswer, ...]:
        """The answers that depend on this fact."""
        return tuple(self._by_fact.get(fact, ()))

    def _index(self, answer: PushedAnswer, facts: frozenset[Fact]) -> None:
        for fact in answer.facts - facts:
            resting = self._by_fact[fact]
            resting.discard(answer)
            if not resting:
                del self._by_fact[fact]
        for fact in facts - answer.facts:
            self._by_fact.setdefault(fact, set()).add(answer)
        answer.facts = facts

    def _weigh(self, answer: PushedAnswer) -> None:
        records = answer.records.octets if answer.records is not None else 0
        self._count(answer, _ANSWER + len(answer.qname) + records + len(answer.facts) * _FACT)

    def _count(self, answer: PushedAnswer, octets: int) -> None:
        if octets != answer.octets:
            self._memory.add(answer.owner, octets - answer.octets)
            answer.octets = octets
