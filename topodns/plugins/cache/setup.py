"""Settings and parser of `cache [TTL] [ZONES...] { OPTIONS }`, with every option of CoreDNS 1.14.7; and counters."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from topodns.corefile.arguments import choice, duration, flag, fold_options, no_body, once_each, only_arg, whole, wrong
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.dns.name import ROOT, Name, name_text
from topodns.plugins.context import Context

DEFAULT_CAPACITY = 9984  # CoreDNS's: 256 shards of 39 entries


@dataclass(frozen=True, slots=True)
class Share:
    """Settings for one sort of answer, positive or negative. TTLs in seconds."""

    max_ttl: int  # 1 or more
    min_ttl: int = 5  # where it exceeds max_ttl, max_ttl applies
    capacity: int = DEFAULT_CAPACITY  # entries
    disabled: tuple[Name, ...] = ()  # names at and below these origins are not cached


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Refresh an entry queried `amount` times without a gap over `window` seconds, when little of its TTL remains."""

    amount: int  # 1 or more
    window: float = 60.0
    percentage: int = 10  # of the TTL, 10..90


@dataclass(frozen=True, slots=True)
class ServeStale:
    """Stale answers (RFC 8767), times in seconds. The defaults are recommendations of its sections 4 to 6."""

    max_age: float = 3600.0  # after the TTL expired, more than 0
    verify: bool = False  # ask the upstream first, instead of sending the stale answer at once
    verify_timeout: float = 1.8  # 0: no limit
    ttl: int = 30
    recheck: float = 30.0  # minimum time between a failed refresh and the next
    prefer_positive: bool = False  # a positive answer takes precedence over a later denial


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


