"""The start of a worker process: signals, logging, and the socket to the first process."""

import signal
import socket
import sys
import time

from topodns.app.signals import SIGNALS, unblock_signals


def main() -> None:
    """Run a worker on the socket whose descriptor is the only argument. Ends the process.

    The first process handles signals and ends its workers; they ignore those that reach the whole process group.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    unblock_signals()
    from topodns.app.event_loop import run_to_end
    from topodns.app.workers.worker import Worker
    from topodns.logs import start_logging

    start_logging(time.monotonic)
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        sys.exit(run_to_end(Worker(sock).run()))
