"""The server's side of one DSO session (RFC 8490): messages in, messages out, and what they mean to the publisher.

A session begins with the first request that is not refused. No I/O and no clock: the connection sends the messages, and
the publisher gives the time.
"""

import logging
from typing import Final

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
from topodns.dns.push_messages import Subscribe, read_reconfirm, read_subscribe, read_unsubscribe
from topodns.dns.rrtype import Rcode, RRClass, RRType
from topodns.dns.wire_reader import WireError
from topodns.dnsserver.push.answers import MINUTE, Subscriber
from topodns.dnsserver.push.publisher import Publisher
from topodns.plugins.push import PushRefusal, SessionEnd
from topodns.query.session import SessionConnection

log = logging.getLogger(__name__)


TIMEOUTS: Final = SessionTimeouts(inactivity=15_000, keepalive=15_000)  # milliseconds
PATIENCE: Final = 2 * TIMEOUTS.keepalive / 1000  # seconds, of the server (RFC 8490 sections 6.4.1, 6.5.1)

_REQUESTS: Final = frozenset({DsoType.KEEPALIVE, DsoType.SUBSCRIBE})
_UNIDIRECTIONAL: Final = frozenset({DsoType.UNSUBSCRIBE, DsoType.RECONFIRM})
_FORBIDDEN: Final = frozenset({DsoType.RETRY_DELAY, DsoType.ENCRYPTION_PADDING, DsoType.PUSH})
_ANY: Final = frozenset({RRType.ANY, RRType.OPT, RRType.AXFR, RRType.IXFR})


class _Fatal(Exception):
    """The client has broken the protocol: the connection is to be aborted (RFC 8490 section 5.3.1)."""


class PushSession(Subscriber):
    """The session of one connection, before and after it is established."""

    def __init__(self, publisher: Publisher, connection: SessionConnection) -> None:
        super().__init__(connection, publisher.counts, publisher.remove_session)
        self._publisher = publisher
        self._active_at = 0.0  # the time of the last message that is no Keepalive, queries and replies included
        self._named = False  # the first SUBSCRIBE has decided about `viewer`

    def receive(self, message: bytes) -> list[bytes] | None:
        """Implements `StatefulSession`. After the session has ended messages are ignored (RFC 8490 section 6.6.1.1)."""
        if self.is_closed:
            return []
        replies: list[bytes] = []
        self.replies = replies
        try:
            self._take(message)
        except _Fatal:
            self.end = SessionEnd.ERROR
            return None
        except Exception:
            log.exception("bug: a DSO message of %d octets", len(message))
            return None
        finally:
            self.replies = None
        return replies

    def query_exchanged(self) -> None:
        """Implements `StatefulSession`."""
        self._active_at = self._publisher.time()

    def farewell(self) -> list[bytes]:
        """Implements `StatefulSession`: a Retry Delay (RFC 8490 section 6.6.1)."""
        if not self.is_established:
            return []
        delay = self._publisher.retry_delay()
        if self.end is SessionEnd.EVICTED:
            delay += MINUTE
        else:
            self.end = SessionEnd.SERVER
        return [write_dso(DsoMessage(0, False, self.last_rcode, retry_delay_tlv(delay)))]

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
        if kind in _UNIDIRECTIONAL and not self.is_established:
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
                doubted = read_reconfirm(data)
                self._publisher.doubt(self, doubted.owner, doubted.rtype)
        except WireError:
            raise _Fatal from None

    def _take_request(self, ident: int, kind: int, data: bytes, additional: tuple[Tlv, ...]) -> None:
        try:
            asked = read_keepalive(data) if kind == DsoType.KEEPALIVE else read_subscribe(data)
        except WireError:
            self.respond(ident, PushRefusal.MALFORMED)
            return
        if not self.is_established:
            refusal = self._publisher.add_session(self)
            if refusal is not None:
                self.respond(ident, refusal)
                return
            self.is_established = True
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
