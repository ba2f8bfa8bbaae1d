"""The routes of the page: what they answer, and what they refuse."""

import asyncio

import pytest

from tests.support.page_cluster import demo_page
from topodns.inspect.http import MAX_WAITING, JobQueue
from topodns.inspect.page.html import HEADERS
from topodns.inspect.page.routes import MAX_STREAMS, MAX_STREAMS_OF_ONE
from topodns.inspect.page.snapshot import SnapshotMaker
from topodns.net.http_server.messages import HttpReply
from topodns.plugins.topology.settings import PageSettings

PATHS = ["/", "/topology", *(f"/topology/{name}" for name in ("state", "events", "service", "what-if", "explain"))]


def test_the_page_is_html_with_its_policy() -> None:
    async def story() -> None:
        with demo_page() as page:
            for path in ("/", "/topology"):
                reply = await page.reply(path)
                assert (reply.status, reply.content_type) == (200, "text/html; charset=utf-8")
                assert dict(reply.headers)["Content-Security-Policy"].startswith("default-src 'none'; ")
                assert set(HEADERS) < set(reply.headers)

    asyncio.run(story())


@pytest.mark.parametrize("path", PATHS)
def test_every_route_refuses_foreign_clients_and_foreign_pages(path: str) -> None:
    async def story() -> None:
        with demo_page() as page:
            assert list(page.routes) == PATHS
            for peer, headers in (
                ("10.0.0.9", {}),
                ("127.0.0.1", {"host": "attacker.example"}),
                ("127.0.0.1", {"host": "localhost", "origin": "http://attacker.example"}),
                ("127.0.0.1", {"host": "localhost", "sec-fetch-site": "cross-site"}),
            ):
                reply = page.call(path, peer=peer, headers=headers)
                assert isinstance(reply, HttpReply)
                assert (reply.status, reply.headers) == (403, HEADERS)

    asyncio.run(story())


def test_a_public_page_serves_other_machines_under_its_address() -> None:
    async def story() -> None:
        with demo_page(PageSettings(public=True)) as page:
            assert (
                await page.reply("/topology/state", peer="10.0.0.9", headers={"host": "10.0.0.1:8182"})
            ).status == 200
            assert (await page.refused("/topology/state", peer="10.0.0.9", headers={"host": "a.example"}))[0] == 403

    asyncio.run(story())


def test_the_state_says_what_the_page_may_show() -> None:
    async def story() -> None:
        with demo_page(PageSettings(queries=True)) as page:
            state = await page.json("/topology/state")
            assert state["about"] == {"queries": True, "clusters": ["cluster.local."]}
            first, second = await page.reply("/topology/state"), await page.reply("/topology/state")
            assert first.body is second.body  # written once

    asyncio.run(story())


