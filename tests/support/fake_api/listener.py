"""The listening socket and the connections: opened, served one request after the other, cut."""

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.fake_api.exchange import COMPRESS_FROM, Request, Response

# HTTP/1.1 as a server speaks it, over asyncio's streams: requests in, whole or chunked responses out.


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    url = urlsplit(target)
    return Request(method, unquote(url.path), dict(parse_qsl(url.query, keep_blank_values=True)), headers, body)


@dataclass(slots=True)
class HttpResponse:
    """A Response on a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    gzip: bool = False  # whether the client takes it
    _compressor: "zlib._Compress | None" = field(default=None, init=False)

    async def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self._head(status, {"Content-Length": str(len(body)), **(headers or {})})
        self.writer.write(body)
        await self.writer.drain()

    async def begin(self, first_write: int = 0) -> None:
        headers = {"Transfer-Encoding": "chunked"}
        if self.gzip and first_write > COMPRESS_FROM:
            self._compressor = zlib.compressobj(1, wbits=31)
            headers["Content-Encoding"] = "gzip"
        self._head(200, headers)
        await self.writer.drain()

    async def write(self, data: bytes) -> None:
        self._chunk(self._compressor.compress(data) if self._compressor is not None else data)
        await self.writer.drain()

    async def end(self) -> None:
        if self._compressor is not None:
            self._chunk(self._compressor.flush())
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def break_framing(self) -> None:
        self.writer.write(b"no length\r\n")
        await self.writer.drain()

    @asynccontextmanager
    async def on_hangup(self, act: Callable[[], object]) -> AsyncIterator[None]:
        end = asyncio.create_task(self.reader.read(1), name="hangup")
        end.add_done_callback(lambda task: None if task.cancelled() else act())
        try:
            yield
        finally:
            end.cancel()
            await asyncio.gather(end, return_exceptions=True)

    def abort(self) -> None:
        self.writer.transport.abort()

    def _chunk(self, data: bytes) -> None:
        if data:
            self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        given = {"Cache-Control": "no-cache, private", "Content-Type": "application/json", **headers}
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {given[name]}" for name in given)]
        self.writer.write("\r\n".join((*lines, "", "")).encode("latin-1"))


Answer = Callable[[Request, Response], Awaitable[None]]


class Front(Protocol):
    """Where the server is reached. All methods are for the thread of its loop."""

    @property
    def url(self) -> str: ...

    async def open(self) -> None:
        """Take requests."""

    async def close(self) -> None:
        """Take no more requests and cut all connections, as the end of a process does."""

    def cut(self) -> None:
        """End every connection with a TCP reset."""


class HttpFront:
    """A listening socket, over TLS where it is given a certificate and its key."""

    def __init__(
        self, answer: Answer, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        self._host = host
        self._port = port  # 0 until it is listening for the first time, then the one it got
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self._port}"

    async def open(self) -> None:
        if self._server is None:
            sock = socket.create_server((self._host, self._port), backlog=1024)
            self._port = sock.getsockname()[1]
            self._server = await asyncio.start_server(self._serve, sock=sock, ssl=self._tls)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def cut(self) -> None:
        for task, writer in self._connections.items():
            sock = writer.get_extra_info("socket")
            with suppress(OSError):  # it is closed already
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            writer.transport.abort()
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        # asyncio does so itself only where the listening socket was made with a protocol number.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                while (request := await read_request(reader)) is not None:
                    await self._answer(request, HttpResponse(reader, writer, request.gzip))
        finally:
            del self._connections[task]
            writer.close()
