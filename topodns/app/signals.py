"""The signals of the server process: their handlers, and the time before these are set.

| signal | effect |
|---|---|
| SIGTERM | stop: /ready becomes 503, lameduck mode, drain, close; status 0 |
| SIGINT, SIGQUIT | stop without lameduck mode, or end it; the second of them exits at once with status 2 |
| SIGUSR1 | read the Corefile again, as the `reload` plugin does after a change |
| SIGUSR2 | a log line: CoreDNS replaces its binary, topodns does not |
| SIGHUP | ignored, as in CoreDNS |

A node-cache blocks them in the kernel until their handlers are set: a process that is killed at its start, or ends
before it knows its cleanup, leaves the firewall rules of an earlier instance behind. Pending signals survive execve(2)
and the mask is inherited, so that a supervisor passes them on, too.

A node-cache imports this module before it blocks signals, so no import here is slow: asyncio and logging come later.
"""

import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

SIGNALS: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def handle_signals_at_start() -> None:
    """Handle signals until `handle_signals`: SIGTERM exits with 0, and SIGHUP, SIGUSR1 and SIGUSR2 are ignored.

    By default, each of these would kill a server that is about to start. A node-cache blocks them instead.
    """
    # No exception: one that comes amid the import of an extension module may end as its SystemError, with status 1.
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
    for ignored in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(ignored, signal.SIG_IGN)


def block_signals() -> None:
    """Block SIGNALS in this thread and in all that it starts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def ignore_signals() -> None:
    """Ignore SIGNALS from now on, as a worker of `multisocket` does: the first process ends its workers."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    unblock_signals()


def unblock_signals() -> None:
    """Unblock SIGNALS once the handlers are set: pending signals are handled now. No effect if none was blocked."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def handle_signals(
    loop: "asyncio.AbstractEventLoop", stop: "asyncio.Event", at_once: "asyncio.Event", reload: "asyncio.Event"
) -> None:
    """Set the handlers of SIGNALS in the event loop, then unblock them.

    `stop` is set to stop the server, which is logged in CoreDNS's words, `at_once` beside it to do so without lameduck
    mode, `reload` to read the Corefile again.
    """
    import logging  # here, for the reason in the module's docstring

    log = logging.getLogger(__name__)

    def interrupted(name: str) -> None:
        if at_once.is_set():
            os._exit(2)
        log.info("%s: Shutting down", name)
        at_once.set()
        stop.set()

    def terminated() -> None:
        log.info("SIGTERM: Shutting down servers then terminating")
        stop.set()

    no_upgrade = "SIGUSR2: no binary upgrade here; nothing is done"
    loop.add_signal_handler(signal.SIGTERM, terminated)
    loop.add_signal_handler(signal.SIGINT, interrupted, "SIGINT")
    loop.add_signal_handler(signal.SIGQUIT, interrupted, "SIGQUIT")
    loop.add_signal_handler(signal.SIGUSR1, reload.set)
    loop.add_signal_handler(signal.SIGUSR2, log.warning, no_upgrade)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    unblock_signals()
