"""The publisher of one listener: makes the answers that sessions follow, by the chain of plugins, and pushes changes.

A change of the cluster marks the answers that depend on it (`touched`); they are made anew, and the differences sent,
between queries, by the schedule. So is the first answer to a subscription, once those made at once have taken half of
the time.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from random import Random
from typing import Final

from topodns.dependency import EVERYTHING, Fact
from topodns.dns.message import DEFAULT_UDP_SIZE, Edns, Flag, Option, Query
from topodns.dns.name import is_below_any, wire_labels
from topodns.dns.push_messages import write_push
from topodns.dns.rrtype import Rcode, RRClass
from topodns.dns.wire_format import MAX_MESSAGE
from topodns.dnsserver.push.answers import (
    WITHHELD,
    AnswerTable,
    PushedAnswer,
    PushedRecords,
    Subscriber,
    all_changes,
    anew,
    difference,
    pushed_records,
)
from topodns.dnsserver.push.clients import PushClients
from topodns.dnsserver.push.schedule import PushSchedule
from topodns.dnsserver.router import Block, BlockTable
from topodns.plugins.push import PushRefusal
from topodns.query.deferred import Timers, pursue
from topodns.query.plugin import Client, Dropped, Resolution, Scope
from topodns.query.session import PushLimits

log = logging.getLogger(__name__)


_LONGEST_DELAY: Final = 5_000  # milliseconds after which the clients of a server that stops come back, to another one


class Publisher:
    """Sessions and subscriptions of the clients of one listener."""

    def __init__(
        self,
        blocks: BlockTable,
        limits: PushLimits,
        local_port: int,
        timers: Timers,
        rng: Random,
        clients: PushClients,
    ) -> None:
        """`clients` are those of the process."""
        self.counts = clients.counts
        self.time = timers.time
        self._blocks = blocks
        self._local_port = local_port
        self._rng = rng
        self._limits = limits
        self._clients = clients
        self._sessions: dict[Subscriber, None] = {}  # of this listener
        self._table = AnswerTable(self.counts.memory)
        self._schedule = PushSchedule(timers, self._table, self.counts, self._make_due)
        self._changes = 0  # calls of `touched`

    def swap(self, blocks: BlockTable, limits: PushLimits | None) -> None:
        """Use other server blocks, after a reload, and make all answers anew; `limits` None: end all sessions."""
        self._blocks = blocks
        if limits is None:
            for session in tuple(self._sessions):
                session.finish()
            return
        self._limits = limits
        self._changes += 1
        self._schedule.touch_all()

    def touched(self, facts: Iterable[Fact]) -> None:
        """Make the answers that depend on these facts anew, soon."""
        if not self._table:
            return
        self._changes += 1
        if EVERYTHING in facts:
            self._schedule.touch_all()
        else:
            self._schedule.touch(facts)

    def retry_delay(self) -> int:
        """Milliseconds after which a client whose session ends here may connect again: another one for each."""
        return self._rng.randrange(_LONGEST_DELAY)

    def add_session(self, session: Subscriber) -> PushRefusal | None:
        """Add a session, for which another one may have to end; or a reason to refuse it."""
        found = self._clients.room_for_session(session.connection.address, self._limits)
        if isinstance(found, PushRefusal):
            return found
        if found is not None:
            found.evict()
        self._clients.add_session(session)
        self._sessions[session] = None
        return None

    def remove_session(self, session: Subscriber) -> None:
        """Remove a closed session now, and its subscriptions soon."""
        del self._sessions[session]
        self._clients.remove_session(session)
        if session.answers:
            self._schedule.leave(self._unsubscribe_all(session))

    def _unsubscribe_all(self, session: Subscriber) -> Iterator[None]:
        while session.answers:
            _, answer = session.answers.popitem()
            self.unsubscribe(session, answer)
            yield

    def followed(self, session: Subscriber, qname: bytes, qtype: int) -> PushedAnswer | None:
        """The answer that the session's subscription to this question follows; None without a subscription.

        `qname` is in wire form, in lower case.
        """
        for viewer in (None, session.viewer):
            answer = self._table.get(qname, qtype, viewer)
            if answer is not None and session in answer.subscribers:
                return answer
        return None

    def subscribe(self, session: Subscriber, ident: int, qname: bytes, qtype: int) -> PushRefusal | None:
        """Add a subscription, and send the response and the present records, now or soon; or a reason to refuse it."""
        query, client = self._asked(session, qname, qtype)
        block = self._block(query, client)
        if block is None:
            return PushRefusal.NAME
        answer = None if block.scope else self._table.get(qname, qtype, None)
        answer = answer or self._table.get(qname, qtype, session.viewer)
        if answer is not None and answer.withheld is not None:
            return answer.withheld
        refusal = self._clients.add_subscription(session, self._limits)
        if refusal is not None:
            return refusal
        work: Callable[[], object] | None = None  # None: the answer is being made, or waits for that
        if answer is None:
            answer = PushedAnswer(qname, qtype, session.viewer, session.connection.address)
            self._table.add(answer)
            work = partial(self._make, answer, session)
        elif answer.records is not None:
            work = partial(self._welcome, answer, answer.records, session, ident)
        self._enrol(answer, session, ident)
        answer.waiting[session] = ident
        if work is not None and not self._schedule.at_once(work):
            self._schedule.add(answer)
        return None

    def unsubscribe(self, session: Subscriber, answer: PushedAnswer) -> None:
        """Remove a subscription, which has left `session.answers`. A SUBSCRIBE without a response gets it now."""
        self._clients.remove_subscription(session)
        answer.subscribers.pop(session, None)
        ident = answer.waiting.pop(session, None)
        if ident is not None:
            session.respond(ident)
        if not answer.subscribers:
            self._table.remove(answer)
        elif answer.owner == session.connection.address:
            self._table.charge(answer, next(iter(answer.subscribers)).connection.address)

    def doubt(self, session: Subscriber, qname: bytes, qtype: int) -> None:
        """Make the answer that this session follows anew when there is nothing more urgent (RECONFIRM)."""
        answer = self.followed(session, qname, qtype)
        if answer is not None:
            self._schedule.doubt(answer)

    def _enrol(self, answer: PushedAnswer, session: Subscriber, ident: int) -> None:
        answer.subscribers[session] = ident
        session.answers[ident] = answer

    def _welcome(self, answer: PushedAnswer, records: PushedRecords, session: Subscriber, ident: int) -> None:
        """Send the response, and the present records if there are any."""
        answer.waiting.pop(session, None)
        session.respond(ident)
        messages = write_push(all_changes(records, answer.qname))
        if messages:
            self.counts.pushes += len(messages)
            session.write(messages)

    def _make_due(self, answer: PushedAnswer) -> None:
        if answer.pending:
            answer.again = True
        elif answer.subscribers:
            self._make(answer, next(iter(answer.subscribers)))

    def _asked(self, session: Subscriber, qname: bytes, qtype: int) -> tuple[Query, Client]:
        """The query and the client that would get the answer over this connection."""
        address, node_name = session.viewer
        edns = None
        if node_name:
            edns = Edns(DEFAULT_UDP_SIZE, 0, False, ((Option.NODE_IDENTITY, node_name),))
        query = Query(
            id=0,
            flags=Flag.RD,
            qname=wire_labels(qname),
            spelling=qname,
            qtype=qtype,
            qclass=RRClass.IN,
            edns=edns,
            size=len(qname),
        )
        return query, Client(address, session.connection.port, "tcp", self._local_port, limit=MAX_MESSAGE)

    def _block(self, query: Query, client: Client) -> Block | None:
        """The server block of this query, if the name can be subscribed to there."""
        block = self._blocks.match(query, client)
        if block is None or block.push is None or not is_below_any(query.qname, block.push.origins):
            return None
        if block.client_pods is not None and block.whole_scope > Scope.NODE:
            return None  # a session of a node cache names no client
        return block

    def _make(self, answer: PushedAnswer, session: Subscriber) -> None:
        """Make the answer as for a query of this session, and push what differs; later, if it is deferred."""
        pursue(self._make_deferred(answer, session), lambda _: None)

    async def _make_deferred(self, answer: PushedAnswer, session: Subscriber) -> None:
        """`_make`; once more after it, if dependencies may have changed after they were read."""
        query, client = self._asked(session, answer.qname, answer.qtype)
        block = self._block(query, client)
        if block is None:
            self._end(answer)
            return
        answer.pending, changes = True, self._changes
        made: Resolution | PushRefusal
        try:
            answered = block.chain.resolve(query, client)
            made = answered if isinstance(answered, Resolution) else await answered
        except Dropped:
            made = PushRefusal.CLIENT
        except Exception:
            log.exception("bug: an answer to push")
            made = PushRefusal.NOT_READY
        answer.pending = False
        if isinstance(made, PushRefusal):
            self._refuse(answer, made)
        else:
            self._conclude(answer, made, block)
        if answer.again or changes != self._changes:
            answer.again = False
            self._schedule.add(answer)

    def _conclude(self, answer: PushedAnswer, resolution: Resolution, block: Block) -> None:
        facts = frozenset(resolution.facts)
        refusal = _refusal_of(resolution)
        if refusal is not None:
            self._refuse(answer, refusal, facts)
            return
        for_everyone = resolution.scope == Scope.EVERYONE and not block.scope
        if answer.viewer is None and not for_everyone:
            self._split(answer)
            return
        answer.withheld = None
        records = pushed_records(resolution.response, answer.qname, answer.qtype)
        self._publish(answer, records, facts)
        if answer.viewer is not None and for_everyone:
            self._share(answer, records)

    def _publish(self, answer: PushedAnswer, records: PushedRecords, facts: frozenset[Fact]) -> None:
        """Send all records to those that wait for a response, and the difference to all other subscribers."""
        old = answer.records
        if answer.subscribers:
            self._table.update(answer, records, facts)
        waiting, answer.waiting = answer.waiting, {}
        others = [session for session in answer.subscribers if session not in waiting]
        for session, ident in waiting.items():
            self._welcome(answer, records, session, ident)
        if old is None:
            for session in others:
                self._refresh(answer, session)
        elif others:
            self._schedule.send(write_push(difference(old, records, answer.qname, answer.qtype)), others)

    def _refresh(self, answer: PushedAnswer, session: Subscriber) -> None:
        """Send all records anew, to a session that has followed another answer so far."""
        if answer.records is not None:
            self._schedule.send(write_push(anew(answer.records, answer.qname, answer.qtype)), (session,))

    def _refuse(self, answer: PushedAnswer, refusal: PushRefusal, facts: frozenset[Fact] = frozenset()) -> None:
        """Refuse an answer to those that wait for it, and end their subscriptions.

        To others, what is not ready leaves all as it is. Where the client may not have it, or this server has it no
        longer since it falls through to another plugin, its records are removed and the subscription stays: DSO has no
        way to end one subscription from the server's side, and a change may bring the records back.
        """
        if refusal is PushRefusal.CLIENT and answer.viewer is None:
            self._split(answer)
            return
        waiting, answer.waiting = answer.waiting, {}
        for session, ident in waiting.items():
            session.respond(ident, refusal)
            del session.answers[ident]
            self.unsubscribe(session, answer)
        if answer.records is None:
            return
        if refusal is not PushRefusal.NOT_READY:
            answer.withheld = refusal
            self._publish(answer, WITHHELD, answer.facts | facts)
        elif answer.subscribers:
            self._table.update(answer, answer.records, answer.facts | facts)

    def _end(self, answer: PushedAnswer) -> None:
        """End the sessions that follow an answer which is of no zone of this server any more, after a reload.

        Their last message has NOTAUTH, which RFC 8490 section 7.2.1 has for a server that was reconfigured like this.
        The clients come back soon, and subscribe to what is left.
        """
        if answer.records is None:
            self._refuse(answer, PushRefusal.NAME)
        for session in tuple(answer.subscribers):
            session.finish(Rcode.NOTAUTH)

    def _split(self, answer: PushedAnswer) -> None:
        """Give each viewer an answer of its own, as it is no longer the same for all; they are made anew."""
        waiting, answer.waiting = answer.waiting, {}
        owned: dict[PushedAnswer, None] = {}
        for session, ident in self._dissolve(answer).items():
            own = self._table.get(answer.qname, answer.qtype, session.viewer)
            if own is None:
                own = PushedAnswer(answer.qname, answer.qtype, session.viewer, session.connection.address)
                own.records, own.withheld = answer.records, answer.withheld
                self._table.add(own)
            if session in waiting:
                own.waiting[session] = ident
            elif own.records != answer.records:
                self._refresh(own, session)
            self._enrol(own, session, ident)
            owned[own] = None
        for own in owned:
            self._schedule.add(own)

    def _share(self, answer: PushedAnswer, records: PushedRecords) -> None:
        """Let an answer of one viewer, which is the same for all now, be that of all; or join it to an equal one."""
        shared = self._table.get(answer.qname, answer.qtype, None)
        if shared is None:
            if answer.subscribers:
                self._table.share(answer)
        elif shared.records is not None and not difference(shared.records, records, answer.qname, answer.qtype):
            for session, ident in self._dissolve(answer).items():
                self._enrol(shared, session, ident)

    def _dissolve(self, answer: PushedAnswer) -> dict[Subscriber, int]:
        """Remove an answer from the table, and its subscribers, which are returned.

        Without any it is not made once more where it is still due, doubted or pending.
        """
        self._table.remove(answer)
        subscribers, answer.subscribers = answer.subscribers, {}
        return subscribers


def _refusal_of(resolution: Resolution) -> PushRefusal | None:
    """The reason why no client can be subscribed to an answer; None if there is none."""
    rcode = resolution.response.rcode
    if resolution.upstream:
        return PushRefusal.NAME  # also where all upstreams have failed
    if rcode == Rcode.SERVFAIL:
        return PushRefusal.NOT_READY
    if rcode not in (Rcode.NOERROR, Rcode.NXDOMAIN):
        return PushRefusal.CLIENT
    if resolution.valid_until is not None:
        return PushRefusal.NAME
    if resolution.scope == Scope.CLIENT and not resolution.facts:
        return PushRefusal.TYPE  # such as the SOA, which changes with any object
    return None
