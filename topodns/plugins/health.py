"""The `health` plugin: lameduck mode, and the probe of this process's own /health every second, as in CoreDNS.

A long duration of the probe shows that the event loop is too busy.
"""

import asyncio
import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from topodns.corefile.arguments import Address, duration, fold_options, listen_address, only_arg
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin
from topodns.query.histogram import Histogram

log = logging.getLogger(__name__)


DEFAULT_LISTEN: Final = Address("", 8080)


@dataclass(frozen=True, slots=True)
class Health:
    listen: Address = DEFAULT_LISTEN
    lameduck: float = 0.0  # seconds


def parse_health(directive: Directive, _: Context) -> Health:
    def seconds(option: Directive, health: Health) -> Health:
        return replace(health, lameduck=duration(option, only_arg(option, "a duration")))

    return fold_options(directive, Health(listen_address(directive, Health().listen)), {"lameduck": seconds})


INTERVAL: Final = 1.0  # seconds
SLOW: Final = 1.0  # seconds; a probe that takes longer is logged
BUCKETS: Final = tuple(0.00025 * 10**k for k in range(5))  # seconds; CoreDNS's

_WILDCARDS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class HealthProbe:
    """Probes /health, and has the results: the durations in seconds, of failures too, and the number of failures."""

    def __init__(self) -> None:
        self.durations = Histogram(BUCKETS)
        self.failures = 0

    async def run(self, host: str, port: int) -> None:
        """Probe this listen address, one second after the previous probe ended, until cancelled.

        A wildcard address is probed at loopback. Failures, and probes that take longer than SLOW, are logged.
        """
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
        self.durations.observe(seconds)
        if seconds > SLOW:
            log.warning("plugin/health: Local health request took more than 1s: %.3fs", seconds)


async def lameduck(healths: Iterable[Health], ends: asyncio.Event) -> None:
    """Return after the longest `lameduck` of these, or once `ends` is set; at once if there is none.

    The server answers meanwhile, while /ready says that it is about to stop.
    """
    seconds = max((health.lameduck for health in healths), default=0.0)
    if not seconds or ends.is_set():
        return
    log.info("plugin/health: Going into lameduck mode for %gs", seconds)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ends.wait()


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


PLUGIN: Final = Plugin(
    name="health",
    coredns=same(),
    parse=parse_health,
    fast_path=FastPath.ABSENT,
)
