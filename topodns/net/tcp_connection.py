"""One client's TCP connection: pipelined queries in, replies out (RFC 7766).

A connection reads a few KiB at a time, answers when the schedule of all connections gives it a turn, writes several
replies at once, and stops reading while queries wait or its client does not read. All connections of a listener share
its `TcpClients`.
"""

import asyncio
import ssl
from collections.abc import Callable
from itertools import islice
from typing import Final, cast

from topodns.dns.addresses import packed_address
from topodns.dns.tcp_framing import frame
from topodns.dns.wire_format import HEADER_SIZE
from topodns.net.socket_memory import Socket, give_up_after, kernel_memory, octets_to_read, reset_on_close
from topodns.net.tcp_limits import Admission, ConnectionDeadline, TcpCounts, TcpIntake, TcpLimits, TcpSchedule
from topodns.query.deferred import DeferredReply
from topodns.query.query_sample import QuerySample
from topodns.query.session import OpenSession, StatefulSession

_LONG: Final = 2048  # octets of a reply that takes long to make
_LEFT_TO_THE_KERNEL: Final = 4 << 10  # octets of replies still unread at a close; a closed socket itself takes as much
UNDELIVERED: Final = "undelivered"  # in `get_extra_info` of a transport: octets that it has and did not deliver
_OPCODE, _DSO = 0x78, 0x30  # in the third octet (RFC 8490 section 5.4)

Answer = Callable[[bytes, bytes, int], bytes | DeferredReply | None]
"""(query, packed client address, port) -> the reply, None for no reply, or a deferred one. Must not raise."""


