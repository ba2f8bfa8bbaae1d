"""The listening socket and the connections: opened, served one request after the other, cut."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from tests.support.fake_api.exchange import Request, Response
from tests.support.fake_api.http import HttpResponse, read_request

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
