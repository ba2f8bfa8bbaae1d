"""Counters of single plugins, beside `counters`. In their own module, so that importing them loads no plugin."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True)
class AutopathCounts:
    successes: int = 0  # names found through a later search domain; packet cache hits are not counted again


@dataclass(slots=True)
class Dns64Counts:
    translated: int = 0  # answers; packet cache hits are not counted again


class FailureKey(NamedTuple):
    """CoreDNS's labels of template failures, beside `server` and `view`."""

    origin: str
    qclass: str
    qtype: str
    section: str  # answer, additional or authority
    template: str  # the text of the template


@dataclass(slots=True)
class TemplateCounts:
    """Template failures. Matches are counted with the answers: see `Resolution.note`.

    A reload hands the object on to the new generation's plugins, which keeps the counts.
    """

    render_failures: Counter[FailureKey] = field(default_factory=Counter)
    record_failures: Counter[FailureKey] = field(default_factory=Counter)