class TcpClients:
    """The open connections of one listener, and what they share: functions, limits, counters, read buffer.

    `unfinished`: octets of incomplete queries, beyond `TcpLimits.begun` of each connection; `unread`: upper bound of
    the octets of replies that clients have not read. Each connection adds its own, and later subtracts them.
    """

    def __init__(
        self,
        answer: Answer,
        limits: TcpLimits,
        schedule: TcpSchedule,
        open_session: OpenSession | None,
        sample: QuerySample,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answer = answer
        self.tls = tls  # of new connections; None: they are not encrypted
        self.sample = sample
        self.open_session = open_session  # for DSO messages; None: they go to `answer`, as queries do
        self.limits = limits
        self.counts = TcpCounts()
        self.schedule = schedule
        # asyncio fills it and the connection reads it within one callback.
        self.read_buffer = memoryview(bytearray(limits.read_size))
        self.unfinished = 0
        self.unread = 0
        self.connections: Admission[TcpConnection] = Admission(TcpConnection.is_idle, _closes_at)
        self.emptied: asyncio.Event | None = None  # once the listener closes: set when no connection is left

    def admit(self, connection: "TcpConnection") -> bool:
        """Admit a new connection, perhaps by evicting an older one, and count it until `leave`. False: refused."""
        closing = self.emptied is not None  # it was accepted in the last turn before the close
        verdict = self.connections.judge(connection.address, self.limits)
        if closing or not verdict.admitted:
            self.counts.refused += 1
            return False
        if (evicted := verdict.evicted) is not None:
            self.counts.evicted += 1
            self.connections.remove(evicted.address, evicted)
            evicted.evict()
        self.counts.accepted += 1
        self.connections.add(connection.address, connection)
        return True

    def leave(self, connection: "TcpConnection") -> None:
        """Stop counting a lost connection; no effect on a refused or evicted one. The last one sets `emptied`."""
        removed = self.connections.remove(connection.address, connection)
        if removed and self.emptied is not None and not self.connections:
            self.emptied.set()

    def bound_unread(self) -> None:
        """If unread replies may exceed the limit, measure them, and drop the connections with the most.

        Drops until three quarters of the limit are left, so that the next replies do not cause another measurement at
        once.
        """
        if self.unread <= self.limits.unread:
            return
        for connection in self.connections:
            connection.measure_unread()
        if self.unread <= (enough := self.limits.unread * 3 // 4):
            return
        for connection in sorted(self.connections, key=lambda each: each.unread, reverse=True):
            self.counts.over_memory += 1
            connection.drop()
            if self.unread <= enough:
                return


class TcpConnection(asyncio.BufferedProtocol):
    """One client's connection.

    `_waiting`: queries read and not yet handled; while there are any, reading stops. `_awaited`: number of queries with
    a deferred reply, which is sent as soon as it exists, in any order (RFC 7766 section 7).
    """

    def __init__(self, clients: TcpClients, loop: asyncio.AbstractEventLoop) -> None:
        self.address = b""
        self.deadline = ConnectionDeadline(clients.limits, loop)
        self.port = 0
        self._clients = clients
        self._limits = clients.limits
        self._loop = loop
        self._intake = TcpIntake(clients.limits.queries)
        self._waiting: list[bytes] = []
        self._awaited = 0
        self._deferred: list[bytes] = []  # framed replies to write in the loop's next turn
        self._unfinished = 0  # this connection's share of `TcpClients.unfinished`
        self.unread = 0  # likewise of `TcpClients.unread`, kernel buffers included
        self._client_reads = True
        self._reading = True
        self._scheduled = False  # queued in the schedule
        self._ended = False  # FIN is sent; open until the client has read everything
        self._session: StatefulSession | None = None  # from the first DSO message on
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if peer is None:  # reset before it was accepted
            self.abort()
            return
        self.address, self.port = packed_address(peer[0]), peer[1]
        self._transport.set_write_buffer_limits(high=self._limits.write_buffer)
        if not self._clients.admit(self):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting = []
        self._set_unfinished(0)
        self._set_unread(0)
        self._clients.leave(self)
        # The session refers to this connection. Without the cycle both are freed at once; the garbage collector would
        # free none that was there at a `gc.freeze`.
        session, self._session = self._session, None
        if session is not None:
            session.closed()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._clients.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        intake = self._intake
        if intake.finishing and intake.is_over:
            return
        if self._answer_lone(nbytes):
            return
        pending = intake.reader.pending
        messages = intake.receive(bytes(self._clients.read_buffer[:nbytes]))
        left = intake.reader.pending
        self.deadline.data_read(left, pending > 0 and not messages)
        if not self._set_unfinished(max(0, left - self._limits.begun)):
            self._clients.counts.over_memory += 1
            self._set_unfinished(0)  # at once, or others that are read in this turn would be over the limit, too
            self.abort()
            return
        if messages:
            self._waiting += intake.limited(messages)
            if intake.finishing:
                self.deadline.fixed = True
                self._set_unfinished(0)
            self._schedule_or_read()

    def _answer_lone(self, nbytes: int) -> bool:
        """Answer the query, if the read is exactly one and may be answered at once. Returns whether it was.

        Has the same effect as the rest of `buffer_updated`, which is for any number of queries, with a third of its
        calls: most clients wait for the reply before they send the next query.
        """
        if self._scheduled or not self._reading or self._awaited + 1 >= self._limits.in_flight:
            return False
        message = self._intake.lone_message(self._clients.read_buffer, nbytes)
        if message is None or not (began := self._clients.schedule.began()):
            return False
        clients = self._clients
        self.deadline.data_read(0, continued=False)
        answer = clients.answer if clients.open_session is None else self._answer_or_receive
        reply = answer(message, self.address, self.port)
        sample = clients.sample
        if began >= sample.until:
            sample.redraw(began)
        if sample.left > 1:
            sample.left -= 1
        else:
            sample.take(began, message, self.address, reply)
        if isinstance(reply, bytes):
            self._write(frame(reply))
        elif reply is not None:
            self._await(reply)
        clients.schedule.ended(began)
        return True

    def eof_received(self) -> bool:
        """Handle a client that has closed its half after its last query. Returns whether our half stays open.

        It stays open until all queries are answered and the client has read the replies: data that the kernel
        still sends after a close would not be counted in `unread`.
        """
        self._ignore_rest()
        if self._waiting or self._awaited or self._deferred:
            return True
        return not self._end()

    def pause_writing(self) -> None:
        self._client_reads = False
        self.deadline.buffer_full()
        self._set_reading(False)

    def resume_writing(self) -> None:
        self._client_reads = True
        self.deadline.replies_written()
        self._schedule_or_read()

    def measure_unread(self) -> None:
        """Measure the octets of replies that the client has not read, in the process and in the kernel.

        Closes the connection if FIN has been sent and the client has read all replies. Received octets in the kernel
        count if reading has stopped because the client does not read.
        """
        if self._transport.is_closing() or not (self.unread or self._ended):
            return
        kept = kernel_memory(self._socket)
        received = 0 if self._client_reads else kept.received
        self._set_unread(self._transport.get_write_buffer_size() + kept.sent + received)
        if self._ended and self.unread <= _LEFT_TO_THE_KERNEL:
            self._transport.close()

    def is_idle(self) -> bool:
        """Whether closing it now loses no reply. An incomplete message does not count.

        No whole query waits, nothing unread is in the socket, and the client has read all replies, but for what the
        kernel still delivers.
        """
        if self._waiting or self._awaited or self._deferred or self._transport.is_closing():
            return False
        return self._all_read() and not self._octets_to_read()

    def evict(self) -> None:
        """Close in favour of a newer connection: with FIN if this one is idle, else as by `drop`."""
        if self.is_idle():
            self._ignore_rest()
            self._transport.close()
        else:
            self.drop()

    def drop(self) -> None:
        """Close at once and discard unread replies, also those in the kernel (then with a reset)."""
        if self.unread and not self._transport.is_closing():
            reset_on_close(self._socket)
        self._set_unread(0)
        self.abort()

    def abort(self) -> None:
        self._transport.abort()

    def finish(self) -> None:
        """The listener closes: close once messages that have arrived or begun are answered, or at the deadline."""
        self.deadline.listener_closes(awaited=self._awaited > 0)
        if not self._intake.finishing and not self._transport.is_closing():
            self._intake.arrived = self._octets_to_read()
        self._intake.finishing = True
        self.deadline.fixed = True
        self._clients.connections.release(self.address, self)
        self._close_if_done()

    def _ignore_rest(self) -> None:
        """Read nothing more. The connection closes once nothing is left to answer, or at its present deadline."""
        self._intake.drop_rest()
        self._set_unfinished(0)
        self.deadline.fixed = True

    def _close_if_done(self) -> None:
        """Close if finishing and nothing is left to answer; only our half, until the client has read everything."""
        unfinished = self._waiting or self._awaited or self._deferred or not self._intake.is_over
        if unfinished or self._ended or self._transport.is_closing():
            return
        if self._session is not None:
            self._write(b"".join(map(frame, self._session.farewell())))
        if self._end():
            self._transport.close()

    def _end(self) -> bool:
        """Whether to close now: the client has read everything. If not, send FIN, once; a later sweep closes."""
        if self._all_read():
            return True
        if not self._ended:
            self._ended = True
            self._set_reading(False)
            self._transport.write_eof()
        return False

    def _all_read(self) -> bool:
        """Whether the client has read everything but at most _LEFT_TO_THE_KERNEL octets."""
        if self.unread > _LEFT_TO_THE_KERNEL:
            self.measure_unread()
        return self.unread <= _LEFT_TO_THE_KERNEL

    @property
    def _socket(self) -> Socket:
        return cast(Socket, self._transport.get_extra_info("socket"))

    def _octets_to_read(self) -> int:
        """The received octets that this connection has not taken; with TLS a few more, of its framing."""
        return octets_to_read(self._socket) + int(self._transport.get_extra_info(UNDELIVERED, 0))

    def _set_unfinished(self, octets: int) -> bool:
        """Set this connection's `unfinished` octets. Returns whether those of all connections are within the limit."""
        self._clients.unfinished += octets - self._unfinished
        self._unfinished = octets
        return self._clients.unfinished <= self._limits.unfinished

    def _set_unread(self, octets: int) -> None:
        self._clients.unread += octets - self.unread
        self.unread = octets

    def _write(self, data: bytes) -> None:
        """Write framed replies. If all connections then have too many unread octets, closes some, perhaps this one."""
        size = len(data)
        if not size or self._transport.is_closing():
            return
        self._transport.write(data)
        clients = self._clients
        self.unread += size
        clients.unread += size
        if clients.unread > self._limits.unread:
            clients.bound_unread()

    def _schedule_or_read(self) -> None:
        """Schedule waiting queries, which may answer them at once, and resume reading if none waits, else pause it.

        Schedules and reads only while the client reads and fewer than `in_flight` replies are awaited. No effect while
        the connection is in the schedule.
        """
        if self._scheduled:
            return
        if self._waiting and self._client_reads and self._awaited < self._limits.in_flight:
            self._scheduled = True
            self._clients.schedule.serve(self.address, self.answer_some)
        if self._reading is not self._may_read:
            self._set_reading(not self._reading)

    @property
    def _may_read(self) -> bool:
        return not self._waiting and self._client_reads and self._awaited < self._limits.in_flight

    def answer_some(self, messages: int, until: float) -> bool:
        """As `tcp_scheduler.AnswerSome`; all replies that exist now leave with one write.

        Returns False, too, while the client does not read or `in_flight` replies are awaited.
        """
        if self._transport.is_closing():
            self._scheduled = False
            return False
        if self._client_reads:
            self._write(b"".join(self._answers(messages, until)))
        if self._waiting and self._client_reads and self._awaited < self._limits.in_flight:
            return True
        self._scheduled = False
        if not self._reading:
            self._set_reading(self._may_read)
        if self._intake.finishing:
            self._close_if_done()
        return False

    def _await(self, reply: DeferredReply) -> None:
        self._awaited += 1
        reply.deliver_to(TcpConnection._add_deferred, self)

    def _add_deferred(self, reply: bytes | None) -> None:
        """Queue a deferred reply, None for none."""
        self._awaited -= 1
        if self._session is not None:
            self._session.query_exchanged()
        self._queue(b"" if reply is None else frame(reply))

    def _queue(self, framed: bytes) -> None:
        """Queue replies. Those of one turn of the loop are written together in the next."""
        if not self._deferred:
            self._loop.call_soon(self._write_deferred)
        self._deferred.append(framed)

    def _write_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        if self._transport.is_closing():
            return
        self._write(b"".join(deferred))
        if self._client_reads:
            self.deadline.replies_written()
        self._schedule_or_read()
        self._close_if_done()

    def _answers(self, most: int, until: float) -> list[bytes]:
        """Answer waiting queries, at least one, until the clock shows `until` or the replies fill `write_buffer`.

        At most `most`, and at most as many as `in_flight` allows to await. Returns the framed replies; deferred ones
        are written later, by `_write_deferred`.
        """
        clients, address, port, clock = self._clients, self.address, self.port, self._clients.schedule.clock
        answer = clients.answer if clients.open_session is None else self._answer_or_receive
        replies: list[bytes] = []
        taken, left = 0, self._limits.write_buffer
        sample = clients.sample
        if (now := clock()) >= sample.until:
            sample.redraw(now)
        passed = sample.left  # queries until the next one that is sampled
        for message in islice(self._waiting, min(most, self._limits.in_flight - self._awaited)):
            taken += 1
            if not message:  # no DNS message is empty: ignore the rest of the stream
                self._waiting.clear()
                self._ignore_rest()
                break
            reply = answer(message, address, port)
            passed -= 1
            if not passed:
                sample.take(clock(), message, address, reply)
                passed = sample.left
            if reply is None:
                pass
            elif not isinstance(reply, bytes):
                self._await(reply)
            else:
                replies.append(frame(reply))
                size = len(reply)
                left -= size
                if left <= 0:
                    break
                if taken & 7 and size < _LONG:  # reading the clock costs as much as a reply from the packet cache
                    continue
            if clock() >= until:
                break
        sample.left = passed
        del self._waiting[:taken]
        return replies

    def _answer_or_receive(self, message: bytes, address: bytes, port: int) -> bytes | DeferredReply | None:
        """The reply to a query, as an `Answer`; a DSO message goes to the session, whose messages are queued."""
        if len(message) < HEADER_SIZE or message[2] & _OPCODE != _DSO:
            if self._session is not None:
                self._session.query_exchanged()
            return self._clients.answer(message, address, port)
        if self._session is None:
            assert self._clients.open_session is not None
            self._session = self._clients.open_session(self)
        replies = self._session.receive(message)
        if replies is None:
            self._waiting.clear()
            reset_on_close(self._socket)
            self.abort()
        elif replies:
            self._queue(b"".join(map(frame, replies)))
        return None

    def send(self, framed: bytes) -> bool:
        """Implements `SessionConnection`: messages of the session that reply to none."""
        if self._ended or self._transport.is_closing():
            return True
        if not self._client_reads:
            self._clients.counts.over_memory += 1
            self.drop()
            return False
        self._queue(framed)
        return True

    def hold_open(self, seconds: float) -> None:
        """Implements `SessionConnection`. The kernel, too, closes it: after so long without an acknowledgement."""
        self._clients.connections.hold(self.address, self)
        self.deadline.hold_open(seconds)
        give_up_after(self._socket, seconds)

    def _set_reading(self, wanted: bool) -> None:
        if wanted == self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self.deadline.reading_resumes(self._intake.reader.pending)
            self._transport.resume_reading()
        else:
            if self._client_reads:
                self.deadline.reading_stops()
            self._transport.pause_reading()


def _closes_at(connection: TcpConnection) -> float:
    return connection.deadline.at
