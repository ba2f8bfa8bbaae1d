"""The server's side of one DSO session (RFC 8490): messages in, messages out, and what they mean to the publisher.

A session begins with the first request that is not refused. No I/O and no clock: the connection sends the messages, and
the publisher gives the time.
"""

import logging
from typing import TYPE_CHECKING, Final

from topodns.cluster.api_names import is_subdomain
from topodns.dns.dso import (
    DsoMessage,
    DsoType,
    SessionTimeouts,
    Tlv,
    keepalive_tlv,
    read_dso,
    read_keepalive,
    retry_delay_tlv,
    write_dso,
    write_dso_response,
)
from topodns.dns.push import Reconfirm, Subscribe, read_reconfirm, read_subscribe, read_unsubscribe
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.dns.tcp_framing import frame
from topodns.dns.wire_reader import WireError
from topodns.dnsserver.push.answers import Viewer
from topodns.plugins.push import PushRefusal, SessionEnd
from topodns.query.session import SessionConnection

if TYPE_CHECKING:
    from topodns.dnsserver.push.answers import PushedAnswer
    from topodns.dnsserver.push.publisher import Publisher

log = logging.getLogger(__name__)


TIMEOUTS: Final = SessionTimeouts(inactivity=15_000, keepalive=15_000)  # milliseconds
PATIENCE: Final = 2 * TIMEOUTS.keepalive / 1000  # seconds, of the server (RFC 8490 sections 6.4.1, 6.5.1)

_MINUTE: Final = 60_000  # milliseconds
_RCODES: Final = {
    PushRefusal.MALFORMED: (Rcode.FORMERR, 5 * _MINUTE),
    PushRefusal.UNKNOWN: (Rcode.DSOTYPENI, 0),
    PushRefusal.SESSIONS: (Rcode.REFUSED, _MINUTE),
    PushRefusal.SUBSCRIPTIONS: (Rcode.REFUSED, _MINUTE),
    PushRefusal.MEMORY: (Rcode.REFUSED, _MINUTE),
    PushRefusal.SHARE: (Rcode.REFUSED, _MINUTE),
    PushRefusal.NAME: (Rcode.NOTAUTH, 5 * _MINUTE),
    PushRefusal.TYPE: (Rcode.REFUSED, 0),
    PushRefusal.CLIENT: (Rcode.REFUSED, 0),
    PushRefusal.NOT_READY: (Rcode.SERVFAIL, 5_000),
}
"""The rcode of each refusal, and its Retry Delay in milliseconds; 0 for those that concern one name or type alone."""

_REQUESTS: Final = frozenset({DsoType.KEEPALIVE, DsoType.SUBSCRIBE})
_UNIDIRECTIONAL: Final = frozenset({DsoType.UNSUBSCRIBE, DsoType.RECONFIRM})
_FORBIDDEN: Final = frozenset({DsoType.RETRY_DELAY, DsoType.ENCRYPTION_PADDING, DsoType.PUSH})
_ANY: Final = frozenset({RRType.ANY, RRType.OPT, RRType.AXFR, RRType.IXFR})


class _Fatal(Exception):
    """The client has broken the protocol: the connection is to be aborted (RFC 8490 section 5.3.1)."""


