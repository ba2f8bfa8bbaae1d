"""Limits for DNS clients over TCP, and the rules that apply them; and the fair schedule of their queries. No I/O.

| class | decides |
|---|---|
| `Admission` | whether a new connection is admitted, and which open one is closed for it |
| `ConnectionDeadline` | until when a connection stays open |
| `TcpIntake` | which messages of a connection are taken |
| `tcp_connection.TcpClients.bound_unread` | which clients are dropped that do not read their replies |

`net.tcp_connection` and `net.tcp` act on it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Generic, NamedTuple, TypeVar

from topodns.dns.tcp_framing import PREFIX, MessageReader
from topodns.query.deferred import Timers

_PREFIX_OCTETS: Final = {4: 3, 16: 8}  # by the length of the address: a /24, a /64


@dataclass(frozen=True, slots=True)
class TcpLimits:
    """Limits for the clients of one listener (RFC 7766 section 6.2).

    Above `connections`, `per_prefix` or `per_address` a new connection may evict an open one; see `Admission`.
    `idle`, `message`, `write` and `awaited` set the deadline of a connection; see `ConnectionDeadline`.
    """

    connections: int = 1000
    per_prefix: int = 500  # connections of a /24 of IPv4 or a /64 of IPv6
    per_address: int = 300  # connections
    in_flight: int = 100  # queries of one connection answered in one batch, or waiting for an upstream
    idle: float = 10.0  # seconds without a message
    write: float = 10.0  # seconds for a client whose write buffer is full to read on
    queries: int = 0  # of one connection, which is closed after their replies; 0: no limit
    message: float = 3.0  # seconds from the first octet of a message to its last
    awaited: float = 5.0  # seconds that closing waits for replies of upstreams
    write_buffer: int = 256 << 10  # octets of unread replies of one connection; above, reading from it stops
    read_size: int = 8 << 10  # octets read at once
    begun: int = 16 << 10  # octets of an incomplete message that each connection may keep
    unfinished: int = 4 << 20  # octets beyond `begun` that all connections together may keep
    unread: int = 16 << 20  # octets of unread replies, kernel buffers included; above, the slowest clients are dropped
    sweep: float = 0.25  # seconds between two checks of the deadlines

    def within(self, connections: int) -> "TcpLimits":
        """These limits with at most `connections`; if these are fewer, with those per address and network reduced in
        proportion, to 1 at least.
        """
        if connections >= self.connections:
            return self
        return replace(
            self,
            connections=connections,
            per_prefix=max(1, self.per_prefix * connections // self.connections),
            per_address=max(1, self.per_address * connections // self.connections),
        )


@dataclass(slots=True)
class TcpCounts:
    """Counters of one listener since it was opened, in connections."""

    accepted: int = 0
    refused: int = 0  # connections over a limit, closed at once
    evicted: int = 0  # closed to make room for a newer one
    timed_out: int = 0
    over_memory: int = 0  # closed because `unfinished` or `unread` was used up
    no_tls: int = 0  # closed because the TLS handshake failed, as that of a client without TLS


M = TypeVar("M", bound=Hashable)

Group = dict[M, None]
"""The connections of one client address, in order of their arrival."""


class AdmissionVerdict(NamedTuple, Generic[M]):
    """Whether a new connection is admitted, and the connection to close for it."""

    admitted: bool
    evicted: M | None = None


def prefix_of(address: bytes) -> bytes:
    """The network whose connections share a limit: a /24 of IPv4 (3 octets), a /64 of IPv6 (8 octets)."""
    return address[: _PREFIX_OCTETS[len(address)]]


class Admission(Generic[M]):
    """The open connections of one listener by client address and network, and the one to evict for a new one.

    Addresses are packed, 4 or 16 octets. `is_idle`: whether closing a connection loses no reply to a whole query; an
    incomplete one does not count. `closes_at`: the time at which the listener closes it.

    Connections with a DSO session are held: they count for no limit here, and none is evicted, since sessions have
    limits of their own (`dnsserver.push.clients`). Each began as an ordinary connection, within these limits.
    """

    def __init__(self, is_idle: Callable[[M], bool], closes_at: Callable[[M], float]) -> None:
        self._is_idle = is_idle
        self._closes_at = closes_at
        self._held: dict[M, None] = {}
        self._networks: dict[bytes, dict[bytes, Group[M]]] = {}  # no network and no group is empty
        self._sizes: dict[bytes, int] = {}  # connections of each network
        self._count = 0

    def __len__(self) -> int:
        return self._count + len(self._held)

    def __iter__(self) -> Iterator[M]:
        for network in self._networks.values():
            for group in network.values():
                yield from group
        yield from self._held

    def judge(self, address: bytes, limits: TcpLimits) -> AdmissionVerdict[M]:
        """Whether a new connection from this address is admitted, and which one to evict for it. Changes nothing.

        Within all limits it is admitted, and none is evicted. Otherwise the first limit in this order that is reached
        decides which one is evicted; without such a connection, the new one is refused:

        1. `per_address`: an idle one of the same address.
        2. `per_prefix`: an idle one of the same network. Its addresses are searched from the one with the most
           connections down to those with as many as the new one's. If no idle one is found: a busy one of the address
           with the most, if that has at least two more than the new one's.
        3. `connections`: the same rule, with the networks in place of the addresses (`_of_heaviest_network`).

        Of several connections of one address, the one with the nearest deadline is evicted.
        """
        prefix = prefix_of(address)
        network = self._networks.get(prefix, {})
        group: Group[M] = network.get(address, {})
        if len(group) >= limits.per_address:
            return _closing(self._first_idle([group]))
        size = self._sizes.get(prefix, 0)
        if size >= limits.per_prefix:
            groups = _heaviest_first(network)
            idle = self._first_idle(each for each in groups if len(each) >= len(group))
            return _closing(idle or (self._soonest_first(groups[0])[0] if len(groups[0]) > len(group) + 1 else None))
        if self._count >= limits.connections:
            return _closing(self._of_heaviest_network(size))
        return AdmissionVerdict(admitted=True)

    def add(self, address: bytes, member: M) -> None:
        """Add an open connection from this address."""
        prefix = prefix_of(address)
        self._networks.setdefault(prefix, {}).setdefault(address, {})[member] = None
        self._sizes[prefix] = self._sizes.get(prefix, 0) + 1
        self._count += 1

    def hold(self, address: bytes, member: M) -> None:
        """Hold an open connection; no effect on one that is not open here."""
        if member not in self._held and self.remove(address, member):
            self._held[member] = None

    def release(self, address: bytes, member: M) -> None:
        """Let a held connection count like others again, even above a limit; no effect on one that is not held."""
        if member in self._held:
            del self._held[member]
            self.add(address, member)

    def remove(self, address: bytes, member: M) -> bool:
        """Remove a connection. Returns whether it was open here. `address`: b"" if it was never known."""
        if member in self._held:
            del self._held[member]
            return True
        prefix = prefix_of(address) if address else b""
        network = self._networks.get(prefix, {})
        group: Group[M] = network.get(address, {})
        if member not in group:
            return False
        del group[member]
        if not group:
            del network[address]
        self._sizes[prefix] -= 1
        if not network:
            del self._networks[prefix], self._sizes[prefix]
        self._count -= 1
        return True

    def _of_heaviest_network(self, size: int) -> M | None:
        """The connection to evict for a new one of a network with `size` connections; None: refuse the new one.

        An idle one: the networks are searched from the one with the most connections down to those with `size`, and in
        each all addresses, from the one with the most down. If no idle one is found: a busy one of the network with the
        most, if that has at least `size` + 2.
        """
        heaviest, *others = sorted(self._sizes, key=self._sizes.__getitem__, reverse=True)
        for prefix in (heaviest, *others):
            if self._sizes[prefix] < size:
                break
            if (found := self._first_idle(_heaviest_first(self._networks[prefix]))) is not None:
                return found
        if self._sizes[heaviest] <= size + 1:
            return None
        return self._soonest_first(_heaviest_first(self._networks[heaviest])[0])[0]

    def _first_idle(self, groups: Iterable[Group[M]]) -> M | None:
        members = (member for group in groups for member in self._soonest_first(group))
        return next((member for member in members if self._is_idle(member)), None)

    def _soonest_first(self, group: Group[M]) -> list[M]:
        return sorted(group, key=self._closes_at)


def _heaviest_first(network: dict[bytes, Group[M]]) -> list[Group[M]]:
    return sorted(network.values(), key=len, reverse=True)


def _closing(member: M | None) -> AdmissionVerdict[M]:
    """Admit the new connection in place of `member`; refuse it if `member` is None."""
    return AdmissionVerdict(member is not None, member)


class ConnectionDeadline:
    """The deadline of one connection (RFC 7766 section 6.2.3); the listener's sweep closes connections past theirs.

    | event | deadline, in seconds of TcpLimits from the event |
    |---|---|
    | accepted; a read that leaves no incomplete message; deferred replies written | `idle`, or a DSO session's own |
    | a read that leaves an incomplete message | `message`; unchanged if this message had begun earlier |
    | the server stops reading, to answer what it has read | `idle` |
    | it reads on | `message` if an incomplete message is left, else `idle` |
    | the write buffer is full | `write` |
    | the write buffer has drained | `idle` |
    | a TLS handshake begins | `message` |
    | it has ended | `idle` |
    | the listener closes | `awaited` if replies of upstreams are awaited, else `message`; never later than before |

    Each method sets it for an event of the table, unless it is `fixed`: once a connection is to close as soon as
    nothing is left to answer, its deadline does not change any more.

    The server's own delays count against no client: while it reads nothing no message is late, and where the sweep
    itself comes late, deadlines that are not fixed are postponed by as much.

    `at`: the time on the clock of `timers`.
    """

    __slots__ = ("_limits", "_timers", "at", "fixed")

    def __init__(self, limits: TcpLimits, timers: Timers) -> None:
        self._limits, self._timers = limits, timers
        self.at = timers.time() + limits.idle
        self.fixed = False  # no event changes the deadline: the connection closes as soon as nothing is left to answer

    def data_read(self, pending: int, continued: bool) -> None:
        """Set the deadline after a read: `message` if an incomplete message of `pending` octets is left, `idle` if 0.

        `continued`: the message had begun before this read; then nothing changes, since its deadline counts from its
        first octet, so that a client gains nothing by sending slowly.
        """
        if self.fixed:
            return
        if pending == 0:
            self.at = self._timers.time() + self._limits.idle
        elif not continued:
            self.at = self._timers.time() + self._limits.message

    def reading_stops(self) -> None:
        """Set the deadline to `idle` from now: the rest of a message may have arrived, but is not read."""
        self.replies_written()

    def reading_resumes(self, pending: int) -> None:
        """Set the deadline to `message` from now if an incomplete message of `pending` octets is left, else `idle`."""
        self.data_read(pending, continued=False)

    def handshake_begins(self) -> None:
        """Set the deadline to `message` from now, for the whole TLS handshake."""
        self.data_read(1, continued=False)

    def handshake_ended(self) -> None:
        """Set the deadline to `idle` from now: the client may send queries."""
        self.replies_written()

    def postpone(self, seconds: float) -> None:
        """Set the deadline so much later: the process stood still meanwhile."""
        if not self.fixed:
            self.at += seconds

    def buffer_full(self) -> None:
        """Set the deadline to `write` from now: the write buffer is full."""
        if not self.fixed:
            self.at = self._timers.time() + self._limits.write

    def hold_open(self, seconds: float) -> None:
        """Use another `idle` from now on: that of a DSO session (RFC 8490 section 6)."""
        self._limits = replace(self._limits, idle=seconds)
        self.replies_written()

    def replies_written(self) -> None:
        """Set the deadline to `idle` from now.

        The write buffer has drained, or deferred replies were written to a client that reads.
        """
        if not self.fixed:
            self.at = self._timers.time() + self._limits.idle

    def listener_closes(self, awaited: bool) -> None:
        """Set the deadline to `awaited` from now, or `message` if no replies of upstreams are awaited.

        An earlier deadline stays.
        """
        if not self.fixed:
            longest = self._limits.awaited if awaited else self._limits.message
            self.at = min(self.at, self._timers.time() + longest)


class TcpIntake:
    """The messages that a connection takes: complete ones, up to a number, and none that begin after its end.

    Octets in, messages out; the connection answers them. `queries`: the most messages, 0 for no limit.

    `finishing`: the end has come; messages that have begun are still taken, and those that begin in the next `arrived`
    octets of the stream: when the end came, the kernel had received these already. `reader` keeps the octets of an
    incomplete message.
    """

    __slots__ = ("_queries", "_taken", "arrived", "finishing", "reader")

    def __init__(self, queries: int) -> None:
        self.finishing = False
        self.arrived = 0
        self._queries = queries
        self._taken = 0
        self.reader = MessageReader()

    @property
    def is_over(self) -> bool:
        """Whether no further octet matters."""
        return self.finishing and not (self.reader.pending or self.arrived)

    def lone_message(self, buffer: memoryview, size: int) -> bytes | None:
        """The message, if a read of `size` octets is exactly one, which `receive` would return alone; else None.

        `buffer` begins with the octets read. None, too, if `queries` or `finishing` may apply to the message. The
        intake does not change, so the caller may still give the same octets to `receive`.
        """
        if size <= PREFIX or self.finishing or self._queries or self.reader.pending:
            return None
        return bytes(buffer[PREFIX:size]) if buffer[0] << 8 | buffer[1] == size - PREFIX else None

    def receive(self, octets: bytes) -> list[bytes]:
        """The complete messages after a read, without the first that begins too late and the rest of the stream."""
        pending = self.reader.pending
        messages = self.reader.receive_data(octets)
        return self._begun_in_time(messages, len(octets), pending) if self.finishing else messages

    def limited(self, messages: list[bytes]) -> list[bytes]:
        """Of these messages those within `queries`; with the last one of them the rest of the stream is dropped.

        A client with more queries reconnects, and is load-balanced anew.
        """
        if not self._queries:
            return messages
        messages = messages[: self._queries - self._taken]
        self._taken += len(messages)
        if self._taken == self._queries:
            self.drop_rest()
        return messages

    def drop_rest(self) -> None:
        """Take no further message, neither an incomplete one nor those that the kernel has."""
        self.reader = MessageReader()
        self.arrived = 0
        self.finishing = True

    def _begun_in_time(self, messages: list[bytes], size: int, pending: int) -> list[bytes]:
        """The messages of a read of `size` octets that begin in its first `arrived` octets, or before.

        `pending`: octets of an incomplete message before the read.
        """
        start, accepted = -pending, 0
        for message in messages:
            if start >= self.arrived:
                break
            start += PREFIX + len(message)
            accepted += 1
        if start >= self.arrived:
            self.drop_rest()
        else:
            self.arrived = max(0, self.arrived - size)
        return messages[:accepted]


BUDGET: Final = 0.0005  # seconds of TCP work in a turn
_WINDOW: Final = 2 * BUDGET  # seconds; of each window, BUDGET may be spent without a turn while no connection waits
_ALL: Final = 1 << 16  # messages: more than a connection reads before they are answered
_AT_ONCE: Final = 32  # messages of one connection if others wait; each such batch costs a system call


AnswerSome = Callable[[int, float], bool]
"""Answers messages of one connection that wait: (messages, until) -> whether more wait that it can answer.

