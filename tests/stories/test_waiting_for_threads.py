"""A test of a real cluster ends even where a helper thread of it does not."""

import time
from functools import partial
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.kube import slice_history
from tests.support.kube.waiting import join_all


def test_threads_that_end_are_waited_for() -> None:
    threads = [Thread(target=Event().wait, args=(0.05,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    join_all(threads)
    assert [thread.is_alive() for thread in threads] == [False, False]


def test_one_that_does_not_end_is_named_after_the_deadline() -> None:
    forever = Event()
    threads = [Thread(target=Event().wait, args=(0,), name="ended"), Thread(target=forever.wait, name="asking")]
    for thread in threads:
        thread.start()
    try:
        with pytest.raises(AssertionError, match=r"^still running after 0\.1 s: asking$"):
            join_all(threads, 0.1)
    finally:
        forever.set()


def test_a_watch_that_cannot_be_ended_is_reported_and_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_history, "join_all", partial(join_all, patience=0.5))
    deaf = ["sh", "-c", "trap '' TERM; echo '{}'; exec sleep 60"]
    lab: Any = SimpleNamespace(kubectl=lambda *words: deaf)
    started, heard = time.monotonic(), Event()
    monkeypatch.setattr(slice_history.SliceHistory, "_note", lambda history, event: heard.set())
    with (
        pytest.raises(AssertionError, match=r"still running after .* slice-history"),
        slice_history.slice_history(lab, "default"),
    ):
        assert heard.wait(10)
    assert time.monotonic() - started < 30
