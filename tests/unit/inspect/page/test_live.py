"""Events of the page: what a change sends, and what a slow reader misses."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.event_loops import eventually
from tests.support.model_builders import node
from tests.support.page_cluster import DemoPage, demo_page
from topodns.cluster.model import Upserted
from topodns.inspect.page import live
from topodns.inspect.page.live import MAX_EVENT, change_event
from topodns.inspect.page.snapshot import Snapshot
from topodns.net.http_server.messages import HttpStream

BEFORE = Snapshot(1, '{"a":1}', "[]", {"a/a": '{"id":1}', "b/b": '{"id":2}', "c/c": '{"id":3}'})


def parsed(event: bytes) -> tuple[str, Any]:
    name, data = event.decode().removesuffix("\n\n").split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_an_event_has_the_rows_that_differ_and_the_names_of_those_that_are_gone() -> None:
    after = Snapshot(4, '{"a":1}', "[]", {"a/a": '{"id":1}', "b/b": '{"id":9}', "d/d": '{"id":4}'})
    assert parsed(change_event(BEFORE, after)) == (
        "change",
        {"from": 1, "to": 4, "rows": [{"id": 9}, {"id": 4}], "gone": ["c/c"]},
    )


def test_summary_and_nodes_are_in_it_if_they_differ() -> None:
    after = Snapshot(2, '{"a":2}', '[["n","z"]]', BEFORE.rows)
    assert parsed(change_event(BEFORE, after)) == (
        "change",
        {"from": 1, "to": 2, "rows": [], "gone": [], "summary": {"a": 2}, "nodes": [["n", "z"]]},
    )


@pytest.mark.parametrize(
    "after",
    [
        Snapshot(2, "{}", "[]", {str(number): f'"{number:01000}"' for number in range(70)}),
        Snapshot(2, "{}", f'["{"n" * MAX_EVENT}"]', BEFORE.rows),
        Snapshot(2, "{}", "[]", {}),
    ],
)
def test_a_large_change_asks_the_page_to_fetch_everything(after: Snapshot) -> None:
    many = Snapshot(1, "{}", "[]", {"x" * 1000 + str(number): "" for number in range(100)})
    assert parsed(change_event(BEFORE if after.rows else many, after)) == ("reset", {})


def opened(stream: HttpStream) -> HttpStream:
    """The stream with its head and first event sent, as if by a connection."""
    assert stream.part == b"retry: 1000\nevent: hello\ndata: {}\n\n"
    stream.part, stream.sending = b"", False
    return stream


async def rename(page: DemoPage, number: int) -> None:
    page.apply(Upserted(node(f"new-{number}")))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topodns.inspect.page.live.EVERY", 0.01)
    monkeypatch.setattr("topodns.inspect.page.snapshot.EVERY", 0.0)


@pytest.mark.usefixtures("quick")
def test_a_change_is_sent_to_every_stream_once() -> None:
    async def story() -> None:
        with demo_page() as page:
            streams = [opened(page.stream()) for _ in range(3)]
            await asyncio.sleep(0.1)
            assert [stream.part for stream in streams] == [b"", b"", b""]
            page.apply(Upserted(node("new")))
            await eventually(lambda: all(stream.part for stream in streams))
            (event,) = {stream.part for stream in streams}
            name, data = parsed(event)
            assert (name, data["from"], data["to"], data["summary"]["nodes"]) == ("change", 1, 2, 10)

    asyncio.run(story())


@pytest.mark.usefixtures("quick")
def test_a_stream_that_is_not_read_holds_one_event_and_then_gets_a_reset() -> None:
    async def story() -> None:
        with demo_page() as page:
            slow = opened(page.stream())
            (live,) = page.page._routes[0]._live
            await asyncio.sleep(0.1)
            page.apply(Upserted(node("new-1")))
            await eventually(lambda: bool(slow.part))
            held = slow.part
            page.apply(Upserted(node("new-2")))
            await eventually(lambda: slow in live._behind)
            assert slow.part is held
            slow.part = b""
            await eventually(lambda: bool(slow.part))
            assert parsed(slow.part) == ("reset", {})

    asyncio.run(story())


@pytest.mark.usefixtures("quick")
def test_while_other_work_is_done_comments_keep_the_streams_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "KEEPALIVE", 0.05)

    async def story() -> None:
        with demo_page() as page:
            stream = opened(page.stream())
            async with page.page._queue._turn:  # a long what-if
                for _ in range(2):
                    await eventually(lambda: bool(stream.part))
                    assert stream.part.startswith(b": ")
                    stream.part = b""

    asyncio.run(story())


@pytest.mark.usefixtures("quick")
def test_without_streams_nothing_is_computed() -> None:
    async def story() -> None:
        with demo_page() as page:
            tasks = len(asyncio.all_tasks())
            stream = opened(page.stream())
            await asyncio.sleep(0.05)
            assert len(asyncio.all_tasks()) > tasks
            stream.ended(stream)
            await eventually(lambda: len(asyncio.all_tasks()) == tasks)

    asyncio.run(story())


@pytest.mark.usefixtures("quick")
def test_a_comment_shows_that_a_quiet_stream_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "KEEPALIVE", 0.05)

    async def story() -> None:
        with demo_page() as page:
            stream = opened(page.stream())
            await eventually(lambda: stream.part == b": the stream is open\n\n")

    asyncio.run(story())


@pytest.mark.usefixtures("quick")
def test_a_bug_ends_the_streams_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        with demo_page() as page:
            ended: list[bool] = []
            stream = opened(page.stream())
            stream.close = lambda: ended.append(True)
            monkeypatch.setattr(page.cluster.state, "all_nodes", lambda: 1 / 0)
            page.apply(Upserted(node("new")))
            await eventually(lambda: ended == [True])

    asyncio.run(story())
    assert "bug: the live updates of the topology page ended" in caplog.text
