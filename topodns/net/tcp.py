"""Queries over TCP: one listener per socket, pipelined (RFC 7766), with a number and a deadline for everything.

A connection reads at most 16 KiB at a time, answers all complete messages of it with one write, and stops reading
while its client does not read.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address
from itertools import islice
from typing import Final, cast

from topodns.dns.framing import MessageReader, frame
from topodns.resolve.course import Outcome

BACKLOG: Final = 1024  # connections not yet accepted: a short queue costs the others SYN retransmits

Answer = Callable[[bytes, bytes, int], bytes | Outcome[bytes | None] | None]
"""(message, packed address, port) -> the reply, None for silence, or the outcome that will be one. Must not raise."""


@dataclass(frozen=True, slots=True)
class TcpLimits:
    """What clients may take of one listener (RFC 7766 section 6.2)."""

    connections: int = 1000
    per_address: int = 100  # connections
    in_flight: int = 100  # queries of one connection answered in one turn of the loop, or waiting for an upstream
    idle: float = 10.0  # seconds without a message
    write: float = 10.0  # seconds without the client reading on
    queries: int = 0  # of one connection, which is closed when they are answered; 0: no limit
    message: float = 3.0  # seconds for a whole message once begun, however its octets arrive
    awaited: float = 5.0  # seconds that closing waits for what upstreams have been asked
    write_buffer: int = 256 << 10  # octets of unread replies of one connection, then it is not read either
    read_size: int = 16 << 10  # octets read at once, and what each connection may keep of an unfinished message
    unfinished: int = 4 << 20  # octets that all connections together may keep beyond that
    unread: int = 16 << 20  # octets of replies that all clients together leave unread before the slowest have to go
    sweep: float = 0.25  # seconds between two looks at the deadlines


@dataclass(slots=True)
class TcpCounts:
    """What one listener has seen since it was opened."""

    accepted: int = 0
    refused: int = 0  # connections over a limit, closed at once
    timed_out: int = 0
    over_memory: int = 0  # closed because `unfinished` was used up


class TcpListener:
    """Answers the connections of one bound socket."""

    def __init__(self, sock: socket.socket, answer: Answer, limits: TcpLimits | None = None) -> None:
        self.answer = answer
        self.limits = limits or TcpLimits()
        self.counts = TcpCounts()
        # One for all connections: asyncio fills it and hands it over within one call.
        self.read_buffer = memoryview(bytearray(self.limits.read_size))
        self.unfinished = 0  # octets kept beyond each connection's own share
        self.unread = 0  # octets of replies that wait for their clients
        self._sock = sock
        self._connections: set[_Connection] = set()
        self._per_address: Counter[bytes] = Counter()
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Event | None = None

    def __len__(self) -> int:
        """Open connections."""
        return len(self._connections)

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Accept from now on."""
        self._server = await loop.create_server(lambda: _Connection(self, loop), sock=self._sock, backlog=BACKLOG)
        self._schedule_sweep(loop)

    def swap(self, answer: Answer, limits: TcpLimits | None = None) -> None:
        """Answer from this from the next message on: a reload, without a connection lost. New limits are for new ones.

        The read buffer keeps its size.
        """
        self.answer = answer
        if limits is not None:
            self.limits = replace(limits, read_size=self.limits.read_size)

    async def close(self) -> None:
        """Stop accepting, answer what has arrived, give begun messages the rest of their time, and close."""
        if self._server is None:
            self._sock.close()
            return
        self._server.close()
        for _ in range(2):  # the loop polls its sockets after the first turn and reads them in the second
            await asyncio.sleep(0)
        for connection in tuple(self._connections):
            connection.finish()
        self._emptied = asyncio.Event()
        if self._connections:
            await self._emptied.wait()  # by the deadlines at the latest
        await self._server.wait_closed()
        if self._sweep is not None:
            self._sweep.cancel()

    def admit(self, connection: "_Connection") -> bool:
        """Whether a new connection is within the limits; then it is counted until `leave`."""
        closing = self._emptied is not None  # it was accepted in the last turn before the close
        full = len(self._connections) >= self.limits.connections
        if closing or full or self._per_address[connection.address] >= self.limits.per_address:
            self.counts.refused += 1
            return False
        self.counts.accepted += 1
        self._connections.add(connection)
        self._per_address[connection.address] += 1
        return True

    def leave(self, connection: "_Connection") -> None:
        """The connection is gone, admitted or not."""
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._per_address[connection.address] -= 1
        if not self._per_address[connection.address]:
            del self._per_address[connection.address]
        if self._emptied is not None and not self._connections:
            self._emptied.set()

    def _schedule_sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep = loop.call_later(self.limits.sweep, self._sweep_deadlines, loop)

    def _sweep_deadlines(self, loop: asyncio.AbstractEventLoop) -> None:
        """One timer for all connections: one per query would cost more than the query."""
        now = loop.time()
        for connection in tuple(self._connections):
            connection.note_unread()
            if connection.deadline <= now:
                self.counts.timed_out += 1
                connection.abort()
        if self.unread > self.limits.unread:
            self._drop_slowest()
        self._schedule_sweep(loop)

    def _drop_slowest(self) -> None:
        too_much = self.unread - self.limits.unread
        for connection in sorted(self._connections, key=lambda each: each.unread, reverse=True):
            if too_much <= 0:
                return
            too_much -= connection.unread
            self.counts.over_memory += 1
            connection.abort()


