"""The effects of signals, and signals that wait in the kernel until their handlers are set."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from topodns.app.signals import SIGNALS, block_signals, handle_signals, handle_signals_at_start, unblock_signals


@pytest.fixture(autouse=True)
def process_signals() -> Iterator[None]:
    """Nothing is blocked in the begin, whatever came before; in the end this process has its handlers and mask back."""
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def test_a_blocked_signal_is_handled_when_signals_are_unblocked() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    block_signals()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= set(SIGNALS)
    signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
    assert seen == []
    unblock_signals()
    assert seen == [signal.SIGUSR1]


EFFECTS = [
    (signal.SIGTERM, {"stop"}),
    (signal.SIGINT, {"stop", "at once"}),
    (signal.SIGQUIT, {"stop", "at once"}),
    (signal.SIGUSR1, {"reload"}),
    (signal.SIGUSR2, set()),
    (signal.SIGHUP, set()),
]


async def effects(*numbers: signal.Signals) -> set[str]:
    """The events that are set after these signals, which were pending when the handlers were set."""
    events = {name: asyncio.Event() for name in ("stop", "at once", "reload")}
    block_signals()
    for number in numbers:
        signal.pthread_kill(threading.get_ident(), number)
    handle_signals(asyncio.get_running_loop(), *events.values())
    for _ in range(5):  # turns of the loop: it reads the signal's number from a socket, then calls the handler
        await asyncio.sleep(0)
    return {name for name, event in events.items() if event.is_set()}


@pytest.mark.parametrize(("number", "expected"), EFFECTS)
def test_a_signal_that_was_pending_has_its_effect(number: signal.Signals, expected: set[str]) -> None:
    assert asyncio.run(effects(number)) == expected


def test_every_signal_has_an_effect_in_the_table() -> None:
    assert [number for number, _ in EFFECTS if number not in SIGNALS] == []
    assert len(EFFECTS) == len(SIGNALS)


def test_sigusr2_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        asyncio.run(effects(signal.SIGUSR2))
    assert "SIGUSR2: no binary upgrade here" in caplog.text


def test_the_second_interrupt_exits_at_once_with_status_2(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[int] = []
    monkeypatch.setattr(os, "_exit", statuses.append)
    assert asyncio.run(effects(signal.SIGTERM, signal.SIGINT)) == {"stop", "at once"}
    assert statuses == []
    assert asyncio.run(effects(signal.SIGINT, signal.SIGQUIT)) == {"stop", "at once"}
    assert statuses == [2]


def test_before_the_server_runs_sigterm_exits_with_0_and_the_other_signals_do_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statuses: list[int] = []
    monkeypatch.setattr(os, "_exit", statuses.append)
    handle_signals_at_start()
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    assert statuses == [0]
    assert {signal.getsignal(each) for each in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)} == {signal.SIG_IGN}
