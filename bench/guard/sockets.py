"""Stand-ins for the event loop and the sockets of clients, in memory, for the program's own functions.

They never wait, and their clock stands still: so the same tape makes the same calls. Only queries to an upstream use
real sockets, on loopback, where a datagram has arrived when `send` returns.
"""

import asyncio
import mmap
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from topodns.dns.tcp_framing import MessageReader, frame
from topodns.net.mmsg import DatagramCounts

SLOTS: Final = 64
SLOT: Final = 4352  # octets: a datagram, behind its client's address and port
NOW: Final = 1000.0  # seconds, on every clock
PORT: Final = 40_000  # of every client

_DATA: Final = 128
_WITHIN: Final = 10.0  # seconds until a datagram on loopback has arrived, at most


class StandingTimer:
    """A timer of a clock that stands still."""

    def cancel(self) -> None:
        """Nothing to cancel."""


class StandingLoop(asyncio.AbstractEventLoop):
    """An event loop that runs callbacks only when a method is called. Implements `query.deferred.Timers`, too."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[..., object]] = {}
        self.streams: list[UpstreamStream] = []
        self._soon: list[tuple[Callable[..., object], tuple[object, ...]]] = []
        self.later: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    def time(self) -> float:
        return NOW

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        raise AssertionError(context)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> "asyncio.Task[Any]":
        return asyncio.Task(coro, loop=self, name=name)

    async def create_connection(self, protocol_factory: Any, *args: Any, **_: object) -> Any:
        """A connection to the upstream over TCP, open at once."""
        connection = protocol_factory()
        stream = UpstreamStream(connection)
        self.streams.append(stream)
        connection.connection_made(stream)
        return stream, connection

    def call_at(self, when: float, callback: Callable[..., object], *args: object, **_: object) -> Any:
        return self.call_later(when - NOW, callback, *args)

    def call_later(self, delay: float, callback: Callable[..., object], *args: object, **_: object) -> Any:
        self.later.append((callback, args))
        return StandingTimer()

    def call_what_is_later(self) -> None:
        """Call what `call_later` has queued, as if its time had come."""
        later, self.later = self.later, []
        for callback, args in later:
            callback(*args)

    def call_soon(self, callback: Callable[..., object], *args: object, **_: object) -> Any:
        self._soon.append((callback, args))
        return StandingTimer()

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: object) -> None:
        self.readers[fd] = callback

    def remove_reader(self, fd: Any) -> bool:
        return self.readers.pop(fd, None) is not None

    @property
    def has_work(self) -> bool:
        """Whether `call_soon` has queued anything."""
        return bool(self._soon)

    def turn(self) -> None:
        """Call what `call_soon` has queued."""
        soon, self._soon = self._soon, []
        for callback, args in soon:
            callback(*args)


class MemoryBatch:
    """A `net.udp.Batch` without a socket: `queue` brings datagrams, `replies` has what was sent."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, SLOTS * SLOT)
        self.starts = tuple(range(_DATA, SLOTS * SLOT, SLOT))
        self.max_reply = SLOT - _DATA
        self.address_span = (-8, -4)
        self.counts = DatagramCounts()
        self.ports: list[int] = []
        self.replies: list[bytes] = []
        self._arrived: list[int] = []

    def queue(self, datagrams: Sequence[tuple[bytes, bytes]]) -> None:
        """Put up to SLOTS (packed IPv4 address, message) pairs into the slots, for the next `receive`."""
        for start, (client, message) in zip(self.starts, datagrams, strict=False):
            self.memory[start - 8 : start - 2] = client + PORT.to_bytes(2, "big")
            self.memory[start : start + len(message)] = message
        self._arrived = [len(message) for _, message in datagrams]
        self.ports = [PORT] * len(datagrams)

    def receive(self) -> list[int]:
        arrived, self._arrived = self._arrived, []
        return arrived

    def send(self, lengths: Sequence[int]) -> None:
        spans = zip(self.starts, lengths, strict=False)
        self.replies += [self.memory[start : start + length] for start, length in spans if length]

    def peer(self, slot: int) -> object:
        return slot

    def send_to(self, replies: Sequence[tuple[object, bytes]]) -> None:
        self.replies += [reply for _, reply in replies]

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self.memory.close()


class MemoryTransport(asyncio.Transport):
    """The transport of a client's TCP connection: keeps what is written."""

    def __init__(self, client: bytes) -> None:
        super().__init__({"peername": (socket.inet_ntoa(client), PORT)})
        self.written: list[bytes] = []

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """No limit."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Without effect: the server under test reads only when it is called."""

    def resume_reading(self) -> None:
        """Without effect."""


class UpstreamStream(asyncio.Transport):
    """The transport of a connection to the upstream, and the upstream at its other end."""

    def __init__(self, connection: asyncio.Protocol) -> None:
        super().__init__({"socket": self})
        self.connection = connection
        self._reader = MessageReader()
        self._written: list[bytes] = []

    def setsockopt(self, *_: object) -> None:
        """No options."""

    def pause_reading(self) -> None:
        """Without effect: the connection reads only when it is called."""

    def resume_reading(self) -> None:
        """Without effect."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        """Nothing is open."""

    close = abort

    def replies(self) -> bytes:
        """The replies to the queries written so far, framed, in one piece."""
        written, self._written = b"".join(self._written), []
        return b"".join(frame(_reply_to(message)) for message in self._reader.receive_data(written))


class Upstream:
    """A DNS server on loopback that answers when it is called: one address record, with a TTL of 300 seconds."""

    def __init__(self) -> None:
        self._sock = socket.socket(type=socket.SOCK_DGRAM)
        self._sock.bind(("127.0.0.1", 0))
        self._sock.settimeout(_WITHIN)
        self.port: int = self._sock.getsockname()[1]

    def answer(self, number: int, epoll: int) -> None:
        """Answer so many queries, and wait until the replies are at the sockets of this epoll (a descriptor)."""
        for _ in range(number):
            message, peer = self._sock.recvfrom(4096)
            self._sock.sendto(_reply_to(message), peer)
        with select.epoll.fromfd(os.dup(epoll)) as waiting:
            deadline = time.monotonic() + _WITHIN
            while len(waiting.poll(0.1, SLOTS)) < number:
                assert time.monotonic() < deadline, "a datagram on loopback was lost"

    def close(self) -> None:
        self._sock.close()


def _reply_to(message: bytes) -> bytes:
    """The reply of the upstream to a query: one address record."""
    question = message[12 : message.index(b"\0", 12) + 5]
    record = b"\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\7"
    return message[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + question + record
