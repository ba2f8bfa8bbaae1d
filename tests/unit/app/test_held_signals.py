"""Signals that wait in the kernel until their handlers are set."""

import signal
import threading

from topodns.app.held_signals import HELD, heed_signals, hold_signals


def test_a_held_signal_is_handled_when_the_server_heeds_signals() -> None:
    seen: list[int] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    handler = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        hold_signals()
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= set(HELD)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        assert seen == []
        heed_signals()
        assert seen == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
