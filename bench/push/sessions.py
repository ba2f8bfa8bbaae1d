"""Stands for many node caches: DSO sessions with subscriptions, which only count the PUSH messages.

The lines on stdout are `connected`, `subscribed NUMBER` (refused subscriptions) after a line on stdin, and at the end,
on SIGTERM, the number of PUSH messages since then.
"""

import os
import signal
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from select import select
from typing import Final

from tests.support.push_client import KEEPALIVE, NOERROR, PushClient, dso, push_client

_INTERVAL: Final = 7.0  # seconds between two Keepalives; the server wants one every 15
_LOOK_EVERY: Final = 0.2  # seconds, for SIGTERM and Keepalives
_PUSH_IDENT: Final = b"\0\0"


def _count_pushes(clients: Sequence[PushClient]) -> int:
    """The PUSH messages until SIGTERM; the sessions are kept alive meanwhile."""
    by_socket, pushes, due = {client.sock: client for client in clients}, 0, time.monotonic() + _INTERVAL
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ended.append(number))
    while not ended:
        for sock in select(by_socket, (), (), _LOOK_EVERY)[0]:
            with suppress(BlockingIOError):
                while True:
                    pushes += by_socket[sock].octets(0)[:2] == _PUSH_IDENT
        if time.monotonic() > due:
            due += _INTERVAL
            for client in clients:
                client.send(dso(client.new_ident(), (KEEPALIVE, struct.pack("!II", 15_000, 15_000))))
    return pushes


def main(host: str, port: str, sources: str, names: str) -> None:
    """Sources and names are separated by commas."""
    with suppress(PermissionError):  # a lower priority than that of the measured processes
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with ExitStack() as stack:
        clients = [stack.enter_context(push_client((host, int(port)), source)) for source in sources.split(",")]
        for client in clients:
            client.begin()
        print("connected", flush=True)
        sys.stdin.readline()
        rcodes = [rcode for client in clients for rcode in client.subscribe_all(names.split(","))]
        print("subscribed", sum(rcode != NOERROR for rcode in rcodes), flush=True)
        print(_count_pushes(clients), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
