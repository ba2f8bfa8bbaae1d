"""Asking a server's admin address, as `topodns explain` does, on both event loops."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.support.event_loops import PATIENCE, either_loop, eventually
from topodns.cli import admin_client
from topodns.cli.admin_client import AdminError, fetch
from topodns.logs import LONGEST
from topodns.net.http_server.messages import HttpReply, HttpRequest
from topodns.net.http_server.server import AdminServer
from topodns.net.sockets import open_tcp

pytestmark = either_loop

Address = tuple[str, int]


def echo(request: HttpRequest) -> HttpReply:
    return HttpReply(200, f"{request.path} {dict(request.arguments)}".encode())


@contextlib.asynccontextmanager
async def replying_without_end(begin: bytes, part: bytes) -> AsyncIterator[Address]:
    """A server that sends `begin`, then a `part` each 10 ms until its only client goes."""
    ended = asyncio.Event()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client whose deadline is short may be gone before its request is read. RuntimeError: uvloop's for a write
        # to a transport that has closed.
        with contextlib.suppress(ConnectionError, RuntimeError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(begin)
            while True:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        ended.set()

    (sock,) = open_tcp("127.0.0.1", 0)
    at: Address = sock.getsockname()
    async with await asyncio.start_server(reply, sock=sock):
        yield at
        await ended.wait()


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Address]:
    (sock,) = open_tcp("127.0.0.1", 0)
    at: Address = sock.getsockname()
    server = AdminServer()
    routes = {
        "/explain": echo,
        "/bad": lambda request: HttpReply(400, b"no name is given\n"),
        "/moved": lambda request: HttpReply(302, b"", headers=(("Location", "/explain"),)),
        "/empty": lambda request: HttpReply(503, b""),
        "/hostile": lambda request: HttpReply(400, b"\x1b[2J" + 1000 * b"x"),
    }
    server.listen(at, [sock], routes)
    try:
        yield at
    finally:
        server.close()
        await eventually(lambda: server.connections == 0)


async def fetched(at: Address, path: str, **arguments: str) -> bytes:
    return await asyncio.to_thread(fetch, f"{at[0]}:{at[1]}", path, arguments)


async def test_fetch_gives_the_body_for_a_path_and_arguments(loop_name: str) -> None:
    async with serving() as at:
        body = await fetched(at, "/explain", name="web.example", client="10.0.0.1 & more")
        arguments = {"name": "web.example", "client": "10.0.0.1 & more"}
        assert body.decode() == f"/explain {arguments}"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (
            "/nothing",
            r"^not found: 127\.0\.0\.1:[0-9]+ has no /nothing; expected the `ready` address of a topodns, ",
        ),
        ("/bad", "no name is given"),
        ("/empty", "does not answer /empty, but 503"),
        pytest.param("/moved", "does not answer /moved, but 302", id="a redirect is not followed"),
    ],
)
async def test_fetch_prints_the_reply_of_a_server_that_refuses(loop_name: str, path: str, problem: str) -> None:
    async with serving() as at:
        with pytest.raises(AdminError, match=problem):
            await fetched(at, path)


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_a_head_that_arrives_octet_by_octet_has_the_deadline_of_the_whole_reply(
    loop_name: str, begin: bytes
) -> None:
    async with replying_without_end(begin, b"X") as (host, port):
        with pytest.raises(AdminError, match="timed out"):
            await asyncio.to_thread(fetch, f"{host}:{port}", "/explain", {}, 0.2)


async def test_the_error_of_a_server_is_one_printable_line_of_bounded_length(loop_name: str) -> None:
    async with serving() as at:
        with pytest.raises(AdminError) as refused:
            await fetched(at, "/hostile")
        assert str(refused.value).startswith("\\x1b[2Jxxx")
        assert len(str(refused.value)) == LONGEST


@pytest.mark.parametrize("server", ["127.0.0.1:1", "127.0.0.1:port", "no host", "[::1"])
def test_fetch_reports_a_server_that_does_not_answer(loop_name: str, server: str) -> None:
    with pytest.raises(AdminError, match=r"^no answer from "):
        fetch(server, "/explain", {})


@pytest.mark.parametrize("port", [0, 65536, 99999])
def test_fetch_names_a_port_that_is_none(loop_name: str, port: int) -> None:
    with pytest.raises(AdminError, match=rf"^no answer from 127.0.0.1:{port}: {port} is no port, expected 1 to 65535;"):
        fetch(f"127.0.0.1:{port}", "/explain", {})


async def test_fetch_says_so_where_something_else_than_http_answers(loop_name: str) -> None:
    async def answer_in_other_words(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await reader.readline()
        writer.close()

    (sock,) = open_tcp("127.0.0.1", 0)
    at = sock.getsockname()
    async with await asyncio.start_server(answer_in_other_words, sock=sock):
        with pytest.raises(AdminError, match="no answer from"):
            await fetched(at, "/explain")


@pytest.mark.parametrize("status", ["200 OK", "400 Bad"])
async def test_a_reply_without_an_end_is_bounded_in_time(loop_name: str, status: str) -> None:
    async with replying_without_end(f"HTTP/1.1 {status}\r\n\r\n".encode(), b"x") as (host, port):
        with pytest.raises(AdminError, match="timed out"):
            await asyncio.to_thread(fetch, f"{host}:{port}", "/explain", {}, 0.2)


async def test_a_reply_without_an_end_is_bounded_in_size(loop_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_client, "MAX_BODY", 10_000)
    async with replying_without_end(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 5000) as (host, port):
        with pytest.raises(AdminError, match="the reply is larger than 0 MB"):
            await asyncio.to_thread(fetch, f"{host}:{port}", "/explain", {}, PATIENCE)
