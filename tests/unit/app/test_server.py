"""Faults that the program survives; its life as a whole is in tests/stories."""

import asyncio
import logging

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
