"""Samples of an exposition made in this process, read back by Prometheus's own parser."""

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from topodns.app.metrics import Metrics
from topodns.metrics.exposition import TEXT, Exposition, Form
from topodns.metrics.registry import Published
from topodns.query.counters import QueryCounters, ReplyKind


def counted(
    kinds: Iterable[tuple[ReplyKind, int]],
    seconds: float = 0.001,
    into: QueryCounters | None = None,
    sizes: tuple[int, int] = (45, 61),
) -> QueryCounters:
    """A tally of answers of these kinds, so many of each, that took so long; `sizes` of query and response."""
    counts = into or QueryCounters("dns://:53", "udp", "1")
    for kind, times in kinds:
        for _ in range(times):
            counts.count(counts.cell(kind), seconds, *sizes)
    return counts


def exposition_text(metrics: Metrics, form: Form = TEXT) -> str:
    """All of /metrics in this form."""
    return b"".join(Exposition(metrics.published).pieces(form.encode)).decode()


def scraped(*all_counters: QueryCounters, readings: Iterable[Published] = ()) -> dict[str, float]:
    """Every sample but those of process and interpreter, as `name{label="value",...}` with sorted labels."""
    text = exposition_text(Metrics(lambda: all_counters, list(readings)))
    return {
        _line(sample.name, sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.startswith(("process_", "python_", "topodns_exposition_"))
    }


def _line(name: str, labels: dict[str, str]) -> str:
    inside = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name


def only(samples: dict[str, float], name: str) -> dict[str, float]:
    """The samples of this name, by their labels alone."""
    return {line[len(name) :]: value for line, value in samples.items() if line == name or line.startswith(name + "{")}
