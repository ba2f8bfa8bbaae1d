"""An HTTP/1.1 server that handles a connection as a story scripts it, over TLS or without."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from tests.support.certificates import Certificates, Pair


@dataclass(frozen=True, slots=True)
class Seen:
    """One request."""

    connection: int  # counted from 1
    line: str  # `GET /path HTTP/1.1`
    headers: Mapping[str, str]  # names in small letters
    body: bytes
    client: str  # common name of the client's certificate, "" for none

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


Answer = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Served:
    """A running server."""

    url: str
    answer: Answer
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    closed: int = 0  # connections that are over

    def tokens(self) -> list[str]:
        return [request.token for request in self.seen]


def text_response(status: int, body: str = "", **headers: str) -> bytes:
    fields = {"Content_Length": str(len(body.encode())), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{lines}\r\n{body}".encode()


def replies(*responses: bytes) -> Answer:
    """Answers with these in turn, and with the last one from then on."""
    waiting = list(responses)

    async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(waiting.pop(0) if len(waiting) > 1 else waiting[0])
        await writer.drain()

    return answer


async def silence(_: Seen, __: asyncio.StreamWriter) -> None:
    """No answer at all."""


def server_side(
    certificates: Certificates, asks_for_clients: bool = False, server: Pair | None = None
) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates.ca)
    server = server or certificates.server
    context.load_cert_chain(server.certificate, server.key)
    context.verify_mode = ssl.CERT_OPTIONAL if asks_for_clients else ssl.CERT_NONE
    return context


@asynccontextmanager
async def serving(answer: Answer, context: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    """A server on a loopback port of its own, with TLS where there is a context."""
    served = Served("", answer)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        task = asyncio.ensure_future(_converse(served, served.connections, reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    served.url = f"{'https' if context else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield served
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _converse(served: Served, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while (request := await _request(number, reader, writer)) is not None:
            served.seen.append(request)
            await served.answer(request, writer)
    except OSError:
        pass  # the client went away; that is what some stories are about
    finally:
        served.closed += 1
        writer.transport.abort()


async def _request(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(number, line, headers, body, _client_name(writer.get_extra_info("peercert")))


def _client_name(certificate: object) -> str:
    if not isinstance(certificate, dict):
        return ""
    return next((value for part in certificate.get("subject", ()) for name, value in part if name == "commonName"), "")