class _Connection(asyncio.BufferedProtocol):
    """One client's stream.

    `_waiting` are messages read and not yet looked at; while there are any, nothing is read. `_awaited` counts those
    whose answer comes from elsewhere: it goes out when it is there, in whatever order (RFC 7766 section 7).
    """

    def __init__(self, listener: TcpListener, loop: asyncio.AbstractEventLoop) -> None:
        self.address = b""
        self.deadline = 0.0  # on the loop's clock
        self._port = 0
        self._listener = listener
        self._limits = listener.limits
        self._loop = loop
        self._reader = MessageReader()
        self._waiting: list[bytes] = []
        self._taken = 0  # messages so far
        self._awaited = 0
        self._late: list[bytes] = []  # framed replies that go out with the loop's next turn
        self._unfinished = 0  # this connection's part of the listener's
        self.unread = 0  # likewise
        self._client_reads = True
        self._reading = True
        self._finishing = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if peer is None:  # reset before it was accepted
            self.abort()
            return
        self.address, self._port = _packed(peer[0]), peer[1]
        self._extend(self._limits.idle)
        self._transport.set_write_buffer_limits(high=self._limits.write_buffer)
        if not self._listener.admit(self):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting = []
        self._account(0)
        self._listener.unread -= self.unread
        self.unread = 0
        self._listener.leave(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._listener.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        unbroken = self._reader.pending > 0
        messages = self._reader.receive_data(bytes(self._listener.read_buffer[:nbytes]))
        self._set_deadline(continued=unbroken and not messages)
        if not self._account(max(0, self._reader.pending - self._limits.read_size)):
            self._listener.counts.over_memory += 1
            self.abort()
            return
        if messages:
            self._take(messages)
            self._answer_waiting()

    def _take(self, messages: list[bytes]) -> None:
        """Messages up to the limit are answered; whoever wants more opens another connection, and is spread anew."""
        if self._limits.queries:
            messages = messages[: self._limits.queries - self._taken]
            self._taken += len(messages)
            self._finishing = self._finishing or self._taken == self._limits.queries
        self._waiting += messages

    def eof_received(self) -> bool:
        """A client may close its half when it has asked all: what is not answered by now keeps the other half open."""
        self._finishing = True
        self._reader = MessageReader()
        return bool(self._waiting or self._awaited or self._late)

    def pause_writing(self) -> None:
        self._client_reads = False
        self._extend(self._limits.write)
        self._read_on(False)

    def resume_writing(self) -> None:
        self._client_reads = True
        self._extend(self._limits.idle)
        self._answer_waiting()

    def note_unread(self) -> None:
        """Account for the replies that the client has not read."""
        if not self._transport.is_closing():
            waiting = self._transport.get_write_buffer_size()
            self._listener.unread += waiting - self.unread
            self.unread = waiting

    def abort(self) -> None:
        self._transport.abort()

    def finish(self) -> None:
        """Close once what was begun is done, at the latest when a message's time is over, or an awaited answer's."""
        longest = self._limits.awaited if self._awaited else self._limits.message
        self._extend(min(longest, self.deadline - self._loop.time()))
        self._finishing = True
        self._close_if_done()

    def _close_if_done(self) -> None:
        unfinished = self._waiting or self._awaited or self._late or self._reader.pending
        if self._finishing and not unfinished:
            self._transport.close()

    def _set_deadline(self, continued: bool) -> None:
        """A message's time runs from its first octet (a slow drip gains none); between messages it is the idle time."""
        if self._reader.pending == 0:
            self._extend(self._limits.idle)
        elif not continued:
            self._extend(self._limits.message)

    def _extend(self, seconds: float) -> None:
        if not self._finishing:
            self.deadline = self._loop.time() + seconds

    def _account(self, unfinished: int) -> bool:
        """Whether so many octets beyond the own share may be kept."""
        self._listener.unfinished += unfinished - self._unfinished
        self._unfinished = unfinished
        return self._listener.unfinished <= self._limits.unfinished

    def _answer_waiting(self) -> None:
        """Answer the next messages with one write; go on in the loop's next turn if that was not all."""
        if self._transport.is_closing() or not self._client_reads:
            return
        replies = self._take_answers()
        if replies:
            self._transport.write(b"".join(replies))
        self._read_on(self._client_reads and not self._waiting and not self._full)
        if self._waiting and self._client_reads and not self._full:
            self._loop.call_soon(self._answer_waiting)
        self._close_if_done()

    @property
    def _full(self) -> bool:
        """So many answers are awaited that no further message is looked at."""
        return self._awaited >= self._limits.in_flight

    def _await(self, outcome: Outcome[bytes | None]) -> None:
        self._awaited += 1
        outcome.then(self._take_late)

    def _take_late(self, reply: bytes | None) -> None:
        """Replies that came from upstreams in one turn of the loop are written together, in the next."""
        if not self._late:
            self._loop.call_soon(self._write_late)
        self._awaited -= 1
        self._late.append(b"" if reply is None else frame(reply))

    def _write_late(self) -> None:
        late, self._late = b"".join(self._late), []
        if self._transport.is_closing():
            return
        if late:
            self._transport.write(late)
            if not self._client_reads and self._is_too_much():
                self._listener.counts.over_memory += 1
                self.abort()
                return
            if self._client_reads:
                self._extend(self._limits.idle)
        self._answer_waiting()

    def _is_too_much(self) -> bool:
        """Whether a client that does not read has more answers waiting than there is room for."""
        self.note_unread()
        return self.unread > self._limits.write_buffer and self._listener.unread > self._limits.unread

    def _take_answers(self) -> list[bytes]:
        """Framed replies to the messages that one turn may take, which are then no longer waiting."""
        answer, address, port = self._listener.answer, self.address, self._port
        replies: list[bytes] = []
        taken, room = 0, self._limits.write_buffer
        for message in islice(self._waiting, self._limits.in_flight - self._awaited):
            taken += 1
            if not message:  # no DNS message is empty: whatever follows is not worth reading
                self._waiting.clear()
                self._reader = MessageReader()
                self._finishing = True
                break
            reply = answer(message, address, port)
            if isinstance(reply, Outcome):
                self._await(reply)
            elif reply is not None:
                replies.append(frame(reply))
                room -= len(reply)
                if room <= 0:
                    break
        del self._waiting[:taken]
        return replies

    def _read_on(self, wanted: bool) -> None:
        if wanted == self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


def _packed(host: str) -> bytes:
    """4 or 16 octets; an IPv4-mapped IPv6 address is the IPv4 address it stands for."""
    address = ip_address(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.packed
    return address.packed
