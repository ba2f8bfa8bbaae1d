"""Faults that the program survives; its life as a whole is in tests/stories."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.corefile_settings import settings
from topodns.app.banner import print_nothing
from topodns.app.hooks import Options
from topodns.app.server import STOP_ERRORS, Announcement, Server


def test_a_bug_met_in_building_a_corefile_refuses_it_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """So that the reload goes on: it catches STOP_ERRORS, and anything else takes the program down."""

    def broken(*_: object) -> None:
        raise IndexError("tuple index out of range")

    wanted = settings(".:0 {\nwhoami\n}")
    server = Server(lambda: wanted, Announcement(print_nothing), Options())
    monkeypatch.setattr(server._assembly, "build", broken)
    with caplog.at_level(logging.ERROR), pytest.raises(STOP_ERRORS, match="a bug of topodns: IndexError"):
        asyncio.run(server._activate(wanted))
    assert "bug: this Corefile could not be built" in caplog.text


@pytest.mark.parametrize(("raises", "status"), [(True, 1), (False, 0)])
def test_a_start_that_a_dead_task_ends_has_failed_and_one_that_a_signal_ends_has_not(
    monkeypatch: pytest.MonkeyPatch, raises: bool, status: int
) -> None:
    server = Server(lambda: settings(".:0 {\nwhoami\n}"), Announcement(print_nothing), Options())

    async def ends() -> None:
        if raises:
            raise IndexError("tuple index out of range")
        server._stop.set()  # as SIGTERM does

    async def begin() -> None:
        server._start(ends(), "feed")
        await asyncio.Event().wait()

    monkeypatch.setattr("topodns.app.server.handle_signals", lambda *_: None)
    monkeypatch.setattr(server, "_begin", begin)
    assert asyncio.run(server.run()) == status


class NodeHooks:
    """Hooks as of a node cache, which do nothing."""

    async def begin(self) -> None:
        """Nothing."""

    def work(self) -> list[tuple[Coroutine[Any, Any, None], str]]:
        return []

    async def wants_reload(self) -> None:
        await asyncio.Event().wait()

    def waits_for(self) -> list[str]:
        return ["the node"]

    async def before_drain(self) -> None:
        """Nothing."""

    async def after_close(self) -> None:
        """Nothing."""


def test_a_node_cache_is_one_process_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    wanted = settings(".:0 {\nbind 127.0.0.1\nmultisocket 4\nwhoami\n}")

    async def story() -> Server:
        server = Server(lambda: wanted, Announcement(print_nothing), Options(NodeHooks()))
        await server._activate(wanted)
        await server._shut_down()
        return server

    with caplog.at_level(logging.WARNING, "topodns"):  # puts back the level, which a server sets
        server = asyncio.run(story())
    assert server._workers is None
    assert list(server._waits_for()) == ["the node"]
    assert "plugin/multisocket: a node cache is one process; there is no effect" in caplog.text
