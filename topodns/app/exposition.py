"""The content of /metrics: the query counters, and the readings (metrics) of the rest of the process."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from topodns.dnsserver.metrics import exposition_of_counters
from topodns.metrics.exposition import gauge
from topodns.metrics.process import process_lines
from topodns.metrics.registry import Published, reading_lines
from topodns.query.counters import QueryCounters


class Metrics:
    """All metrics of the process. `all_counters`, the query counters, is called at each scrape.

    `now` is the wall clock, in seconds since the epoch.
    """

    def __init__(
        self,
        all_counters: Callable[[], Iterable[QueryCounters]],
        readings: Sequence[Published],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._all_counters = all_counters
        self._readings = list(readings)
        self._now = now

    def publish(self, readings: Iterable[Published]) -> None:
        """Add these metrics from now on."""
        self._readings += readings

    def lines(self) -> Iterator[str]:
        """The lines of the exposition, in the format of `exposition.CONTENT_TYPE`, each with its line end.

        Each family is read when its first line is requested, so a caller may spread them over several turns of the
        event loop. An empty string is no line: it marks a piece of work, after which the caller may pause.
        """
        began = [((), self._now())]
        yield from gauge("topodns_exposition_timestamp_seconds", "When this was begun to be made.", (), began)
        yield from process_lines()
        yield from exposition_of_counters(list(self._all_counters()))
        for reading in list(self._readings):
            yield from reading_lines(reading)

    def exposition(self) -> bytes:
        """All lines in one text."""
        return "".join(self.lines()).encode()
