"""The file of `loadbalance weighted`: read at start, and again when it has changed."""

import asyncio
import logging
import os
from typing import Final

from topodns.edge.regular_file import read_regular
from topodns.resolve.weight_file import BadWeights, Weights, parse_weights

MAX_OCTETS: Final = 4 << 20  # of the file; what is behind them is not read

log = logging.getLogger(__name__)


class WeightSource:
    """Holds the weights of one file. A file that cannot be read, or is broken, leaves the last good ones in place."""

    def __init__(self, path: str, interval: float) -> None:
        self._path = path
        self._interval = interval  # seconds between looks; 0: never again
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
        """Look again for ever."""
        while self._interval > 0:
            await asyncio.sleep(self._interval)
            try:
                status = os.stat(self._path)
                if (status.st_mtime_ns, status.st_size) != self._seen:
                    self.load()
            except (OSError, BadWeights) as problem:
                log.warning("plugin/loadbalance: %s: %s; the weights read before stay", self._path, problem)
