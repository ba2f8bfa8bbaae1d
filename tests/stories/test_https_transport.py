"""Asking an upstream over HTTPS (RFC 8484): requests, connections, and servers that answer otherwise."""

import asyncio
import contextlib
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.certificates import SERVER_NAME, Certificates, make_certificates, needs_openssl
from tests.support.dns_messages import query
from tests.support.event_loops import either_loop, eventually
from tests.support.faulty_upstream import ANSWER
from tests.support.scripted_http_server import (
    Answer,
    Seen,
    Served,
    replies,
    server_side,
    serving,
    silence,
    text_response,
)
from tests.support.server_process import serving as program
from tests.support.upstream_faults import reply_to, wrong_name
from tests.support.upstream_queries import (
    HTTPS,
    QUICK,
    TIMED_OUT,
    addresses,
    ask,
    ask_briefly,
    open_sockets,
    result,
    send,
    upstream_at,
)
from topodns.net.tls_client import client_context
from topodns.net.upstream.client import DnsUpstream
from topodns.net.upstream.https_transport import MOST
from topodns.query.upstream import Failure

pytestmark = [needs_openssl]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def message_of(seen: Seen) -> bytes:
    method, target, _ = seen.line.split()
    if method == "POST":
        return seen.body
    encoded = target.removeprefix("/dns-query?dns=")
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


