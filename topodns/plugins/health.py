"""Asks this process's own /health every second, as CoreDNS does: a loop that is too busy shows in the time it takes."""

import asyncio
import logging
import time
from bisect import bisect_left
from contextlib import suppress
from typing import Final

log = logging.getLogger(__name__)

INTERVAL: Final = 1.0  # seconds
SLOW: Final = 1.0  # seconds beyond which the log says so
BUCKETS: Final = tuple(0.00025 * 10**k for k in range(5))  # seconds, CoreDNS's

_WILDCARDS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class HealthProbe:
    """What the probes found: `slots` counts by bucket and beyond, `seconds` is their sum."""

    def __init__(self) -> None:
        self.slots = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0
        self.failures = 0

    async def run(self, host: str, port: int) -> None:
        """Probe for ever."""
        while True:
            await asyncio.sleep(INTERVAL)
            began = time.monotonic()
            try:
                async with asyncio.timeout(5 * INTERVAL):
                    await _ask(_WILDCARDS.get(host, host), port)
            except (OSError, TimeoutError, EOFError) as failed:
                self.failures += 1
                log.warning("plugin/health: Local health request to %s:%d failed: %s", host, port, failed)
            self._book(time.monotonic() - began)

    def _book(self, seconds: float) -> None:
        self.seconds += seconds
        self.slots[bisect_left(BUCKETS, seconds)] += 1
        if seconds > SLOW:
            log.warning("plugin/health: Local health request took more than 1s: %.3fs", seconds)


async def _ask(host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        status = await reader.readline()
        if b" 200 " not in status:
            raise OSError(f"answered {status[:40]!r}")
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
