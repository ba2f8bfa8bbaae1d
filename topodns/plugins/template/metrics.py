"""Metrics of `template`."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Final

from topodns.metrics.registry import Published, Reading
from topodns.plugins.setup import MetricsSource
from topodns.plugins.template.handler import FailureKey, TemplateCounts
from topodns.query.counters import TemplateMatch

_FAILURES: Final = (
    ("coredns_template_template_failures", "Templates that could not be filled in.", "render_failures"),
    ("coredns_template_rr_failures", "Texts of templates that are no record.", "record_failures"),
)
_LABELS: Final = ("server", "zone", "view", "class", "type", "section", "template")


def readings(source: MetricsSource) -> Iterator[Published]:
    """The metrics, under CoreDNS's names."""
    yield Reading(
        "coredns_template_matches",
        "Queries that a template matched.",
        "counter",
        ("server", "zone", "view", "class", "type"),
        lambda: _matches(source).items(),
    )
    for name, documentation, attribute in _FAILURES:
        yield Reading(name, documentation, "counter", _LABELS, partial(_failures, source, attrgetter(attribute)))


def _matches(source: MetricsSource) -> Counter[tuple[str, ...]]:
    """Queries that a template matched, by its labels; `zone` is that of the template."""
    matches: Counter[tuple[str, ...]] = Counter()
    for counters in source.counters():
        for kind, times in counters.kinds():
            if isinstance(kind.detail, TemplateMatch):
                origin, qclass, qtype = kind.detail
                matches[(counters.server, origin, kind.view, qclass, qtype)] += times
    return matches


def _failures(
    source: MetricsSource, failures: Callable[[TemplateCounts], Counter[FailureKey]]
) -> Iterator[tuple[tuple[str, ...], float]]:
    for (server, view), counts in source.shared.all(TemplateCounts):
        for (origin, *rest), times in failures(counts).items():
            yield (server, origin, view, *rest), times
