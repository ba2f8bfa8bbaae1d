"""The admin HTTP on real loopback sockets: its answers, and the requests that it refuses, on both event loops."""

import asyncio
import contextlib
import gc
import logging
import weakref
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

import pytest

from tests.support.admin_http import Admin, Client, client_of
from tests.support.admin_http import serving as served
from tests.support.event_loops import either_loop, eventually, run
from topodns.net.http_server.messages import AdminLimits, HttpReply, HttpRequest, Route

pytestmark = either_loop

LARGE = b"x" * (1 << 20)


def ok(request: HttpRequest) -> HttpReply:
    return HttpReply(200, b"OK")


def echo(request: HttpRequest) -> HttpReply:
    text = f"{request.path} {dict(request.arguments)} {request.peer}"
    return HttpReply(200, text.encode(), "text/plain; version=0.0.4")


def fails(request: HttpRequest) -> HttpReply:
    raise ZeroDivisionError("as bugs do")


ROUTES: Mapping[str, Route] = {
    "/health": ok,
    "/echo": echo,
    "/bug": fails,
    "/large": lambda request: HttpReply(200, LARGE),
    "/empty": lambda request: HttpReply(503, b""),
}


def serving(
    limits: AdminLimits | None = None, routes: Mapping[str, Route] = ROUTES
) -> AbstractAsyncContextManager[Admin]:
    return served(routes, limits)


async def test_a_path_is_answered_by_its_route(loop_name: str) -> None:
    async with serving() as admin, client_of(admin) as client:
        client.request("/echo?name=web.example&type=A&name=second&empty=")
        status, headers, body = await client.response()
        arguments = {"name": "web.example", "type": "A", "empty": ""}
        assert (status, body.decode()) == (200, f"/echo {arguments} 127.0.0.1")
        assert headers == {"content-type": "text/plain; version=0.0.4", "content-length": str(len(body))}


class Later:
    """A route whose replies a test makes."""

    def __init__(self) -> None:
        self.made: list[asyncio.Future[HttpReply]] = []

    def __call__(self, request: HttpRequest) -> asyncio.Future[HttpReply]:
        self.made.append(asyncio.get_running_loop().create_future())
        return self.made[-1]


async def test_a_connection_serves_one_request_after_the_other(loop_name: str) -> None:
    async with serving() as admin, client_of(admin) as client:
        for _ in range(3):
            assert await client.ask("/health") == (200, b"OK")
        assert await client.ask("/empty") == (503, b"")
        assert await client.ask("/large") == (200, LARGE)
        assert admin.server.connections == 1


async def test_head_is_get_without_the_body(loop_name: str) -> None:
    async with serving() as admin, client_of(admin) as client:
        client.request("/health", "HEAD")
        status, headers, body = await client.response()
        assert (status, headers["content-length"], body) == (200, "2", b"")
        assert await client.ask("/health") == (200, b"OK")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
async def test_other_methods_are_not_allowed_and_their_body_is_not_taken(loop_name: str, method: str) -> None:
    async with serving() as admin, client_of(admin) as client:
        client.request("/health", method, b"b" * 100_000)
        status, headers, _ = await client.response()
        assert (status, headers["allow"], headers["connection"]) == (405, "GET, HEAD", "close")
        assert await client.everything() == b""
        async with client_of(admin) as other:
            assert await other.ask("/health") == (200, b"OK")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 404),
        ("/healthz", 404),
        ("/health/", 404),
        ("/health?x=1", 200),
        ("http://elsewhere.example/health", 200),  # RFC 9112 section 3.2.2: the absolute form is to be taken
        ("*", 404),
        ("//[", 400),
        ("/%68ealth", 404),
    ],
)
async def test_a_target_is_a_known_path_or_an_error(loop_name: str, target: str, status: int) -> None:
    async with serving() as admin, client_of(admin) as client:
        assert (await client.ask(target))[0] == status
        assert await client.ask("/health") == (200, b"OK")


