"""The file of `loadbalance weighted`: read at start and after each change."""

import asyncio
import logging
import os
from typing import Final

from topodns.files.regular import read_regular
from topodns.plugins.loadbalance.weights import BadWeights, Weights, parse_weights

log = logging.getLogger(__name__)


MAX_OCTETS: Final = 4 << 20  # of the file; the rest is not read


class WeightSource:
    """Holds the weights of one file. While the file is unreadable or malformed, the last good weights stay."""

    def __init__(self, path: str, interval: float) -> None:
        self._path = path
        self._interval = interval  # seconds between checks; 0: never
        self._seen: tuple[int, int] | None = None
        self._weights: Weights = {}

    def weights(self) -> Weights:
        return self._weights

    def load(self) -> None:
        """Read the file. Raises OSError or BadWeights."""
        status = os.stat(self._path)
        self._weights = parse_weights(read_regular(self._path, MAX_OCTETS).decode(errors="replace"))
        self._seen = (status.st_mtime_ns, status.st_size)

    async def run(self) -> None:
        """Check the file every `interval` seconds, until cancelled."""
        while self._interval > 0:
            await asyncio.sleep(self._interval)
            try:
                status = os.stat(self._path)
                if (status.st_mtime_ns, status.st_size) != self._seen:
                    self.load()
            except (OSError, BadWeights) as problem:
                log.warning("plugin/loadbalance: %s: %s; the weights read before stay", self._path, problem)
