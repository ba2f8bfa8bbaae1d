"""What a scrape shows, read back by Prometheus's own parser."""

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from topodns.edge.metrics import Metrics, Published
from topodns.resolve.tally import Kind, Tally


def counted(kinds: Iterable[tuple[Kind, int]], seconds: float = 0.001, into: Tally | None = None) -> Tally:
    """A tally of answers of these kinds, so many of each, that took so long."""
    counts = into or Tally("dns://:53", "udp", "1")
    for kind, times in kinds:
        for _ in range(times):
            counts.count(counts.cell(kind), seconds)
    return counts


def scraped(*tallies: Tally, readings: Iterable[Published] = ()) -> dict[str, float]:
    """Every sample but those of the process, as `name{label="value",...}` with sorted labels."""
    text = Metrics(lambda: tallies, list(readings)).exposition().decode()
    return {
        _line(sample.name, sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.startswith("process_")
    }


def _line(name: str, labels: dict[str, str]) -> str:
    inside = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name


def only(samples: dict[str, float], name: str) -> dict[str, float]:
    """The samples of this name, by their labels alone."""
    return {line[len(name) :]: value for line, value in samples.items() if line == name or line.startswith(name + "{")}
