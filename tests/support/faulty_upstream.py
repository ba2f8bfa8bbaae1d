"""A DNS server on loopback with the faults that a story wants, over UDP, TCP and TLS.

It runs in a thread of its own, so stories with an event loop and stories with processes can use it. Its action on
a message is a `Behaviour`; those with unusual octets are here, under the name of the fault.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, cast

from topodns.dns.tcp_framing import MessageReader, frame

ANSWER: Final = "192.0.2.1"  # what every name has for an address here

_LINGER_RESET: Final = struct.pack("ii", 1, 0)


class Channel(Protocol):
    """The way back to the client."""

    def send(self, message: bytes) -> None: ...

    def send_raw(self, octets: bytes) -> None:
        """Over a stream: these octets as they are, without a length before them."""

    def send_from(self, host: str, message: bytes) -> None:
        """Over UDP: from another port, of this address."""

    def close(self) -> None: ...

    def reset(self) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One message, and the way back."""

    message: bytes
    transport: str  # "udp" or "tcp"
    port: int  # of the client
    host: str
    connection: int  # counted from 1; 0 over UDP
    channel: Channel = field(repr=False)


class Act(NamedTuple):
    """A call to make, so many seconds from now."""

    do: Callable[[], None]
    after: float = 0.0


Behaviour = Callable[[Asked], Sequence[Act]]


@dataclass
class BadUpstream:
    """A running server. `behaviour` may be replaced at any time."""

    behaviour: Behaviour
    host: str
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0  # accepted so far
    open_connections: int = 0

    def take(self, asked: Asked) -> None:
        self.asked.append(asked)
        loop = asyncio.get_running_loop()
        for act in self.behaviour(asked):
            if act.after:
                loop.call_later(act.after, act.do)
            else:
                act.do()


@contextlib.contextmanager
def bad_upstream(
    behaviour: Behaviour, host: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None
) -> Iterator[BadUpstream]:
    """A server on UDP and TCP, or with a context on TLS alone; port 0 is any that is free on both."""
    server = BadUpstream(behaviour, host)
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()

    async def serve() -> None:
        async with _listening(server, port, context):
            stop = asyncio.Event()
            started.append((asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    def in_thread() -> None:
        try:
            asyncio.run(serve())
        finally:
            ready.set()

    thread = threading.Thread(target=in_thread, name="bad upstream")
    thread.start()
    ready.wait()
    try:
        assert started, "the bad upstream did not start"
        yield server
    finally:
        for loop, stop in started:
            loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextlib.asynccontextmanager
async def _listening(server: BadUpstream, port: int, context: ssl.SSLContext | None) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    tcp_socket, udp_socket = _sockets(server.host, port)
    server.port = tcp_socket.getsockname()[1]
    streams: set[_Stream] = set()
    tcp = await loop.create_server(lambda: _Stream(server, streams), sock=tcp_socket, ssl=context)
    udp: asyncio.BaseTransport | None = None
    if context is None:
        udp, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(server), sock=udp_socket)
    else:
        udp_socket.close()
    try:
        yield
    finally:
        loop.remove_reader(tcp_socket)  # asyncio leaks the connections that it is accepting at a close
        await _turns()
        tcp.close()
        if udp is not None:
            udp.close()
        for stream in tuple(streams):
            stream.transport.abort()
        await _turns()


async def _turns() -> None:
    """The turns of the loop that a connection needs from accept to connection_made, or a socket from abort to close."""
    for _ in range(5):
        await asyncio.sleep(0)


def _sockets(host: str, port: int) -> tuple[socket.socket, socket.socket]:
    """Both on the same port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        # Only where the protocol is named does asyncio switch Nagle's delay off.
        tcp, udp = (
            socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP),
            socket.socket(family, socket.SOCK_DGRAM),
        )
        try:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind((host, port))
            udp.bind((host, tcp.getsockname()[1]))
        except OSError as reason:
            tcp.close()
            udp.close()
            if port or reason.errno != errno.EADDRINUSE:
                raise
            continue
        return tcp, udp


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: BadUpstream) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        back = _WayBack(self._transport, addr)
        self._server.take(Asked(data, "udp", addr[1], addr[0], 0, back))


@dataclass(frozen=True, slots=True)
class _WayBack:
    transport: asyncio.DatagramTransport
    peer: tuple[Any, ...]

    def send(self, message: bytes) -> None:
        self.transport.sendto(message, self.peer)

    def send_raw(self, octets: bytes) -> None:
        self.send(octets)

    def send_from(self, host: str, message: bytes) -> None:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((host, 0))
            sock.sendto(message, self.peer)

    def close(self) -> None:
        """There is nothing to close."""

    reset = close


class _Stream(asyncio.Protocol):
    def __init__(self, server: BadUpstream, streams: set["_Stream"]) -> None:
        self._server, self._streams = server, streams
        self._reader = MessageReader()
        self._number = 0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._server.connections += 1
        self._server.open_connections += 1
        self._number = self._server.connections
        self._streams.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open_connections -= 1
        self._streams.discard(self)

    def data_received(self, data: bytes) -> None:
        host, port = self.transport.get_extra_info("peername")[:2]
        for message in self._reader.receive_data(data):
            if self.transport.is_closing():
                return
            self._server.take(Asked(message, "tcp", port, host, self._number, self))

    def send(self, message: bytes) -> None:
        self.send_raw(frame(message))

    def send_raw(self, octets: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(octets)

    def send_from(self, host: str, message: bytes) -> None:
        raise AssertionError(f"a stream has one source, not also {host}")

    def close(self) -> None:
        self.transport.close()

    def reset(self) -> None:
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
        self.transport.abort()
