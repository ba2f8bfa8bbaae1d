"""What some steps and arounds count beside the tally. Apart from them, so that keeping count loads none of them."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True)
class AutopathCounts:
    successes: int = 0  # names found further on in a list; copies given out by `hot` are not counted again


@dataclass(slots=True)
class Dns64Counts:
    translated: int = 0  # answers; copies given out by `hot` are not counted again


class FailureKey(NamedTuple):
    """CoreDNS's labels of a template that failed, beside `server` and `view`."""

    origin: str
    qclass: str
    qtype: str
    section: str  # answer, additional or authority
    template: str  # its text


@dataclass(slots=True)
class TemplateCounts:
    """Answers that could not be given. Matches are counted with the answers: see `Resolution.note`.

    May be handed to steps that come one after the other, so that a reload keeps the counts.
    """

    render_failures: Counter[FailureKey] = field(default_factory=Counter)
    record_failures: Counter[FailureKey] = field(default_factory=Counter)
