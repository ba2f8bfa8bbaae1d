"""Parser and setup of `cache [TTL] [ZONES...] { OPTIONS }`, with every option of CoreDNS 1.14.7."""

import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from topodns.corefile.arguments import (
    choice,
    duration,
    fold_options,
    is_duration,
    no_body,
    once_each,
    only_arg,
    switch,
    whole,
    wrong,
)
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.corefile.zones import parse_origins
from topodns.dns.message import Option
from topodns.dns.name import ROOT, name_text
from topodns.dns.rrtype import ADDRESS_TYPES
from topodns.plugins.cache.counts import CacheCounts, PersistCounts, SubscriptionCounts
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.metrics import cache_labels, readings
from topodns.plugins.cache.settings import (
    AS_COREDNS,
    DEFAULT_SUBSCRIPTIONS,
    Cache,
    Persist,
    Prefetch,
    ServeStale,
    Share,
    zones_label,
)
from topodns.plugins.cache.store import Room, room_of
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.forward.handler import Forwarding
from topodns.plugins.forward.lazy_upstream import LazyUpstream
from topodns.plugins.plugin import FastPath, Plugin, origins
from topodns.plugins.setup import BlockSetup, Install
from topodns.query.plugin import ChainPart

log = logging.getLogger(__name__)

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_MAX_NUMBER: Final = (1 << 31) - 1  # RFC 2181 section 8, for TTLs
_MAX_FAILURE: Final = 300.0  # seconds; RFC 2308 section 7.1, and the limit of RFC 8767 section 5 for the recheck
_SHARDS: Final = 256  # CoreDNS rounds a capacity down to a multiple of them
_MIN_CAPACITY: Final = 1024  # CoreDNS's: four entries per shard
_STALE_MODES: Final = {"immediate": False, "verify": True}
_SHARES: Final = ("success", "denial")
_SHORTEST_INTERVAL: Final = 1.0  # seconds between two writings of the file
_MAX_SUBSCRIPTIONS: Final = 50_000  # each needs a message id, of which a connection has 65,535


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
    for word in words:
        if is_duration(word) or not set(word) & set(".:/"):
            remedy = "" if is_duration(word) else "; if the zone is meant, end it in a dot"
            context.warn(
                f"plugin/cache: {directive.shown_argument(word)} is a zone, as in CoreDNS, and answers outside it are "
                f"not cached; a TTL is a number of seconds without a unit{remedy} ({directive.place})"
            )
    cache = replace(cache, origins=parse_origins(directive, words) or context.origins)
    # serve_stale_policy is parsed last, since it may precede serve_stale in the body.
    options = sorted(directive.body, key=lambda option: option.name == "serve_stale_policy")
    readers: _Readers = {**_OPTIONS, "persist": partial(_persist, context)}
    cache = fold_options(replace(directive, body=tuple(options)), cache, readers)
    if cache.serve_stale is not None and cache.serve_stale.max_age == 0:
        cache = replace(cache, serve_stale=None)
    if cache.persist is not None and cache.serve_stale is None:
        raise cache.persist.option.error("found 'persist' without 'serve_stale', expected both")
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
    """`off`, or `[DURATION [immediate [TTL [RECHECK]] | verify [TIMEOUT [TTL [RECHECK]]]]]`."""
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


def _push(option: Directive, cache: Cache) -> Cache:
    """`push [SUBSCRIPTIONS]`, an extension: CoreDNS has no DNS Push Notifications. 0 switches it off."""
    no_body(option)
    if not option.args:
        return replace(cache, push=DEFAULT_SUBSCRIPTIONS)
    return replace(cache, push=whole(option, only_arg(option, "the most subscriptions"), 0, _MAX_SUBSCRIPTIONS))


def _persist(context: Context, option: Directive, cache: Cache) -> Cache:
    """`persist FILE [interval DURATION]`, an extension: CoreDNS's cache is empty after a start."""
    no_body(option)
    match option.args:
        case (file,):
            return replace(cache, persist=Persist(context.path(option, file), option))
        case (file, "interval", text):
            seconds = duration(option, text)
            if seconds < _SHORTEST_INTERVAL:
                raise option.error(f"'{option.name}' has {shown(text)}, expected at least 1s")
            return replace(cache, persist=Persist(context.path(option, file), option, seconds))
    raise wrong(option, "a file, and perhaps 'interval' and a duration")


_STALE_NUMBERS: Final = (_verify_timeout, _stale_ttl, _recheck)

_Readers = Mapping[str, Callable[[Directive, Cache], Cache]]

_OPTIONS: Final[_Readers] = {
    "success": _success,
    "denial": _denial,
    "prefetch": _prefetch,
    "serve_stale": _serve_stale,
    "serve_stale_policy": _serve_stale_policy,
    "servfail": _servfail,
    "disable": _disable,
    "keepttl": switch("keepttl"),
    "push": _push,
}


