"""The `cache` directive. Durations are in seconds; TTLs are whole seconds."""

from dataclasses import dataclass
from typing import Final

from topodns.dns.names import ROOT, Name

DEFAULT_CAPACITY = 9984  # CoreDNS's: 256 shards of 39 entries


@dataclass(frozen=True, slots=True)
class Share:
    """What is kept of one sort of answer, positive or negative."""

    max_ttl: int  # 1 or more
    min_ttl: int = 5  # not above max_ttl in effect
    capacity: int = DEFAULT_CAPACITY  # entries
    disabled: tuple[Name, ...] = ()  # at and below these origins nothing is kept


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Ask anew for what was asked `amount` times, without a gap of `window`, when little of its TTL is left."""

    amount: int  # 1 or more
    window: float = 60.0
    percentage: int = 10  # of the TTL, 10..90


@dataclass(frozen=True, slots=True)
class ServeStale:
    """RFC 8767. The defaults are its recommendations (sections 4 to 6) wherever the directive gives no number."""

    max_age: float = 3600.0  # beyond the TTL, more than 0
    verify: bool = False  # ask the upstream first; else the stale answer goes out at once
    verify_timeout: float = 1.8  # 0: as long as the upstream takes
    ttl: int = 30
    recheck: float = 30.0  # how long a failed refresh is not tried again
    prefer_positive: bool = False  # an answer with records goes before a denial that was learned later
    doubt: float = 0.0  # and else, such a denial counts only when it is heard again so many seconds later


@dataclass(frozen=True, slots=True)
class Cache:
    """One `cache` directive. None: the option is off."""

    origins: tuple[Name, ...] = (ROOT,)
    success: Share = Share(3600)
    denial: Share = Share(1800)
    servfail: int = 5  # TTL of a SERVFAIL, 0..300; 0: not kept
    prefetch: Prefetch | None = None
    serve_stale: ServeStale | None = None
    keepttl: bool = False


AS_COREDNS: Final = Cache()
"""What the directive means where nothing is written."""