class PushSession:
    """The session of one connection, before and after it is established.

    `answers`: the answer that each subscription follows, by the id of its SUBSCRIBE.
    """

    def __init__(self, publisher: "Publisher", connection: SessionConnection) -> None:
        self.connection = connection
        self.viewer = Viewer(connection.address, b"")
        self.answers: dict[int, PushedAnswer] = {}
        self.is_closed = False
        self.end = SessionEnd.CLOSED  # the reason, once it is closed
        self._publisher = publisher
        self._established = False
        self._active_at = 0.0  # the time of the last message that is no Keepalive, queries and replies included
        self._farewell: int = Rcode.NOERROR  # the rcode of the last message
        self._named = False  # the first SUBSCRIBE has decided about `viewer`
        self._replies: list[bytes] | None = None  # while a message is handled

    def receive(self, message: bytes) -> list[bytes] | None:
        """Implements `StatefulSession`. After the session has ended messages are ignored (RFC 8490 section 6.6.1.1)."""
        if self.is_closed:
            return []
        replies: list[bytes] = []
        self._replies = replies
        try:
            self._take(message)
        except _Fatal:
            self.end = SessionEnd.ERROR
            return None
        except Exception:
            log.exception("bug: a DSO message of %d octets", len(message))
            return None
        finally:
            self._replies = None
        return replies

    def write(self, messages: list[bytes]) -> None:
        """Send messages: with the reply to the message that is being handled, else by themselves."""
        if self._replies is not None:
            self._replies += messages
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
        self._publisher.counts.refused[refusal] += 1
        rcode, delay = _RCODES[refusal]
        self.write([write_dso_response(ident, rcode, *((retry_delay_tlv(delay),) if delay else ()))])

    def finish(self, rcode: int = Rcode.NOERROR) -> None:
        """End the session with the connection, in good order; `farewell` is the last message, with this rcode."""
        self.end = SessionEnd.SERVER
        self._farewell = rcode
        self.connection.finish()

    def evict(self) -> None:
        """Implements `EvictableSession`, with SERVFAIL for an overloaded server (RFC 8490 section 7.2.1)."""
        self.end = SessionEnd.EVICTED
        self._farewell = Rcode.SERVFAIL
        self.closed()
        self.connection.finish()

    def query_exchanged(self) -> None:
        """Implements `StatefulSession`."""
        self._active_at = self._publisher.time()

    def farewell(self) -> list[bytes]:
        """Implements `StatefulSession`: a Retry Delay (RFC 8490 section 6.6.1)."""
        if not self._established:
            return []
        delay = self._publisher.retry_delay()
        if self.end is SessionEnd.EVICTED:
            delay += _MINUTE
        else:
            self.end = SessionEnd.SERVER
        return [write_dso(DsoMessage(0, False, self._farewell, retry_delay_tlv(delay)))]

    def closed(self) -> None:
        """Implements `StatefulSession`."""
        if not self.is_closed and self._established:
            self._publisher.remove_session(self)
        self.is_closed = True

    def _take(self, octets: bytes) -> None:
        ident = int.from_bytes(octets[:2], "big")
        try:
            message = read_dso(octets)
        except WireError:
            if not ident or octets[2] & 0x80:
                raise _Fatal from None
            self.respond(ident, PushRefusal.MALFORMED)
            return
        if message.response or message.primary is None:
            raise _Fatal  # a response, though this server sends no request, or a message without a primary TLV
        kind, data = message.primary
        if kind in _FORBIDDEN or bool(ident) is (kind in _UNIDIRECTIONAL):
            raise _Fatal  # also a unidirectional message with an id, or another one without (RFC 8490 section 5.4.1)
        if kind in _UNIDIRECTIONAL and not self._established:
            raise _Fatal
        if kind != DsoType.KEEPALIVE:
            self._active_at = self._publisher.time()
        if kind in _UNIDIRECTIONAL:
            self._take_unidirectional(kind, data)
        elif kind in _REQUESTS:
            self._take_request(ident, kind, data, message.additional)
        else:
            self.respond(ident, PushRefusal.UNKNOWN)

    def _take_unidirectional(self, kind: int, data: bytes) -> None:
        try:
            if kind == DsoType.UNSUBSCRIBE:
                answer = self.answers.pop(read_unsubscribe(data), None)
                if answer is not None:
                    self._publisher.unsubscribe(self, answer)
            else:
                self._reconfirm(read_reconfirm(data))
        except WireError:
            raise _Fatal from None

    def _reconfirm(self, doubted: Reconfirm) -> None:
        answer = self._publisher.followed(self, doubted.owner, doubted.rtype)
        if answer is not None:
            self._publisher.doubt(answer)

    def _take_request(self, ident: int, kind: int, data: bytes, additional: tuple[Tlv, ...]) -> None:
        try:
            asked = read_keepalive(data) if kind == DsoType.KEEPALIVE else read_subscribe(data)
        except WireError:
            self.respond(ident, PushRefusal.MALFORMED)
            return
        if not self._established:
            refusal = self._publisher.add_session(self)
            if refusal is not None:
                self.respond(ident, refusal)
                return
            self._established = True
            self._active_at = self._publisher.time()
            self.connection.hold_open(PATIENCE)
        if isinstance(asked, Subscribe):
            self._subscribe(ident, asked, additional)
        elif not self.answers and self._publisher.time() - self._active_at > PATIENCE:
            raise _Fatal  # nothing but keepalives: the inactivity timeout (RFC 8490 section 6.4.1)
        else:
            self.write([write_dso_response(ident, Rcode.NOERROR, keepalive_tlv(TIMEOUTS))])

    def _subscribe(self, ident: int, subscribe: Subscribe, additional: tuple[Tlv, ...]) -> None:
        if not self._is_of_the_viewer(additional):
            self.respond(ident, PushRefusal.MALFORMED)
            return
        qname, qtype, qclass = subscribe
        if ident in self.answers or self._publisher.followed(self, qname, qtype) is not None:
            raise _Fatal  # the same id or question twice (RFC 8765 sections 6.2.1)
        if qclass != RRClass.IN or qtype in _ANY:
            self.respond(ident, PushRefusal.TYPE)
            return
        refusal = self._publisher.subscribe(self, ident, qname, qtype)
        if refusal is not None:
            self.respond(ident, refusal)

    def _is_of_the_viewer(self, additional: tuple[Tlv, ...]) -> bool:
        """Take the Node's name of the session's first SUBSCRIBE. False for a later one with another name."""
        named = [data for kind, data in additional if kind == DsoType.NODE_NAME]
        node_name = named[0] if len(named) == 1 and is_subdomain(named[0].decode("latin-1")) else b""
        if not self._named:
            self._named = True
            self.viewer = self.viewer._replace(node_name=node_name)
        return node_name == self.viewer.node_name
