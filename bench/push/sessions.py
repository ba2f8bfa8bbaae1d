"""Stands for many node caches: DSO sessions with subscriptions, which only count the PUSH messages.

The wire code is their own, as small as possible: a hundred sessions share a core with everything but the server. The
lines on stdout are `connected`, `subscribed NUMBER` (refused subscriptions) after a line on stdin, and at the end, on
SIGTERM, the number of PUSH messages since then.
"""

import asyncio
import os
import signal
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_DSO: Final = 6 << 11
_KEEPALIVE, _SUBSCRIBE = 1, 0x40
_NEVER: Final = 0xFFFFFFFF
_A_IN: Final = b"\0\1\0\1"
_INTERVAL: Final = 7.0  # seconds between two Keepalives; the server wants one every 15
_HEAD: Final = struct.Struct("!HHHHHHHH")


class Session:
    """One DSO session. `pushes`: PUSH messages received. `refused`: responses with an error."""

    def __init__(self) -> None:
        self.pushes = 0
        self.refused = 0
        self._answered = 0
        self._expected = 0
        self._done = asyncio.Event()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self, source: str, host: str, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection(host, port, local_addr=(source, 0))
        self._tasks.append(asyncio.create_task(self._read(), name="read"))
        await self._ask([_keepalive()])
        self._tasks.append(asyncio.create_task(self._keep_alive(), name="keep alive"))

    async def subscribe(self, names: Sequence[bytes]) -> None:
        """Subscribe to the addresses of these names, and wait for all responses."""
        await self._ask([_request(number, _SUBSCRIBE, name + _A_IN) for number, name in enumerate(names, 2)])

    async def _ask(self, messages: Sequence[bytes]) -> None:
        self._done.clear()
        self._expected = self._answered + len(messages)
        self._writer.writelines(messages)
        await self._done.wait()

    async def _read(self) -> None:
        while True:
            size = int.from_bytes(await self._reader.readexactly(2), "big")
            message = await self._reader.readexactly(size)
            if message[:2] == b"\0\0":
                self.pushes += 1
                continue
            self._answered += 1
            self.refused += bool(message[3] & 15)
            if self._answered == self._expected:
                self._done.set()

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL)
            self._expected += 1
            self._writer.write(_keepalive())


def _keepalive() -> bytes:
    return _request(1, _KEEPALIVE, struct.pack("!II", _NEVER, 15_000))


def _request(ident: int, kind: int, data: bytes) -> bytes:
    head = _HEAD.pack(ident, _DSO, 0, 0, 0, 0, kind, len(data))
    return struct.pack("!H", len(head) + len(data)) + head + data


async def _run(host: str, port: int, sources: Sequence[str], names: Sequence[bytes]) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    sessions = [Session() for _ in sources]
    for session, source in zip(sessions, sources, strict=True):
        await session.connect(source, host, port)
    print("connected", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for session in sessions:
        await session.subscribe(names)
    print("subscribed", sum(session.refused for session in sessions), flush=True)
    before = sum(session.pushes for session in sessions)
    await stopped.wait()
    print(sum(session.pushes for session in sessions) - before, flush=True)


def main(host: str, port: str, sources: str, names: str) -> None:
    """Sources and names are separated by commas."""
    with suppress(PermissionError):  # a lower priority than that of the measured processes
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    wires = [
        b"".join(bytes((len(label),)) + label.encode() for label in f"{name}.".split(".")) for name in names.split(",")
    ]
    asyncio.run(_run(host, int(port), sources.split(","), wires))


if __name__ == "__main__":
    main(*sys.argv[1:])
