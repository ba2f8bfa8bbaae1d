"""The settings of a `cache` directive."""

from dataclasses import dataclass
from typing import Final

from topodns.corefile.parser import Directive
from topodns.dns.name import ROOT, Name, name_text

DEFAULT_CAPACITY = 9984  # CoreDNS's: 256 shards of 39 entries
DEFAULT_SUBSCRIPTIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Share:
    """Settings for one sort of answer, positive or negative. TTLs in seconds."""

    max_ttl: int  # 1 or more
    min_ttl: int = 5  # where it exceeds max_ttl, max_ttl applies
    capacity: int = DEFAULT_CAPACITY  # entries
    disabled: tuple[Name, ...] = ()  # names at and below these origins are not cached


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Refresh an entry once little of its TTL remains, if it was queried `amount` times without a long gap.

    A gap of more than `window` seconds between two queries restarts the count.
    """

    amount: int  # 1 or more
    window: float = 60.0
    percentage: int = 10  # of the TTL, 10..90


@dataclass(frozen=True, slots=True)
class ServeStale:
    """Stale answers (RFC 8767), times in seconds.

    The default of `max_age` is CoreDNS's, the other times are recommendations of RFC 8767 sections 4 and 5.
    """

    max_age: float = 3600.0  # after the TTL expired, more than 0
    verify: bool = False  # ask the upstream first, instead of sending the stale answer at once
    verify_timeout: float = 1.8  # 0: no limit
    ttl: int = 30
    recheck: float = 30.0  # minimum time between a failed refresh and the next
    prefer_positive: bool = False  # a positive answer takes precedence over a later denial


@dataclass(frozen=True, slots=True)
class Persist:
    """The file for answers that may be served stale."""

    path: str
    option: Directive  # its line of the Corefile, for errors
    interval: float = 30.0  # seconds between two writings


@dataclass(frozen=True, slots=True)
class Cache:
    """One `cache` directive. None: the option is off."""

    origins: tuple[Name, ...] = (ROOT,)
    success: Share = Share(3600)
    denial: Share = Share(1800)
    servfail: int = 5  # TTL of a SERVFAIL, 0..300; 0: not cached
    prefetch: Prefetch | None = None
    serve_stale: ServeStale | None = None
    keepttl: bool = False
    push: int = 0  # most subscriptions (DNS Push Notifications, RFC 8765); 0: off
    persist: Persist | None = None


AS_COREDNS: Final = Cache()
"""Settings of a directive without arguments and options, with CoreDNS's defaults."""


def zones_label(settings: Cache) -> str:
    """CoreDNS's label `zones`: the zones of the directive."""
    return ",".join(map(name_text, settings.origins))
