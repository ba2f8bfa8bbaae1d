"""The `errors` directive: which failures are logged, and how often."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Errors that match are counted for a while and logged as one line."""

    period: float  # seconds from the first one
    period_text: str  # as written
    pattern: str  # RE2 syntax, checked
    level: str = "error"  # of: debug, info, warning, error
    show_first: bool = False  # log the first one at once


@dataclass(frozen=True, slots=True)
class Errors:
    """The first consolidation that matches is the one that counts. Tracebacks are logged anyway (`stacktrace`)."""

    consolidations: tuple[Consolidation, ...] = ()
