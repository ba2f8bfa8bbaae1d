"""An exposition of /metrics, read by Prometheus's own parser, and a way to be sure that it is of now."""

import time
from collections.abc import Callable
from functools import cached_property

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from topodns.metrics.scrapes import EVERY


class Scrape:
    """One exposition."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def families(self) -> list[Metric]:
        return list(text_string_to_metric_families(self._text))

    def sum(self, sample_name: str, /, **labels: str) -> float:
        """Of the samples with this name and these labels; 0.0 where there are none. Reads the lines of it alone."""
        lines = "".join(f"{line}\n" for line in self._text.splitlines() if line.startswith(sample_name))
        return sum(
            sample.value
            for family in text_string_to_metric_families(lines)
            for sample in family.samples
            if sample.name == sample_name and labels.items() <= sample.labels.items()
        )


def fresh(fetch: Callable[[], str]) -> Scrape:
    """An exposition that was begun after this call, of those that `fetch` gets.

    Takes up to a second: a server makes one that often, and gives it out meanwhile.
    """
    asked = time.time()
    while True:
        scrape = Scrape(fetch())
        begun = scrape.sum("topodns_exposition_timestamp_seconds")
        if begun >= asked or not begun:  # CoreDNS makes each anew and does not say when
            return scrape
        time.sleep(max(0.01, begun + EVERY - time.time()))