def _setup(settings: Cache, block: BlockSetup) -> Install:
    """One cache for all servers of the block; evictions and too large answers are counted under the first server."""
    process, forwards = block.process, block.provided(Forwarding)

    def upstreams_down() -> bool:
        return bool(forwards) and all(forward.all_down for forward in forwards)

    counts = _counts(block, settings, block.block.servers[0])
    room = process.shared.get(Room, make=partial(room_of, process.memory, process.timers.time))
    cache = block.provide(
        ResponseCache(settings=settings, timers=process.timers, counts=counts, room=room, upstreams_down=upstreams_down)
    )
    if forwards and all(_sends_identity(forward) for forward in forwards):
        # Imported here: only a node cache has it. With another upstream in the block, that one would learn the clients.
        from topodns.plugins.cache.pod_naming import PodNaming

        cache.naming = PodNaming(process.timers)
        block.on_start(cache.naming.start)
        block.on_close(cache.naming.close)
    if settings.push:
        _subscribe(cache, settings, block)
    if settings.persist is not None:
        _keep_on_disk(cache, settings, settings.persist, block)
    return lambda listener: (ChainPart(around=counting_cache(block, listener.server)),)


def _sends_identity(forward: Forwarding) -> bool:
    """Whether the upstreams are the cluster DNS of a node cache."""
    return any(code == Option.NODE_IDENTITY for code, _ in forward.outgoing.options)


def _subscribe(cache: ResponseCache, settings: Cache, block: BlockSetup) -> None:
    """Let the cache subscribe to its entries at the upstreams of the block's `forward`.

    Logs a warning instead if the block has several: no upstream of one answers for the names of another.
    """
    forwards, upstreams = block.provided(Forwarding), block.provided(LazyUpstream)
    if len(forwards) != 1:
        log.warning("plugin/cache: push is off in a server block with %d 'forward', expected one", len(forwards))
        return
    # Imported here: most processes have no `push`.
    from topodns.plugins.cache.subscriptions import PushSubscriptions

    process = block.process
    node_name = next((text for code, text in forwards[0].outgoing.options if code == Option.NODE_IDENTITY), b"")
    counts = process.shared.get(SubscriptionCounts, *cache_labels(block.block, settings, block.block.servers[0]))
    cache.push = PushSubscriptions(
        most=settings.push,
        upstreams=upstreams,
        entries=cache.memory,
        changed=block.changed,
        timers=process.timers,
        rng=process.rng,
        counts=counts,
        node_name=node_name,
    )
    block.on_close(cache.push.close)


def _keep_on_disk(cache: ResponseCache, settings: Cache, persist: Persist, block: BlockSetup) -> None:
    """Let the answers of the cache survive the process."""
    # Imported here: most processes have no `persist`.
    from topodns.plugins.cache.persistence import Persistence

    process = block.process
    persistence = Persistence(
        settings=persist,
        owner=_owner(settings, block),
        memory=cache.memory,
        timers=process.timers,
        counts=process.shared.get(PersistCounts, *cache_labels(block.block, settings, block.block.servers[0])),
        writes=not process.is_worker,
    )
    block.before_queries(persistence.read)
    block.run(persistence)


def _owner(settings: Cache, block: BlockSetup) -> tuple[str, ...]:
    """What decides whose answers a cache has: block, view, zones, and the Node for whose clients upstreams answer."""
    keys = " ".join(sorted(f"{name_text(key.origin)}:{key.port}" for key in block.block.keys))
    node_name = block.process.identity.node_name if block.process.identity is not None else ""
    without = [",".join(map(name_text, share.disabled)) for share in (settings.success, settings.denial)]
    return keys, block.block.view_name, zones_label(settings), node_name, *without


def _check(directive: Directive, settings: Cache, directives: Collection[str]) -> None:
    if "forward" in directives:
        return
    for name, value in (("push", settings.push), ("persist", settings.persist)):
        if value:
            raise directive.error(
                f"found '{name}' in a server block without 'forward', expected both: only answers of upstreams are "
                "cached"
            )


def counting_cache(block: BlockSetup, server: str) -> ResponseCache | None:
    """The cache of the block with the counters of this server (a metric label); None without `cache`."""
    cache = block.first(ResponseCache)
    return None if cache is None else cache.counting(_counts(block, block.block.settings["cache"], server))


def _counts(block: BlockSetup, settings: Cache, server: str) -> CacheCounts:
    return block.process.shared.get(CacheCounts, *cache_labels(block.block, settings, server))


PLUGIN: Final = Plugin(
    name="cache",
    coredns=differs(
        Effect.ANSWER,
        "only answers of `forward` are cached: those of the cluster, files and templates are always current; TTL 0 is "
        "not cached, and names queried once do not evict names queried often",
        serve_stale=differs(
            Effect.BOUNDS,
            "omitted numbers are RFC 8767's: a TTL of 30s, a refresh 30s after a failure, a wait of 1.8s in `verify`",
        ),
        success=differs(Effect.BOUNDS, "the limit is on octets as well"),
        denial=differs(Effect.BOUNDS, "the limit is on octets as well"),
    ),
    parse=parse_cache,
    zones=origins,
    setup=_setup,
    check=_check,
    spells=ADDRESS_TYPES,
    fast_path=FastPath.PASSED,
    metrics=readings,
)