def response(body: bytes, *fields: str) -> bytes:
    head = ["HTTP/1.1 200 OK", "Content-Type: application/dns-message", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join([*head, "", ""]).encode() + body


async def answers(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(response(reply_to(message_of(seen))))


@contextlib.asynccontextmanager
async def over_https(
    made: Certificates, answer: Answer = answers, method: str = "POST", server_name: str = "", max_idle_conns: int = 0
) -> AsyncIterator[tuple[Served, DnsUpstream]]:
    limits = replace(QUICK, max_idle_conns=max_idle_conns)
    async with serving(answer, server_side(made)) as served:
        port, context = urlsplit(served.url).port, client_context(str(made.ca))
        assert port is not None
        async with upstream_at(port, limits, tls=context, server_name=server_name, https=method) as upstream:
            yield served, upstream


@either_loop
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_request_has_the_message_without_an_id(loop_name: str, certificates: Certificates, method: str) -> None:
    async with over_https(certificates, method=method, server_name=SERVER_NAME) as (served, upstream):
        assert await addresses(ask(upstream, HTTPS, "www.example.org A")) == [ANSWER]
        (seen,) = served.seen
        assert seen.line.startswith(f"{method} /dns-query")
        assert seen.headers["host"] == f"{SERVER_NAME}:{urlsplit(served.url).port}"
        assert seen.headers["accept"] == "application/dns-message"
        assert seen.headers.get("content-type") == ("application/dns-message" if method == "POST" else None)
        assert message_of(seen)[:2] == b"\0\0"
        assert message_of(seen)[12:].startswith(query("www.example.org A")[12:])


@either_loop
async def test_one_connection_is_used_again_and_others_are_opened_for_queries_at_the_same_time(
    loop_name: str, certificates: Certificates
) -> None:
    async with over_https(certificates, max_idle_conns=2) as (served, upstream):
        for _ in range(5):
            assert await addresses(ask(upstream, HTTPS)) == [ANSWER]
        assert served.connections == 1
        outcomes = [ask(upstream, HTTPS, f"{number}.example.org A") for number in range(2 * MOST)]
        assert [await addresses(outcome) for outcome in outcomes] == [[ANSWER]] * 2 * MOST
        assert served.connections <= MOST
        assert (upstream.counts[HTTPS].misses, upstream.counts[HTTPS].hits) == (MOST, 5 + MOST)
        await eventually(lambda: open_sockets(upstream) == 2)


@either_loop
async def test_a_query_whose_idle_connection_was_closed_is_sent_again(
    loop_name: str, certificates: Certificates
) -> None:
    async def closes_before_the_second(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if seen.connection == 1 and len(served.seen) == 2:
            writer.transport.abort()
        else:
            await answers(seen, writer)

    async with over_https(certificates, closes_before_the_second) as (served, upstream):
        assert await addresses(ask(upstream, HTTPS)) == [ANSWER]
        assert await addresses(ask(upstream, HTTPS)) == [ANSWER]
        assert (served.connections, upstream.counts[HTTPS].resent) == (2, 1)


@either_loop
async def test_a_response_may_come_in_chunks_and_after_informational_ones(
    loop_name: str, certificates: Certificates
) -> None:
    async def chunked(seen: Seen, writer: asyncio.StreamWriter) -> None:
        body = reply_to(message_of(seen))
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
        writer.write(b"Content-Type: Application/DNS-message; x=y\r\n\r\n")
        for octet in body:
            writer.write(b"1\r\n%c\r\n" % octet)
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with over_https(certificates, chunked) as (served, upstream):
        assert await addresses(ask(upstream, HTTPS)) == [ANSWER]
        assert await addresses(ask(upstream, HTTPS)) == [ANSWER]
        assert served.connections == 1


WRONG = {
    "no page": (text_response(404), "HTTP status 404"),
    "a redirect, which is not followed": (text_response(302, Location="http://127.0.0.1/"), "HTTP status 302"),
    "a page of a portal": (
        text_response(200, "sign in", Content_Type="text/html"),
        "an HTTP response that is no application/dns-message",
    ),
    "no HTTP": (b"\0\1\2\3\r\n\r\n", "no HTTP response"),
    "a head without an end": (b"HTTP/1.1 200 OK\r\nA: " + b"a" * 40_000, "no HTTP response"),
    "a body without an end": (response(bytes(70_000)), "a reply of more than 65,535 octets"),
    "a reply to another query": (
        response(wrong_name(query("www.example.org A"))),
        "a reply to another query",
    ),
    "an empty body": (response(b""), "a reply to another query"),
}


@either_loop
@pytest.mark.parametrize(("octets", "problem"), WRONG.values(), ids=WRONG)
async def test_another_answer_is_a_failure(
    loop_name: str, certificates: Certificates, octets: bytes, problem: str
) -> None:
    async with over_https(certificates, replies(octets)) as (_, upstream):
        assert await result(ask(upstream, HTTPS, "www.example.org A")) == Failure(problem, timed_out=False)


@either_loop
async def test_a_silent_server_costs_the_query_its_time_and_the_connection(
    loop_name: str, certificates: Certificates
) -> None:
    async with over_https(certificates, silence) as (served, upstream):
        assert await result(ask_briefly(upstream, HTTPS)) == TIMED_OUT
        assert open_sockets(upstream) == 0
        cancelled = send(10.0, upstream, HTTPS)
        await eventually(lambda: len(served.seen) == 2)
        cancelled.cancel()
        assert open_sockets(upstream) == 0
        assert not cancelled.outcome.settled


@either_loop
async def test_the_certificate_must_be_for_the_server_name(loop_name: str, certificates: Certificates) -> None:
    async with over_https(certificates, server_name="other.example") as (served, upstream):
        failure = await result(ask(upstream, HTTPS))
        assert isinstance(failure, Failure)
        assert failure.problem.startswith("certificate not accepted: Hostname mismatch")
        assert served.seen == []


def test_the_program_forwards_over_https_and_probes_an_upstream_that_failed(
    tmp_path: Path, certificates: Certificates
) -> None:
    async def story() -> None:
        async with serving(answers, server_side(certificates)) as served:
            port = urlsplit(served.url).port
            options = f"tls {certificates.ca}\ntls_servername {SERVER_NAME}\ndoh_method GET"
            upstream = f"https://127.0.0.1:{port} {{\n{options}\n}}"
            corefile = f".:0 {{\nbind HERE\nforward . {upstream}\nprometheus HERE:9153\n}}\n"
            loop = asyncio.get_running_loop()
            with program(tmp_path, corefile) as server:
                asked = await loop.run_in_executor(None, server.ask, "www.example.org A")
                assert asked.data == [ANSWER]
                assert served.seen[0].line.startswith("GET /dns-query?dns=")
                labels = {"to": f"127.0.0.1:{port}", "proto": "https"}
                missed = await loop.run_in_executor(
                    None, lambda: server.metric("coredns_proxy_conn_cache_misses_total", **labels)
                )
                assert missed == 1
                served.answer = replies(text_response(503))
                failed = await loop.run_in_executor(None, server.ask, "other.example.org A")
                assert failed.rcode == "SERVFAIL"
                await eventually(lambda: b"\0\0\2\0\1" in message_of(served.seen[-1]))  # . NS, the probe
                served.answer = answers
                again = await loop.run_in_executor(None, server.ask, "third.example.org A")
                assert again.data == [ANSWER]

    asyncio.run(story())