def test_a_route_that_fails_costs_one_answer(loop_name: str, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with serving() as admin, client_of(admin) as client:
            assert (await client.ask("/bug"))[0] == 500
            assert await client.ask("/health") == (200, b"OK")

    with caplog.at_level(logging.ERROR):
        run(loop_name, story())
    assert [record.getMessage() for record in caplog.records] == ["bug: /bug"]


async def test_pipelined_requests_are_answered_in_order(loop_name: str) -> None:
    async with serving() as admin, client_of(admin) as client:
        for number in range(3):
            client.send(b"GET /echo?%d HTTP/1.1\r\nHost: admin\r\n\r\n" % number)
        client.send(b"GET /health HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n")
        data = await client.everything()
        assert data.count(b"HTTP/1.1 200 OK\r\n") == 4
        assert data.endswith(b"OK")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /health HTTP/1.0\r\n\r\n", id="HTTP/1.0"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n", id="Connection: close"),
    ],
)
async def test_the_connection_is_closed_behind_the_reply_where_the_client_wants_it(loop_name: str, head: bytes) -> None:
    async with serving() as admin, client_of(admin) as client:
        client.send(head)
        assert (await client.everything()).endswith(b"\r\n\r\nOK")


async def test_a_client_that_is_done_writing_still_gets_its_reply(loop_name: str) -> None:
    async with serving() as admin, client_of(admin) as client:
        client.send(b"GET /large HTTP/1.1\r\nHost: admin\r\n\r\n")
        client.finish()
        assert (await client.everything()).endswith(LARGE)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400", id="TLS"),
        pytest.param(b"GARBAGE\r\n\r\n", b"400", id="no request line"),
        pytest.param(b"GET /health HTTP/1.1\r\n\r\n", b"400", id="no Host"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost: a\r\nHost : b\r\n\r\n", b"400", id="bad header"),
        pytest.param(b"GET /" + b"a" * 9000, b"431", id="endless request line"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 2000, b"431", id="endless headers"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", b"400", id="impossible length"),
    ],
)
async def test_octets_that_are_no_request_are_refused_and_the_connection_closed(
    loop_name: str, data: bytes, status: bytes
) -> None:
    async with serving() as admin, client_of(admin) as client:
        client.send(data)
        assert (await client.everything()).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("pieces", [[], [b"GET /health HTTP/1.1\r\n"], [b"G", b"E", b"T", b" ", b"/"] * 100])
async def test_a_request_must_be_whole_by_its_deadline(loop_name: str, pieces: list[bytes]) -> None:
    async with serving(AdminLimits(request=0.2)) as admin, client_of(admin) as client:
        dripping = asyncio.create_task(drip(client, pieces))
        assert await client.everything() == b""
        dripping.cancel()


async def drip(client: Client, pieces: list[bytes]) -> None:
    for piece in pieces:
        client.send(piece)
        await asyncio.sleep(0.01)


async def test_so_must_the_next_one_on_its_connection(loop_name: str) -> None:
    async with serving(AdminLimits(request=0.2)) as admin, client_of(admin) as client:
        assert await client.ask("/health") == (200, b"OK")
        client.send(b"GET /")
        assert await client.everything() == b""


async def test_an_idle_connection_is_closed_at_its_deadline(loop_name: str) -> None:
    async with serving(AdminLimits(idle=0.1)) as admin, client_of(admin) as client:
        assert await client.ask("/health") == (200, b"OK")
        assert await client.everything() == b""


async def test_beyond_the_limit_the_oldest_connection_makes_room(loop_name: str) -> None:
    async with serving(AdminLimits(connections=2)) as admin:
        async with client_of(admin) as first, client_of(admin) as second, client_of(admin) as third:
            assert await first.everything() == b""
            assert await second.ask("/health") == await third.ask("/health") == (200, b"OK")
        await eventually(lambda: admin.server.connections == 0)
        async with client_of(admin) as client:
            assert await client.ask("/health") == (200, b"OK")


