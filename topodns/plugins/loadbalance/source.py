"""The file of `loadbalance weighted`: read at start and after each change."""

import logging
from collections.abc import Iterator
from typing import Final

from topodns.files.poller import FilePoller
from topodns.files.regular import read_regular
from topodns.files.text import without_mark
from topodns.plugins.loadbalance.weights import BadWeights, Weights, parse_weights

log = logging.getLogger(__name__)


MAX_OCTETS: Final = 4 << 20  # of the file; the rest is not read


class WeightSource:
    """Holds the weights of one file. While the file is unreadable or malformed, the last good weights stay."""

    def __init__(self, path: str, interval: float) -> None:
        """`interval`: seconds between checks of the file for changes; 0: never."""
        self.poller = FilePoller(path=path, interval=interval, read=self._read, changed=bool, failed=self._warn)
        self._weights: Weights = {}

    def weights(self) -> Weights:
        return self._weights

    def _read(self) -> Iterator[None]:
        try:
            content = without_mark(read_regular(self.poller.path, MAX_OCTETS))
        except ValueError as problem:
            raise BadWeights(str(problem)) from None
        self._weights = yield from parse_weights(content)

    def _warn(self, problem: Exception) -> None:
        log.warning("plugin/loadbalance: %s: %s; the weights read before stay", self.poller.path, problem)
