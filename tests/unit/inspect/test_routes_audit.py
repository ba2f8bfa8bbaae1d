"""The clients that may read /audit, the status of its replies, and how often audits are made."""

import asyncio
import json
from collections.abc import Awaitable
from typing import TypeVar

import pytest

from tests.support.demo import Demo
from tests.support.model_builders import endpoint, endpoint_slice, node, service
from topodns.cluster.model import ClusterObject, KeySource, Upserted
from topodns.cluster.state import ClusterState
from topodns.inspect import audit, http
from topodns.inspect.audit import AuditSubject
from topodns.inspect.http import MAX_WAITING
from topodns.inspect.routes import audit_route
from topodns.net.http_server.messages import HttpReply, HttpRequest, HttpStream
from topodns.plugins.topology.settings import TopologySettings
from topodns.time_slices import Job, do_in_slices
from topodns.topology.keys import key_reader

T = TypeVar("T")


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo()


def request(what_if: str = "", peer: str = "127.0.0.1", **headers: str) -> HttpRequest:
    return HttpRequest("/audit", {"what-if": what_if} if what_if else {}, peer, headers)


async def made(reply: HttpReply | HttpStream | Awaitable[HttpReply]) -> HttpReply:
    assert not isinstance(reply, HttpStream)
    return reply if isinstance(reply, HttpReply) else await reply


def replies(demo: Demo, *requests: HttpRequest) -> list[HttpReply]:
    """The replies to requests that arrive together."""

    async def all_at_once() -> list[HttpReply]:
        route = audit_route(demo.generation.clusters)
        return await asyncio.gather(*[made(reply) for reply in list(map(route, requests))])

    return asyncio.run(all_at_once())


def test_loopback_gets_the_document(demo: Demo) -> None:
    [reply] = replies(demo, request())
    [cluster] = json.loads(reply.body)["clusters"]
    assert (reply.status, reply.content_type) == (200, "application/json")
    assert (cluster["nodes"], cluster["what_if"]) == (9, None)


def test_other_addresses_and_web_pages_get_nothing(demo: Demo) -> None:
    for refused in (request(peer="10.0.0.9"), request(origin="http://attacker.example"), request(host="a.example")):
        [reply] = replies(demo, refused)
        assert (reply.status, b"node" in reply.body) == (403, False)


def test_a_what_if_has_its_changes_apart_by_semicolons(demo: Demo) -> None:
    [reply] = replies(demo, request("node=node-a1:down;zone=eu-1b:down"))
    [cluster] = json.loads(reply.body)["clusters"]
    assert cluster["what_if"]["changes"] == ["node=node-a1:down", "zone=eu-1b:down"]


@pytest.mark.parametrize(
    ("what_if", "problem"),
    [
        ("nonsense", b"found 'nonsense', expected node=NAME:down"),
        ("node=node-a9:down", b"no Node is named 'node-a9', did you mean 'node-a"),
        ("scale=shop/cache:-4", b"shop/cache has 3 ready Pods, fewer than the 4 that scale takes away"),
        (";".join(["node=node-a1:down"] * 65), b"found 65 changes, expected at most 64"),
    ],
)
def test_a_what_if_of_nonsense_is_a_bad_request(demo: Demo, what_if: str, problem: bytes) -> None:
    [reply] = replies(demo, request(what_if))
    assert reply.status == 400
    assert reply.body.startswith(problem)


def test_requests_for_the_same_audit_share_it_while_it_is_new(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    made_for: list[object] = []
    original = audit.document_steps

    def counted(*arguments: object) -> object:
        made_for.append(arguments[1])
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(audit, "document_steps", counted)
    now = 0.0

    async def story() -> None:
        nonlocal now
        route = audit_route(demo.generation.clusters, lambda: now)
        await asyncio.gather(made(route(request())), made(route(request())))
        assert len(made_for) == 1
        now = 0.9
        await made(route(request()))
        assert len(made_for) == 1
        now = 1.1
        await made(route(request()))
        await made(route(request("node=node-a1:down")))
        assert made_for == [(), (), ("node=node-a1:down",)]

    asyncio.run(story())


def test_audits_are_made_one_at_a_time_and_too_many_are_refused(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    running = most = 0
    original = do_in_slices

    async def watched(job: Job[T], pause: float) -> T:
        nonlocal running, most
        running += 1
        most = max(most, running)
        result = await original(job, pause)
        running -= 1
        return result

    monkeypatch.setattr(http, "do_in_slices", watched)
    names = [f"node-{letter}{number}" for letter in "abc" for number in (1, 2, 3)]
    found = replies(demo, *(request(f"node={name}:down") for name in names), request())
    assert [reply.status for reply in found] == [200] * (MAX_WAITING + 1) + [503]
    assert most == 1


def test_other_work_is_done_while_an_audit_is_made(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit of thousands of endpoints takes many turns of the loop: queries are answered in between."""
    names = [f"n{at}" for at in range(3000)]
    state = ClusterState(frozenset(), key_reader((KeySource.ANNOTATION,)))
    some = [endpoint(f"10.0.{at // 200}.{at % 200}", name) for at, name in enumerate(names)]
    db = service("db", annotation="kubernetes.io/hostname")
    objects: list[ClusterObject] = [db, endpoint_slice("db", *some), *map(node, names)]
    for each in objects:
        state.apply(Upserted(each), 0)
    large = AuditSubject(state, TopologySettings())
    monkeypatch.setattr(audit, "subjects", lambda _: [large])
    turns = 0

    async def story() -> None:
        nonlocal turns
        made_later = asyncio.ensure_future(made(audit_route(demo.generation.clusters)(request())))
        while not made_later.done():
            turns += 1
            await asyncio.sleep(0)
        assert json.loads((await made_later).body)["clusters"][0]["services"][0]["covered"] == 3000

    asyncio.run(story())
    assert turns > 10


def test_a_client_that_leaves_does_not_end_the_audit_of_another(demo: Demo) -> None:
    async def story() -> None:
        route = audit_route(demo.generation.clusters)
        left, stays = route(request()), route(request())
        assert isinstance(left, asyncio.Future)
        left.cancel()
        assert (await made(stays)).status == 200

    asyncio.run(story())


def test_a_bug_in_an_audit_is_logged_and_the_next_one_is_made(
    demo: Demo, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError

    async def story() -> None:
        route = audit_route(demo.generation.clusters)
        with monkeypatch.context() as patched:
            patched.setattr(audit, "document_steps", broken)
            with pytest.raises(ZeroDivisionError):
                await made(route(request()))
        assert (await made(route(request()))).status == 200

    asyncio.run(story())
    assert "bug: the audit has no answer" in caplog.text
