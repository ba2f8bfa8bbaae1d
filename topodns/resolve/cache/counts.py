"""What caches count, as plain numbers that are published when somebody asks for the metrics."""

from dataclasses import dataclass, field

from topodns.dns.names import name_text
from topodns.settings.cache import Cache


def zones_label(settings: Cache) -> str:
    """CoreDNS's label `zones`: what the directive is for."""
    return ",".join(map(name_text, settings.origins))


@dataclass(slots=True)
class TableCounts:
    """Of one table, or of several that came one after the other."""

    evictions: int = 0  # entries that had to make room


@dataclass(slots=True)
class CacheCounts:
    """What no tally can tell. Hits are not here: each is in a tally, ready-made copies too, as plugin "cache".

    May be handed to caches that come one after the other, so that a reload keeps the counts.
    """

    misses: int = 0  # answers that came from an upstream, or had to be waited for
    prefetches: int = 0  # refreshes that nobody waited for
    served_stale: int = 0
    drops: int = 0  # answers too large to be kept
    success: TableCounts = field(default_factory=TableCounts)
    denial: TableCounts = field(default_factory=TableCounts)
