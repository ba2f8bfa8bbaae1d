"""The admin HTTP server on a loopback socket in this process, and a client for it that can also be rude."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import h11

from tests.support.event_loops import PATIENCE, eventually
from topodns.net.http_server.messages import AdminLimits, Route
from topodns.net.http_server.server import AdminServer
from topodns.net.sockets import open_tcp


@dataclass
class Admin:
    server: AdminServer
    at: tuple[str, int]


@contextlib.asynccontextmanager
async def serving(routes: Mapping[str, Route], limits: AdminLimits | None = None) -> AsyncIterator[Admin]:
    (sock,) = open_tcp("127.0.0.1", 0)
    at = sock.getsockname()
    server = AdminServer(limits or AdminLimits())
    server.listen(at, [sock], routes)
    try:
        yield Admin(server, at)
    finally:
        server.close()
        await eventually(lambda: server.connections == 0)


class Client:
    """An HTTP/1.1 client that can also be rude."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT)

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    def request(self, target: str, method: str = "GET", body: bytes = b"", **headers: str) -> None:
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        named = [("Host", "admin"), ("Content-Length", str(len(body))), *headers.items()]
        sent = self._http.send(h11.Request(method=method, target=target, headers=named)) or b""
        if body:
            sent += self._http.send(h11.Data(data=body)) or b""
        self.send(sent + (self._http.send(h11.EndOfMessage()) or b""))

    async def response(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next response."""
        status, headers, body = 0, {}, b""
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                status = event.status_code
                headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return status, headers, body

    async def ask(self, target: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        self.request(target, method, body, **headers)
        status, _, content = await self.response()
        return status, content

    def finish(self) -> None:
        """Say that no more will be sent."""
        self._writer.write_eof()

    async def everything(self) -> bytes:
        """All that comes until the server ends the connection."""
        parts = []
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while part := await self._reader.read(1 << 20):
                    parts.append(part)
        return b"".join(parts)

    async def _event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(PATIENCE):
                self._http.receive_data(await self._reader.read(65536))
        return event


@contextlib.asynccontextmanager
async def client_of(admin: Admin, source: str = "127.0.0.1") -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection(*admin.at, local_addr=(source, 0))
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
