"""A TcpListener in this process that answers each message with itself reversed, and its clients; also over TLS."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from tests.support.event_loops import PATIENCE
from topodns.dns.tcp_framing import frame
from topodns.net.socket_memory import Socket
from topodns.net.sockets import open_tcp
from topodns.net.tcp import TcpListener
from topodns.net.tcp_limits import TcpLimits
from topodns.query.deferred import Outcome
from topodns.query.query_sample import QuerySample
from topodns.query.session import SessionConnection


@dataclass
class Seen:
    """The questions of a listener. Each is answered with itself reversed."""

    questions: list[tuple[bytes, bytes, int]] = field(default_factory=list)
    awaited: list[Outcome[bytes | None]] = field(default_factory=list)  # of questions that end in "later", in order
    takes: float = 0.0  # seconds of work for an answer

    def answer(self, data: bytes, address: bytes, port: int) -> bytes | Outcome[bytes | None] | None:
        self.questions.append((data, address, port))
        end = time.monotonic() + self.takes
        while time.monotonic() < end:
            pass
        if data.endswith(b"later"):
            self.awaited.append(Outcome())
            return self.awaited[-1]
        return None if data.endswith(b"silence") else data[::-1]


@dataclass
class Server:
    listener: TcpListener
    seen: Seen
    address: tuple[str, int]
    sample: QuerySample


DSO = b"\0\1\x30" + bytes(9)  # a message of which only the opcode matters here


@dataclass
class Session:
    """A session that begins with the first message, and gives it back."""

    connection: SessionConnection
    exchanged: int = 0
    is_closed: bool = False

    def receive(self, message: bytes) -> list[bytes]:
        self.connection.hold_open(5.0)
        return [message]

    def query_exchanged(self) -> None:
        self.exchanged += 1

    def farewell(self) -> list[bytes]:
        return [b"farewell"]

    def closed(self) -> None:
        self.is_closed = True


@contextlib.asynccontextmanager
async def serving(
    limits: TcpLimits | None = None,
    host: str = "127.0.0.1",
    sessions: list[Session] | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Server]:
    """`sessions`: those of connections that send a DSO message are added; None: there are none."""

    def open_session(connection: SessionConnection) -> Session:
        assert sessions is not None
        sessions.append(Session(connection))
        return sessions[-1]

    (sock,) = open_tcp(host, 0)
    address, seen, sample = sock.getsockname()[:2], Seen(), QuerySample()
    listener = TcpListener(
        sock,
        seen.answer,
        limits,
        open_session=None if sessions is None else open_session,
        sample=sample,
        tls=tls,
    )
    await listener.start(asyncio.get_running_loop())
    try:
        yield Server(listener, seen, address, sample)
    finally:
        await listener.close()


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, *messages: bytes) -> list[bytes]:
        self.writer.write(b"".join(map(frame, messages)))
        return [await self.reply() for _ in messages]

    async def reply(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            size = int.from_bytes(await self.reader.readexactly(2), "big")
            return await self.reader.readexactly(size)

    async def is_closed(self) -> bool:
        """Whether the server ends the connection, having sent nothing more."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read(1) == b""
            except ConnectionError:
                return True


@contextlib.asynccontextmanager
async def client_of(server: Server, source: str = "", tls: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    local = (source, 0) if source else None
    reader, writer = await asyncio.open_connection(*server.address, local_addr=local, ssl=tls)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def socket_of(server: Server) -> Socket:
    """That of the only connection."""
    (connection,) = server.listener.clients.connections
    return connection._socket