AS_COREDNS: Final = Cache()
"""Settings of a directive without arguments and options, with CoreDNS's defaults."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_MAX_NUMBER: Final = (1 << 31) - 1  # RFC 2181 section 8, for TTLs
_MAX_FAILURE: Final = 300.0  # seconds; RFC 2308 section 7.1, and the limit of RFC 8767 section 5 for the recheck
_SHARDS: Final = 256  # CoreDNS rounds a capacity down to a multiple of them
_MIN_CAPACITY: Final = 1024  # CoreDNS's: four entries per shard
_STALE_MODES: Final = {"immediate": False, "verify": True}
_SHARES: Final = ("success", "denial")


def parse_cache(directive: Directive, context: Context) -> Cache:
    """The settings of the directive. A number as the first argument is the maximum TTL of answers and denials alike.

    All other arguments are zones. Defaults are those of `context.cache`, else CoreDNS's.
    """
    once_each(directive, adding_up=set(_OPTIONS) - {"serve_stale_policy"})
    words = directive.args
    cache = context.cache or AS_COREDNS
    if words and _INTEGER.fullmatch(words[0]):
        ttl = whole(directive, words[0], 1, _MAX_NUMBER)
        cache = replace(cache, success=replace(cache.success, max_ttl=ttl), denial=replace(cache.denial, max_ttl=ttl))
        words = words[1:]
    cache = replace(cache, origins=parse_origins(directive, words) or context.origins)
    # serve_stale_policy is parsed last, since it may precede serve_stale in the body.
    options = sorted(directive.body, key=lambda option: option.name == "serve_stale_policy")
    cache = fold_options(replace(directive, body=tuple(options)), cache, _OPTIONS)
    if cache.serve_stale is not None and cache.serve_stale.max_age == 0:
        return replace(cache, serve_stale=None)
    return cache


def _success(option: Directive, cache: Cache) -> Cache:
    return replace(cache, success=_share(option, cache.success))


def _denial(option: Directive, cache: Cache) -> Cache:
    return replace(cache, denial=_share(option, cache.denial))


def _share(option: Directive, share: Share) -> Share:
    """`CAPACITY [TTL] [MINTTL]`, the capacity rounded as in CoreDNS."""
    no_body(option)
    if not 1 <= len(option.args) <= 3:
        raise wrong(option, "a capacity, and perhaps the longest and the shortest TTL")
    capacity = whole(option, option.args[0], 0, _MAX_NUMBER)
    share = replace(share, capacity=max(_MIN_CAPACITY, capacity - capacity % _SHARDS))
    if len(option.args) > 1:
        share = replace(share, max_ttl=whole(option, option.args[1], 1, _MAX_NUMBER))
    if len(option.args) > 2:
        share = replace(share, min_ttl=whole(option, option.args[2], 0, _MAX_NUMBER))
    return share


def _prefetch(option: Directive, cache: Cache) -> Cache:
    """`AMOUNT [[DURATION] [PERCENTAGE%]]`; an amount of 0 switches it off."""
    no_body(option)
    if not 1 <= len(option.args) <= 3:
        raise wrong(option, "an amount, and perhaps a duration and a percentage")
    amount = whole(option, option.args[0], 0, _MAX_NUMBER)
    prefetch = Prefetch(amount)
    if len(option.args) > 1:
        prefetch = replace(prefetch, window=duration(option, option.args[1]))
    if len(option.args) > 2:
        prefetch = replace(prefetch, percentage=_percentage(option, option.args[2]))
    return replace(cache, prefetch=prefetch if amount else None)


def _percentage(option: Directive, text: str) -> int:
    if not text.endswith("%"):
        raise option.error(f"'{option.name}' has {shown(text)}, expected a percentage such as 10%")
    return whole(option, text[:-1], 10, 90)


def _serve_stale(option: Directive, cache: Cache) -> Cache:
    """`off`, or `[DURATION] [immediate [TTL [RECHECK]] | verify [TIMEOUT [TTL [RECHECK]]]]`."""
    no_body(option)
    if option.args == ("off",):  # our extension: CoreDNS, where it is off by default, has no such word
        return replace(cache, serve_stale=None)
    stale = ServeStale()
    if option.args:
        stale = replace(stale, max_age=duration(option, option.args[0]))
    if len(option.args) > 1:
        stale = replace(stale, verify=choice(option, option.args[1].lower(), _STALE_MODES))
    readers = _STALE_NUMBERS if stale.verify else _STALE_NUMBERS[1:]
    numbers = option.args[2:]
    if len(numbers) > len(readers):
        raise wrong(option, f"at most {len(readers)} durations after the refresh mode")
    for reader, text in zip(readers, numbers, strict=False):
        stale = reader(option, text, stale)
    return replace(cache, serve_stale=stale)


def _verify_timeout(option: Directive, text: str, stale: ServeStale) -> ServeStale:
    return replace(stale, verify_timeout=duration(option, text))


def _stale_ttl(option: Directive, text: str, stale: ServeStale) -> ServeStale:
    seconds = duration(option, text)
    if seconds != int(seconds) or seconds > _MAX_NUMBER:
        raise option.error(f"'{option.name}' has the TTL {shown(text)}, expected whole seconds")
    return replace(stale, ttl=int(seconds))


def _recheck(option: Directive, text: str, stale: ServeStale) -> ServeStale:
    return replace(stale, recheck=_at_most_5m(option, text))


def _serve_stale_policy(option: Directive, cache: Cache) -> Cache:
    word = only_arg(option, "prefer_positive")
    choice(option, word.lower(), {"prefer_positive": True})
    if cache.serve_stale is None:
        raise option.error("found 'serve_stale_policy' without 'serve_stale', expected both")
    return replace(cache, serve_stale=replace(cache.serve_stale, prefer_positive=True))


def _servfail(option: Directive, cache: Cache) -> Cache:
    """The duration in whole seconds, rounded down: 0.5s is 0, as in CoreDNS."""
    return replace(cache, servfail=int(_at_most_5m(option, only_arg(option, "a duration"))))


def _at_most_5m(option: Directive, text: str) -> float:
    seconds = duration(option, text)
    if seconds > _MAX_FAILURE:
        raise option.error(f"'{option.name}' has {shown(text)}, expected at most 5m")
    return seconds


def _disable(option: Directive, cache: Cache) -> Cache:
    """`success|denial [ZONES...]`; without zones, for all names. A later line for the same sort replaces the former."""
    no_body(option)
    if not option.args or option.args[0] not in _SHARES:
        raise wrong(option, "success or denial, and perhaps zones")
    origins = parse_origins(option, option.args[1:]) or (ROOT,)
    if option.args[0] == "success":
        return replace(cache, success=replace(cache.success, disabled=origins))
    return replace(cache, denial=replace(cache.denial, disabled=origins))


def _keepttl(option: Directive, cache: Cache) -> Cache:
    flag(option)
    return replace(cache, keepttl=True)


_STALE_NUMBERS: Final = (_verify_timeout, _stale_ttl, _recheck)

_OPTIONS: Final[Mapping[str, Callable[[Directive, Cache], Cache]]] = {
    "success": _success,
    "denial": _denial,
    "prefetch": _prefetch,
    "serve_stale": _serve_stale,
    "serve_stale_policy": _serve_stale_policy,
    "servfail": _servfail,
    "disable": _disable,
    "keepttl": _keepttl,
}


def zones_label(settings: Cache) -> str:
    """CoreDNS's label `zones`: the zones of the directive."""
    return ",".join(map(name_text, settings.origins))


@dataclass(slots=True)
class TableCounts:
    """Counters of one table, kept over reloads."""

    evictions: int = 0  # entries removed to make room


@dataclass(slots=True)
class CacheCounts:
    """Counters of a cache. Hits, including copies from the packet cache, are in the general counters as plugin "cache".

    May be passed on to the cache of the next configuration, so that a reload keeps the counts.
    """

    misses: int = 0  # answers of an upstream, including those of an awaited refresh
    prefetches: int = 0  # refreshes in the background
    served_stale: int = 0
    drops: int = 0  # answers too large to be cached
    success: TableCounts = field(default_factory=TableCounts)
    denial: TableCounts = field(default_factory=TableCounts)