At least one if the connection can, at most `messages`, until the clock shows `until`.
"""


class TcpSchedule:
    """Shares the time for TCP equally among client addresses, and that of an address among its connections.

    A limited time in each turn of the event loop, client addresses in round robin. Between two turns the loop polls its
    other sockets, UDP included. All TCP listeners of the process share one schedule.

    `clock`: monotonic seconds above 0, with a resolution fine enough to time a single message.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._addresses: deque[bytes] = deque()  # with waiting connections
        self._waiting: dict[bytes, deque[AnswerSome]] = {}
        self._window = 0.0  # start of the current window
        self._left = 0.0  # seconds of BUDGET left in it

    def serve(self, address: bytes, answer_some: AnswerSome) -> None:
        """Answer waiting messages of a connection: at once if no other waits, up to BUDGET in _WINDOW seconds.

        Those that are left, or all of them otherwise, get answered in turn. The connection must not be in the schedule
        already. `address`: of its client.
        """
        if began := self.began():
            more = answer_some(_ALL, began + self._left)
            self.ended(began)
            if not more:
                return
        self._wait(address, answer_some)

    def began(self) -> float:
        """The time on the clock if messages may be answered at once; 0 if others wait or the window has no time left.

        The caller then calls `ended` with this time.
        """
        if self._addresses:
            return 0.0
        now = self.clock()
        if now - self._window >= _WINDOW:
            self._window, self._left = now, BUDGET
        return now if self._left > 0 else 0.0

    def ended(self, began: float) -> None:
        """Subtract the time since `began` (a result of the method `began`) from the time left in this window."""
        self._left -= self.clock() - began

    def _wait(self, address: bytes, answer_some: AnswerSome) -> None:
        if not self._addresses:
            asyncio.get_running_loop().call_soon(self._take_turn)
        if address not in self._waiting:
            self._waiting[address] = deque()
            self._addresses.append(address)
        self._waiting[address].append(answer_some)

    def _take_turn(self) -> None:
        """Answer for `BUDGET` seconds, and continue in the loop's next turn if more waits."""
        until = self.clock() + BUDGET
        try:
            while self._addresses:
                self._serve_next(until)
                if self.clock() >= until:
                    break
        finally:  # the others still wait, even if one raised
            if self._addresses:
                asyncio.get_running_loop().call_soon(self._take_turn)

    def _serve_next(self, until: float) -> None:
        address = self._addresses.popleft()
        waiting = self._waiting.pop(address)
        answer_some = waiting.popleft()
        alone = not waiting and not self._addresses
        try:
            if answer_some(_ALL if alone else _AT_ONCE, until):
                waiting.append(answer_some)
        finally:
            if waiting:
                self._waiting[address] = waiting
                self._addresses.append(address)
