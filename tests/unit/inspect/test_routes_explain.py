"""The clients that may read /explain, /who and /top, and the status of its replies."""

import asyncio
import time
from ipaddress import ip_address
from typing import Any

import pytest

from tests.support.demo import Demo
from tests.support.dns_messages import query
from tests.support.virtual_event_loop import run_virtually
from topodns.inspect import explain
from topodns.inspect.http import MAX_WAITING
from topodns.inspect.routes import explain_route, top_route, who_route
from topodns.net.http_server.messages import HttpReply, HttpRequest
from topodns.query.query_sample import QuerySample

QUESTION = {"name": "cache.shop.svc.cluster.local", "node": "node-a1"}


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


def explained(demo: Demo, request: HttpRequest) -> HttpReply:
    async def story() -> HttpReply:
        reply = explain_route(demo.generation.clusters)(request)
        made = await reply if isinstance(reply, asyncio.Future) else reply
        assert isinstance(made, HttpReply)
        return made

    return run_virtually(story())


@pytest.mark.parametrize(
    ("peer", "status"),
    [
        *((loopback, 200) for loopback in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1")),
        *((other, 403) for other in ("10.0.0.9", "2001:db8::1", "::1234", "::1.2.3.4", "::ffff:12.7.0.1", "")),
    ],
)
def test_explain_shows_locations_of_pods_to_loopback_only(demo: Demo, peer: str, status: int) -> None:
    assert explained(demo, HttpRequest("/explain", QUESTION, peer)).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8181"}, 200),
        ({"host": "127.0.0.1:8181"}, 200),
        ({"host": "[::1]:8181"}, 200),
        ({"host": "127.0.0.1", "sec-fetch-site": "none"}, 200),  # typed into a browser
        ({"host": "127.0.0.1", "sec-fetch-site": "same-origin"}, 200),
        ({"host": "attacker.example:8181"}, 403),  # DNS rebinding
        ({"host": "127.0.0.1.attacker.example"}, 403),
        ({"host": "localhost.attacker.example"}, 403),
        ({"host": "10.0.0.9"}, 403),
        ({"host": "[::1"}, 403),
        ({"host": ""}, 403),
        ({"host": "localhost", "origin": "http://attacker.example"}, 403),
        ({"host": "localhost", "origin": "null"}, 403),
        ({"host": "localhost", "sec-fetch-site": "cross-site"}, 403),
        ({"host": "localhost", "sec-fetch-site": "same-site"}, 403),
    ],
)
def test_explain_answers_nothing_to_a_page_in_a_browser_on_loopback(
    demo: Demo, headers: dict[str, str], status: int
) -> None:
    reply = explained(demo, HttpRequest("/explain", QUESTION, "127.0.0.1", headers))
    assert (reply.status, b"node-a1" in reply.body) == (status, status == 200)


def test_a_question_that_cannot_be_explained_is_a_bad_request(demo: Demo) -> None:
    reply = explained(demo, HttpRequest("/explain", {"name": "example.org", "node": "node-a1"}, "127.0.0.1"))
    assert (reply.status, b"is in no zone of" in reply.body) == (400, True)


def test_so_many_explanations_wait_and_further_ones_are_refused(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    released = False
    original = explain.explanation_steps

    def long_job(*arguments: Any) -> Any:
        while not released:
            yield
        return (yield from original(*arguments))

    monkeypatch.setattr(explain, "explanation_steps", long_job)

    async def story() -> None:
        nonlocal released
        route = explain_route(demo.generation.clusters)
        waiting = []
        for _ in range(MAX_WAITING):
            reply = route(HttpRequest("/explain", QUESTION, "127.0.0.1"))
            assert isinstance(reply, asyncio.Future)
            waiting.append(reply)
        await asyncio.sleep(0)  # all begin
        refused = route(HttpRequest("/explain", QUESTION, "127.0.0.1"))
        assert isinstance(refused, HttpReply)
        assert (refused.status, refused.body) == (503, b"too many explanations at once\n")
        released = True
        assert [(await reply).status for reply in waiting] == [200] * MAX_WAITING
        assert isinstance(route(HttpRequest("/explain", QUESTION, "127.0.0.1")), asyncio.Future)

    run_virtually(story())


def test_a_bug_in_an_explanation_is_logged(
    demo: Demo, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr("topodns.inspect.explain.explanation_steps", broken)
    with pytest.raises(ZeroDivisionError):
        explained(demo, HttpRequest("/explain", QUESTION, "127.0.0.1"))
    assert "bug: the explanation has no answer" in caplog.text


def test_who_locates_an_address_for_loopback_only(demo: Demo) -> None:
    route = who_route(demo.generation.clusters)
    reply = route(HttpRequest("/who", {"client": "127.10.0.5"}, "127.0.0.1"))
    assert isinstance(reply, HttpReply)
    assert (reply.status, reply.content_type, b"node-b2" in reply.body) == (200, "application/json", True)
    page = {"origin": "http://attacker.example"}
    for refused in (
        HttpRequest("/who", {"client": "127.10.0.5"}, "10.0.0.9"),
        HttpRequest("/who", {"client": "127.10.0.5"}, "127.0.0.1", page),
    ):
        reply = route(refused)
        assert isinstance(reply, HttpReply)
        assert (reply.status, b"node-b2" in reply.body) == (403, False)


def test_top_lists_clients_for_loopback_only(demo: Demo) -> None:
    sample = QuerySample()
    sample.take(time.perf_counter(), query("cache.shop.svc.cluster.local A"), ip_address("127.10.0.5").packed, None)

    async def asked() -> list[tuple[int, bool]]:
        route = top_route(demo.generation.clusters, sample)
        found = []
        page = {"origin": "http://attacker.example"}
        for peer, headers in (("127.0.0.1", {}), ("10.0.0.9", {}), ("127.0.0.1", page)):
            made = route(HttpRequest("/top", {"by": "node"}, peer, headers))
            reply = await made if isinstance(made, asyncio.Future) else made
            assert isinstance(reply, HttpReply)
            found.append((reply.status, b"node-b2" in reply.body))
        return found

    assert asyncio.run(asked()) == [(200, True), (403, False), (403, False)]


def test_who_of_a_text_that_is_no_address_is_a_bad_request(demo: Demo) -> None:
    reply = who_route(demo.generation.clusters)(HttpRequest("/who", {"client": "somebody"}, "127.0.0.1"))
    assert isinstance(reply, HttpReply)
    assert (reply.status, reply.body) == (400, b"'somebody' is no IP address\n")