PIPELINED = 60
LARGE_REQUEST = b"GET /large HTTP/1.1\r\nHost: admin\r\n\r\n"


def test_replies_do_not_pile_up_for_a_client_that_does_not_read(loop_name: str) -> None:
    async def story() -> None:
        answered = 0

        def large(request: HttpRequest) -> HttpReply:
            nonlocal answered
            answered += 1
            return HttpReply(200, LARGE)

        async with serving(routes={"/large": large, "/health": ok}) as admin, client_of(admin) as client:
            client.send(LARGE_REQUEST * PIPELINED)
            await eventually(lambda: answered > 0)
            assert answered < PIPELINED // 2  # what the sockets between the two hold
            client.finish()
            async with client_of(admin) as other:
                assert await other.ask("/health") == (200, b"OK")
            await client.everything()
            assert answered == PIPELINED

    run(loop_name, story())


async def test_a_client_that_never_reads_is_given_up(loop_name: str) -> None:
    async with serving(AdminLimits(reply=0.2)) as admin, client_of(admin) as client:
        client.send(LARGE_REQUEST * PIPELINED)
        await eventually(lambda: admin.server.connections == 1)
        await eventually(lambda: admin.server.connections == 0)


async def test_routes_are_replaced_while_a_connection_is_open(loop_name: str) -> None:
    async with serving() as admin, client_of(admin) as client:
        assert await client.ask("/health") == (200, b"OK")
        admin.server.replace_routes(admin.at, {"/ready": ok})
        assert (await client.ask("/health"))[0] == 404
        assert await client.ask("/ready") == (200, b"OK")


async def test_closing_spares_the_listeners_to_keep(loop_name: str) -> None:
    async with serving() as admin:
        admin.server.close(keep=frozenset({admin.at}))
        assert admin.server.addresses == {admin.at}
        async with client_of(admin) as client:
            assert await client.ask("/health") == (200, b"OK")
        admin.server.close()
        assert admin.server.addresses == frozenset()
        with pytest.raises(ConnectionError):
            async with client_of(admin):
                pass


async def test_one_request_is_answered_in_a_turn_of_the_loop(loop_name: str) -> None:
    """Over all connections and listeners together, so that there is a turn for DNS between any two."""
    turn, answered = 0, list[int]()

    def noted(request: HttpRequest) -> HttpReply:
        answered.append(turn)
        return HttpReply(200, b"OK")

    async with (
        serving(routes={"/health": noted}) as admin,
        client_of(admin) as first,
        client_of(admin) as second,
    ):
        for client in (first, second):
            client.send(b"GET /health HTTP/1.1\r\nHost: admin\r\n\r\n" * 100)
        while len(answered) < 200:
            await asyncio.sleep(0)
            turn += 1
    assert len(set(answered)) == 200


async def test_connections_take_turns(loop_name: str) -> None:
    answered: list[str] = []

    def noted(request: HttpRequest) -> HttpReply:
        answered.append(request.path)
        return HttpReply(200, b"OK")

    async with (
        serving(routes={"/many": noted, "/one": noted}) as admin,
        client_of(admin) as many,
        client_of(admin) as one,
    ):
        many.send(b"GET /many HTTP/1.1\r\nHost: admin\r\n\r\n" * 1000)
        await eventually(lambda: bool(answered))
        assert (await one.ask("/one"))[0] == 200
        assert answered.index("/one") < 1000


async def test_the_address_with_the_most_connections_makes_room(loop_name: str) -> None:
    async with serving(AdminLimits(connections=3)) as admin, contextlib.AsyncExitStack() as stack:
        alone = await stack.enter_async_context(client_of(admin, "127.0.0.9"))
        assert await alone.ask("/health") == (200, b"OK")
        crowd = [await stack.enter_async_context(client_of(admin)) for _ in range(5)]
        assert await crowd[-1].ask("/health") == (200, b"OK")
        assert await alone.ask("/health") == (200, b"OK")
        assert await crowd[0].everything() == b""


