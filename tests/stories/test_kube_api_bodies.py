"""The body of an API server's response, over real connections: as it comes, and as it ends, breaks or is too much."""

import asyncio
import re
import socket
import struct
from pathlib import Path

import pytest

from tests.support.api_client import SERVICES, connected, read, refused, trusting
from tests.support.certificates import Certificates, make_certificates, needs_openssl
from tests.support.event_loops import PATIENCE, either_loop, eventually
from tests.support.scripted_http_server import Seen, replies, server_side, serving, text_response
from topodns.kube.client import connect
from topodns.kube.client.contract import ApiError, ApiSettings, RequestCounters

pytestmark = [needs_openssl, either_loop]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


async def test_a_body_comes_piece_by_piece_as_it_is_sent(loop_name: str, certificates: Certificates) -> None:
    async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for line in (b"first", b"second"):
            writer.write(b"%x\r\n%b\r\n" % (len(line), line))
            await asyncio.wait_for(wanted.wait(), PATIENCE)
            wanted.clear()
        writer.write(b"0\r\n\r\n")

    wanted = asyncio.Event()
    async with (
        serving(answer, server_side(certificates)) as served,
        connected(trusting(served, certificates)) as api,
        api.stream(SERVICES, {"watch": "true"}) as pieces,
    ):
        assert await anext(pieces) == b"first"
        wanted.set()
        assert await anext(pieces) == b"second"
        wanted.set()
        with pytest.raises(StopAsyncIteration):
            await anext(pieces)


def largest_buffer(setting: str) -> int:
    """Octets that the kernel gives to one end of a connection."""
    return int(Path("/proc/sys/net/ipv4", setting).read_text().split()[2])


async def test_a_reader_that_takes_its_time_makes_the_server_wait(loop_name: str) -> None:
    """So that a list of hundreds of megabytes needs none of them here."""
    block, in_kernel = bytes(1 << 18), sum(map(largest_buffer, ("tcp_rmem", "tcp_wmem")))
    blocks = 2 * (in_kernel + (16 << 20)) // len(block)
    sent: list[int] = []

    async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(block) * blocks))
        for _number in range(blocks):
            writer.write(block)
            sent.append(len(block))
            await writer.drain()

    received = ahead = longest = 0
    async with (
        serving(answer) as served,
        connected(ApiSettings(endpoint=served.url)) as api,
        api.stream(SERVICES, {}) as pieces,
    ):
        async for piece in pieces:
            received, longest = received + len(piece), max(longest, len(piece))
            for _turn in range(10):
                await asyncio.sleep(0)
            ahead = max(ahead, sum(sent) - received)
    assert received == len(block) * blocks
    assert ahead < in_kernel + (8 << 20)
    assert longest <= 1 << 20


@pytest.mark.parametrize("reset", [True, False])
async def test_a_connection_that_ends_in_the_body_is_an_error(
    loop_name: str, reset: bool, certificates: Certificates
) -> None:
    async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\nff\r\n")
        await asyncio.wait_for(wanted.wait(), PATIENCE)
        if reset:
            linger = struct.pack("ii", 1, 0)  # RST instead of FIN
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    wanted = asyncio.Event()
    async with (
        serving(answer, server_side(certificates)) as served,
        connected(trusting(served, certificates)) as api,
        api.stream(SERVICES, {"watch": "true"}) as pieces,
    ):
        assert await anext(pieces) == b"first"
        wanted.set()
        with pytest.raises(ApiError, match="the response was cut off") as caught:
            await anext(pieces)
    assert caught.value.status == 0


@pytest.mark.parametrize(
    ("framing", "tls"),
    [(b"zz\r\nfoo\r\n", False), (b"-5\r\nfoo\r\n", True), (b"f" * 18 + b"\r\nfoo\r\n", False)],
    ids=["no number", "a negative number", "a number too large"],
)
async def test_k10_a_framing_error_in_the_body_is_noticed_though_the_server_keeps_the_connection(
    loop_name: str, framing: bytes, tls: bool, certificates: Certificates
) -> None:
    async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await asyncio.wait_for(wanted.wait(), PATIENCE)
        writer.write(framing)

    wanted = asyncio.Event()
    async with (
        serving(answer, server_side(certificates) if tls else None) as served,
        connected(trusting(served, certificates)) as api,
        api.stream(SERVICES, {"watch": "true"}) as pieces,
    ):
        assert await anext(pieces) == b"first"
        wanted.set()
        with pytest.raises(ApiError, match="the response was cut off"):
            await asyncio.wait_for(anext(pieces), PATIENCE)


async def test_a_response_that_is_not_http_is_said_to_be_none(loop_name: str, certificates: Certificates) -> None:
    async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    async with serving(answer, None) as served, connected(trusting(served, certificates)) as api:
        with pytest.raises(ApiError, match=": not HTTP: ") as caught:
            async with api.stream(SERVICES, {}):
                pass
    assert (caught.value.status, re.search(r"\b400\b", str(caught.value))) == (0, None)


async def test_a_caller_that_leaves_in_the_middle_takes_the_connection_with_it(
    loop_name: str, certificates: Certificates
) -> None:
    async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")

    async with (
        serving(answer, server_side(certificates)) as served,
        connected(trusting(served, certificates)) as api,
    ):
        async with api.stream(SERVICES, {"watch": "true"}) as pieces:
            assert await anext(pieces) == b"first"
        await eventually(lambda: served.closed == 1)
        watch = asyncio.create_task(read(api, watch="true"))
        await eventually(lambda: len(served.seen) == 2)
        watch.cancel()
        await eventually(lambda: served.closed == 2)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "GZIP"])
async def test_a_compressed_response_that_was_not_asked_for_is_refused(loop_name: str, coding: str) -> None:
    async with (
        serving(replies(text_response(200, "body", Content_Encoding=coding))) as served,
        connected(ApiSettings(endpoint=served.url)) as api,
    ):
        problem = await refused(api)
    assert (problem.status, str(problem)) == (0, f"{served.url}: the response has Content-Encoding '{coding}'")


async def test_a_compressed_refusal_keeps_its_status(loop_name: str) -> None:
    async with (
        serving(replies(text_response(410, "body", Content_Encoding="gzip"))) as served,
        connected(ApiSettings(endpoint=served.url)) as api,
    ):
        problem = await refused(api)
    assert (problem.status, str(problem)) == (410, "410: Gone")


async def test_the_identity_coding_is_none(loop_name: str) -> None:
    async with (
        serving(replies(text_response(200, "body", Content_Encoding="identity"))) as served,
        connected(ApiSettings(endpoint=served.url)) as api,
    ):
        assert await read(api) == b"body"


async def test_a_status_that_http_does_not_have_is_counted_as_other(loop_name: str) -> None:
    """An impostor of the API server chooses it, and each would be a line of the metrics."""
    counters = RequestCounters()
    answers = [f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode() for status in (404, 799, 999, 620)]
    async with serving(replies(*answers)) as served:
        api = await connect(ApiSettings(endpoint=served.url), socket_counters=counters)
        for _ in answers:
            await refused(api)
        await api.close()
    assert {code for code, _, _ in counters.results} == {"404", "other"}
