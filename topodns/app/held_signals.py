"""Blocks the signals to a node-cache in the kernel until the event loop can act on them.

A process that is killed at its start, or ends before it knows its cleanup, leaves the firewall rules of an earlier
instance behind. Pending signals survive execve(2) and the mask is inherited, so that a supervisor passes them on, too.
"""

import signal
from typing import Final

HELD: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def hold_signals() -> None:
    """Block the signals of HELD in this thread and in all that it starts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)


def heed_signals() -> None:
    """Unblock them once the handlers are set: pending signals are handled now. No effect if none was blocked."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