async def test_a_reply_that_has_to_be_made_first_is_sent_when_it_is(loop_name: str) -> None:
    later = Later()
    made = later.made
    async with (
        serving(routes={"/later": later, "/health": ok}) as admin,
        client_of(admin) as waiting,
        client_of(admin) as other,
        client_of(admin) as third,
    ):
        for client in (waiting, third):
            client.request("/later")
        await eventually(lambda: len(made) == 2)
        assert await other.ask("/health") == (200, b"OK")
        made[0].set_result(HttpReply(200, LARGE))
        made[1].set_exception(ZeroDivisionError("as bugs do"))
        assert (await waiting.response())[2] == LARGE
        assert (await third.response())[0] == 500


async def test_a_reply_may_take_longer_than_a_request_and_not_for_ever(loop_name: str) -> None:
    later = Later()
    made = later.made
    limits = AdminLimits(request=0.1, answer=0.4)
    async with serving(limits, {"/later": later}) as admin:
        async with client_of(admin) as client:
            client.request("/later")
            await eventually(lambda: len(made) == 1)
            await asyncio.sleep(0.2)
            made[0].set_result(HttpReply(200, b"OK"))
            assert (await client.response())[2] == b"OK"
        async with client_of(admin) as client:
            client.request("/later")
            assert await client.everything() == b""
            assert len(made) == 2


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"a:\r\n" * 101 + b"\r\n", b"431", id="many headers"),
        pytest.param(b"GET /health?" + b"a&" * 81 + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"400", id="many arguments"),
    ],
)
async def test_a_request_that_would_take_long_to_read_is_refused(loop_name: str, data: bytes, status: bytes) -> None:
    async with serving() as admin, client_of(admin) as client:
        client.send(data)
        client.finish()
        assert (await client.everything()).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 200),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", 200),
    ],
)
async def test_no_other_protocol_is_spoken(loop_name: str, head: bytes, status: int) -> None:
    async with serving() as admin, client_of(admin) as client:
        client.send(head * 2)
        client.finish()
        assert (await client.everything()).count(b"HTTP/1.1 %d" % status) == 2


async def test_a_bug_in_one_connection_keeps_no_other_waiting(loop_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failed.append(context))
    async with serving() as admin, client_of(admin) as broken, client_of(admin) as client:
        assert await client.ask("/health") == (200, b"OK")
        monkeypatch.setattr("topodns.net.http_server.connection.parse_qs", {}.__getitem__)
        broken.send(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually(lambda: bool(failed))
        monkeypatch.undo()
        assert await client.ask("/health") == (200, b"OK")


async def test_a_closed_listener_answers_requests_that_have_arrived(loop_name: str) -> None:
    later = Later()
    made = later.made
    async with (
        serving(routes={"/later": later, "/health": ok}) as admin,
        client_of(admin) as idle,
        client_of(admin) as waiting,
    ):
        assert await idle.ask("/health") == (200, b"OK")
        waiting.request("/later")
        await eventually(lambda: bool(made))
        admin.server.close()
        assert await idle.everything() == b""
        made[0].set_result(HttpReply(200, b"OK"))
        status, headers, body = await waiting.response()
        assert (status, headers["connection"], body) == (200, "close", b"OK")


@pytest.mark.parametrize("request_head", [b"GET /health HTTP/1.1\r\n\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_a_closed_connection_is_freed_without_the_garbage_collector(loop_name: str, request_head: bytes) -> None:
    """Also after a request without a Host header, which is refused."""

    async def story() -> None:
        async with serving() as admin:
            async with client_of(admin) as client:
                await eventually(lambda: admin.server.connections == 1)
                (connection,) = admin.server._listeners[admin.at].clients.connections
                freed = weakref.ref(connection)
                del connection
                client.send(request_head)
                client.finish()
                await client.everything()
            await eventually(lambda: freed() is None)

    gc.disable()
    try:
        run(loop_name, story())
    finally:
        gc.enable()
