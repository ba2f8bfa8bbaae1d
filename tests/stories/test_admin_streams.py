"""Replies without an end, such as server-sent events, on real loopback sockets and both event loops."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.support.admin_http import Admin, client_of, serving
from tests.support.event_loops import PATIENCE, either_loop, eventually, run
from topodns.net.http_server.messages import AdminLimits, HttpReply, HttpRequest, HttpStream, Route

pytestmark = either_loop

PART = b"data: " + b"x" * 10_000 + b"\n\n"


@dataclass
class Streams:
    """A route that opens streams, and those that are open."""

    opened: list[HttpStream] = field(default_factory=list)
    ended: list[HttpStream] = field(default_factory=list)
    first: bytes = b"data: first\n\n"

    def route(self, request: HttpRequest) -> HttpStream:
        stream = HttpStream("text/event-stream", (("Cache-Control", "no-store"),), self.ended.append, self.first)
        self.opened.append(stream)
        return stream

    @property
    def routes(self) -> dict[str, Route]:
        return {"/events": self.route, "/health": lambda request: HttpReply(200, b"OK")}


async def open_stream(admin: Admin, version: str = "1.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*admin.at)
    writer.write(b"GET /events HTTP/%s\r\nHost: localhost\r\n\r\n" % version.encode())
    return reader, writer


async def read_until(reader: asyncio.StreamReader, end: bytes) -> bytes:
    async with asyncio.timeout(PATIENCE):
        return await reader.readuntil(end)


def story(name: str, scenario: Callable[[Streams, Admin], object], limits: AdminLimits | None = None) -> None:
    async def whole() -> None:
        streams = Streams()
        async with serving(streams.routes, limits) as admin:
            result = scenario(streams, admin)
            assert asyncio.iscoroutine(result)
            await result

    run(name, whole())


def test_parts_arrive_as_they_are_sent_after_the_head_and_the_first_one(loop_name: str) -> None:
    async def scenario(streams: Streams, admin: Admin) -> None:
        reader, writer = await open_stream(admin)
        head = await read_until(reader, b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        for line in (b"Content-Type: text/event-stream", b"Cache-Control: no-store", b"Transfer-Encoding: chunked"):
            assert line in head
        assert await read_until(reader, b"first\n\n\r\n") == b"d\r\ndata: first\n\n\r\n"
        for number in (1, 2):
            await eventually(lambda: streams.opened[0].ready)
            assert streams.opened[0].send(b"data: %d\n\n" % number)
            assert not streams.opened[0].send(b"data: too early\n\n")
            assert await read_until(reader, b"\n\n\r\n") == b"9\r\ndata: %d\n\n\r\n" % number
        assert admin.server.counts.streams == 1
        writer.close()
        await eventually(lambda: streams.ended == streams.opened)
        assert (admin.server.counts.streams, admin.server.counts.streams_dropped) == (0, 0)
        streams.opened[0].send(b"data: to nobody\n\n")
        await asyncio.sleep(0.05)

    story(loop_name, scenario)


def test_a_head_request_has_no_stream(loop_name: str) -> None:
    async def scenario(streams: Streams, admin: Admin) -> None:
        async with client_of(admin) as client:
            client.request("/events", "HEAD")
            status, headers, body = await client.response()
            assert (status, headers["content-type"], body) == (200, "text/event-stream", b"")
            assert streams.ended == streams.opened != []
            assert (await client.ask("/health"))[1] == b"OK"

    story(loop_name, scenario)


def test_an_old_client_gets_the_parts_without_chunks(loop_name: str) -> None:
    async def scenario(streams: Streams, admin: Admin) -> None:
        reader, writer = await open_stream(admin, "1.0")
        assert b"chunked" not in await read_until(reader, b"\r\n\r\n")
        assert await read_until(reader, b"\n\n") == b"data: first\n\n"
        writer.close()

    story(loop_name, scenario)


def test_a_client_that_does_not_read_is_dropped_and_holds_one_part_until_then(loop_name: str) -> None:
    async def scenario(streams: Streams, admin: Admin) -> None:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, admin.at)
        await asyncio.get_running_loop().sock_sendall(sock, b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually(lambda: bool(streams.opened) and streams.opened[0].ready)
        sent = 0
        while streams.opened[0] not in streams.ended:
            sent += streams.opened[0].send(PART)
            await asyncio.sleep(0.001)
        assert sent * len(PART) < 1 << 20  # what the kernel takes
        assert (admin.server.counts.streams, admin.server.counts.streams_dropped) == (0, 1)
        sock.close()

    story(loop_name, scenario, AdminLimits(reply=0.3))


def test_a_client_that_sends_anything_more_is_dropped(loop_name: str) -> None:
    async def scenario(streams: Streams, admin: Admin) -> None:
        reader, writer = await open_stream(admin)
        await read_until(reader, b"first\n\n\r\n")
        writer.write(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually(lambda: streams.ended == streams.opened)
        assert admin.server.counts.streams_dropped == 1
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        writer.close()

    story(loop_name, scenario)


def test_a_stream_whose_sender_is_silent_is_dropped(loop_name: str) -> None:
    async def scenario(streams: Streams, admin: Admin) -> None:
        _, writer = await open_stream(admin)
        await eventually(lambda: streams.ended == streams.opened != [])
        writer.close()

    story(loop_name, scenario, AdminLimits(idle=0.1))


def test_the_sender_and_the_end_of_the_listener_end_a_stream(loop_name: str) -> None:
    async def scenario(streams: Streams, admin: Admin) -> None:
        first, second = await open_stream(admin), await open_stream(admin)
        await eventually(lambda: len(streams.opened) == 2 and all(stream.ready for stream in streams.opened))
        streams.opened[0].close()
        await eventually(lambda: len(streams.ended) == 1)
        admin.server.close()
        await eventually(lambda: len(streams.ended) == 2)
        for reader, writer in (first, second):
            assert (await reader.read()).endswith(b"first\n\n\r\n0\r\n\r\n")
            writer.close()

    story(loop_name, scenario)


def test_streams_beyond_the_limit_of_connections_make_room_for_requests(loop_name: str) -> None:
    async def scenario(streams: Streams, admin: Admin) -> None:
        held = [await open_stream(admin) for _ in range(3)]
        await eventually(lambda: admin.server.counts.streams == 3)
        async with client_of(admin) as client:
            assert (await client.ask("/health"))[1] == b"OK"
        assert admin.server.counts.streams == 2
        for _, writer in held:
            writer.close()

    story(loop_name, scenario, AdminLimits(connections=3))


def test_refusals_are_counted_by_status(loop_name: str) -> None:
    async def scenario(streams: Streams, admin: Admin) -> None:
        for octets in (
            b"POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET /events?" + b"a=&" * 81 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET /events?" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
            b"nonsense\r\n\r\n",
        ):
            async with client_of(admin) as client:
                client.send(octets)
                client.finish()
                assert b"HTTP/1.1 4" in await client.everything()
        assert admin.server.counts.refused == {405: 1, 404: 1, 400: 2, 431: 1}
        assert streams.opened == []

    story(loop_name, scenario)