@pytest.mark.parametrize(
    ("path", "arguments", "expected"),
    [
        ("state", [("cluster", "1")], (404, "no cluster '1', expected a number from 0 to 0")),
        ("events", [("cluster", "-1")], (404, "no cluster '-1', expected a number from 0 to 0")),
        ("state", [("cluster", "9" * 5000)], (404, f"no cluster '{'9' * 20}', expected a number from 0 to 0")),
        ("service", [], (400, "found service '', expected NAMESPACE/NAME")),
        ("service", [("service", "cache")], (400, "found service 'cache', expected NAMESPACE/NAME")),
        ("service", [("service", "a/b/c")], (400, "found service 'a/b/c', expected NAMESPACE/NAME")),
        ("service", [("service", "shop/none")], (404, "no headless Service 'none' in namespace 'shop'")),
        ("what-if", [], (400, "found no change, expected change=node=NAME:down or another")),
        ("what-if", [("change", "scale=data/db:-9")], (400, None)),
        ("explain", [("service", "shop/cache")], (400, "found both or none of client and node, expected one of them")),
        ("explain", [("service", "shop/cache"), ("node", "node-x")], (400, None)),
        ("explain", [("service", "shop/cache"), ("node", "node-a1"), ("type", "X")], (400, None)),
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_what_was_found(
    path: str, arguments: list[tuple[str, str]], expected: tuple[int, str | None]
) -> None:
    async def story() -> None:
        with demo_page() as page:
            status, text = await page.refused(f"/topology/{path}", *arguments)
            assert (status, text if expected[1] is not None else None) == expected

    asyncio.run(story())


def test_an_answer_of_a_service_is_explained_for_a_node() -> None:
    async def story() -> None:
        with demo_page() as page:
            found = await page.json("/topology/explain", ("service", "shop/cache"), ("node", "node-b2"), ("type", "A"))
            assert (found["client"]["node"], found["winner"]) == ("node-b2", "topology.kubernetes.io/zone")
            assert found["answer"] == ["cache.shop.svc.cluster.local. 5 IN A 127.10.4.30"]
            assert found["text"].splitlines()[-1] == "         cache.shop.svc.cluster.local. 5 IN A 127.10.4.30"

    asyncio.run(story())


def test_the_text_of_an_explanation_has_a_bounded_number_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topodns.inspect.explain.SHOWN", 1)

    async def story() -> None:
        with demo_page() as page:
            found = await page.json("/topology/explain", ("service", "shop/cache"), ("node", "node-c1"), ("type", "A"))
            assert len(found["answer"]) == 3
            assert found["text"].endswith("\n         and 2 more")

    asyncio.run(story())


def test_names_and_clients_are_explained_only_if_the_page_may_show_queries() -> None:
    question = [("name", "db.data.svc.cluster.local"), ("client", "127.10.1.100")]

    async def story() -> None:
        with demo_page() as page:
            for arguments in (question, question[:1], [("service", "shop/cache"), ("client", "127.10.1.100")]):
                status, text = await page.refused("/topology/explain", *arguments)
                assert (status, text.endswith("it takes the word 'queries' behind 'page'")) == (403, True)
        with demo_page(PageSettings(queries=True)) as page:
            found = await page.json("/topology/explain", *question)
            assert (found["client"]["address"], found["rcode"]) == ("127.10.1.100", "NOERROR")

    asyncio.run(story())


def test_prefixes_of_clients_are_shown_only_if_the_page_may_show_queries() -> None:
    for queries in (False, True):

        async def story(queries: bool = queries) -> None:
            with demo_page(PageSettings(queries=queries)) as page:
                page.demo.ask("db-near.data.svc.cluster.local A", "127.99.0.1")
                state = await page.json("/topology/state")
                assert state["summary"]["misses"] == {"data/db-near": 1}
                assert state["summary"]["prefixes"] == ({"127.99.0.0/24": 1} if queries else {})

        asyncio.run(story())


def test_so_many_pages_are_live_and_no_more() -> None:
    async def story() -> None:
        with demo_page() as page:
            peers = ["127.0.0.1", "127.0.0.2"]
            streams = [page.stream(peer=peers[at % 2]) for at in range(MAX_STREAMS)]
            full = (503, "16 pages are live already: close one")
            assert await page.refused("/topology/events", peer="127.0.0.3") == full
            assert page.page.rejects == {"streams": 1}
            streams[3].ended(streams[3])
            page.stream(peer="127.0.0.3")

    asyncio.run(story())


def test_one_address_has_half_of_the_live_pages() -> None:
    async def story() -> None:
        with demo_page() as page:
            streams = [page.stream() for _ in range(MAX_STREAMS_OF_ONE)]
            full = (429, "8 pages are live already from your address: close one")
            assert await page.refused("/topology/events") == full
            assert page.page.rejects == {}  # 429 is no 503
            page.stream(peer="127.0.0.2")
            streams[3].ended(streams[3])
            page.stream()

    asyncio.run(story())


def test_so_many_requests_are_worked_on_and_no_more() -> None:
    async def story() -> None:
        with demo_page() as page:
            change = ("change", "node=node-a1:down")
            async with page.page._queue._turn:  # nothing is worked on meanwhile
                replies = [page.call("/topology/what-if", change) for _ in range(MAX_WAITING)]
                await asyncio.sleep(0)
                for path, argument in (("what-if", change), ("service", ("service", "shop/cache"))):
                    assert await page.refused(f"/topology/{path}", argument) == (
                        503,
                        "other requests are still being worked on: try again",
                    )
            assert page.page.rejects == {"queue": 2}
            for reply in replies:
                assert isinstance(reply, asyncio.Future)
                assert (await reply).status == 200
            assert (await page.reply("/topology/what-if", change)).status == 200
            assert page.page.rejects == {"queue": 2}

    asyncio.run(story())


def test_a_request_that_is_refused_because_others_wait_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        with demo_page() as page:
            grouped: list[object] = []
            monkeypatch.setattr(SnapshotMaker, "scope", grouped.append)
            monkeypatch.setattr(JobQueue, "full", True)
            for path, argument in (
                ("what-if", ("change", "node=nothing:down")),
                ("service", ("service", "shop/cache")),
                ("explain", ("service", "shop/cache")),
            ):
                assert (await page.refused(f"/topology/{path}", argument))[0] == 503
            assert grouped == []

    asyncio.run(story())
