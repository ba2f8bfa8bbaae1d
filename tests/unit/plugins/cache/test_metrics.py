"""Metrics of caches in a scrape."""

from functools import partial
from typing import Any

import pytest

from tests.support.cache_with_upstream import denied, positive, question
from tests.support.chains import process, set_up
from tests.support.corefile_settings import settings
from tests.support.exposition_samples import counted
from tests.support.plugin_metrics import shown
from topodns.plugins.cache.counts import CacheCounts, SubscriptionCounts
from topodns.plugins.cache.entry import CacheEntry, Sort, key_of
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.setup import Shared
from topodns.query.counters import CacheHit, QueryCounters, ReplyKind

HERE = ("dns://:53", ".", "")
HIT = ReplyKind(".", "A", "NOERROR", "cache", False, "", "", 1, 1, detail=CacheHit("success", "."))

cache_shown = partial(shown, "cache")


def test_hits_are_those_of_the_counters_and_a_stale_one_is_of_its_sort() -> None:
    hits = [
        (HIT, 5),
        (HIT._replace(detail=CacheHit("success", ".", stale=True)), 2),
        (HIT._replace(detail=CacheHit("denial", "."), qtype="AAAA"), 3),
    ]
    other = QueryCounters("dns://10.96.0.10:53", "tcp", "1")
    counted([(HIT._replace(detail=CacheHit("denial", "a.,b.", stale=True), view="inside"), 1)], into=other)
    missed = HIT._replace(plugin="forward", detail=None)
    assert cache_shown("coredns_cache_hits_total", counters=[counted([*hits, (missed, 9)]), other]) == {
        '{server="dns://:53",type="success",view="",zones="."}': 7,
        '{server="dns://:53",type="denial",view="",zones="."}': 3,
        '{server="dns://10.96.0.10:53",type="denial",view="inside",zones="a.,b."}': 1,
    }


def test_requests_are_hits_and_misses() -> None:
    shared = Shared()
    shared.get(CacheCounts, *HERE).misses = 4
    shared.get(CacheCounts, "dns://:5353", ".", "").misses = 1
    counters = [counted([(HIT, 5)]), counted([(HIT, 2)], into=QueryCounters("dns://:53", "tcp", "1"))]
    assert cache_shown("coredns_cache_requests_total", shared, counters=counters) == {
        '{server="dns://:53",view="",zones="."}': 11,
        '{server="dns://:5353",view="",zones="."}': 1,
    }
    assert list(cache_shown("coredns_cache_misses_total", shared).values()) == [4, 1]


@pytest.mark.parametrize(
    ("attribute", "name"), [("prefetches", "prefetch"), ("served_stale", "served_stale"), ("drops", "drops")]
)
def test_counts_of_a_cache_have_coredns_s_names(attribute: str, name: str) -> None:
    shared = Shared()
    setattr(shared.get(CacheCounts, *HERE), attribute, 3)
    assert cache_shown(f"coredns_cache_{name}_total", shared) == {'{server="dns://:53",view="",zones="."}': 3}


def test_evictions_are_counted_by_type() -> None:
    shared = Shared()
    counts = shared.get(CacheCounts, *HERE)
    counts.success.evictions, counts.denial.evictions = 2, 9
    assert cache_shown("coredns_cache_evictions_total", shared) == {
        '{server="dns://:53",type="success",view="",zones="."}': 2,
        '{server="dns://:53",type="denial",view="",zones="."}': 9,
    }


def test_entries_are_shown_for_each_server_of_the_block() -> None:
    prepared = set_up(settings("a. b.:54 {\n bind 127.0.0.1 127.0.0.2\n cache\n}").blocks[0])
    (cache,) = prepared.provided(ResponseCache)
    for name, response in (("x.a. A", positive()), ("y.a. A", positive()), ("z.b. A", denied())):
        cache.memory.learn(key_of(question(name)), question(name), response, b"")
    servers = [f"dns://127.0.0.{host}:{port}" for host in (1, 2) for port in (53, 54)]
    expected = {}
    for server in servers:
        expected[f'{{server="{server}",type="success",view="",zones="a.,b."}}'] = 2
        expected[f'{{server="{server}",type="denial",view="",zones="a.,b."}}'] = 1
    assert cache_shown("coredns_cache_entries", blocks=[prepared]) == expected


def test_the_failures_of_all_caches_are_counted_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    running = process()
    blocks = settings("a. {\n cache\n}\nb. c. {\n cache\n}\nd. {\n cache\n}").blocks
    prepared = [set_up(block, running) for block in blocks]
    for number, each in enumerate(prepared):
        (cache,) = each.provided(ResponseCache)
        for key in range(number):
            cache.memory.failure.insert(b"%d" % key, CacheEntry(b"", Sort.FAILURE, 5, running.timers.time()))
    entries = type(cache.memory.failure.table.entries)
    passes: list[object] = []
    keys = entries.__iter__

    def counted_pass(table: Any) -> Any:
        passes.append(table)
        return keys(table)

    monkeypatch.setattr(entries, "__iter__", counted_pass)
    shown = cache_shown("coredns_cache_entries", blocks=prepared)
    assert [
        shown[f'{{server="dns://:53",type="denial",view="",zones="{zones}"}}'] for zones in ("a.", "b.,c.", "d.")
    ] == [0, 1, 2]
    assert len(passes) == 1


def test_a_reload_keeps_the_counts_of_a_cache() -> None:
    running = process()
    for _ in range(2):
        prepared = set_up(settings(". {\n cache {\n  success 1024\n }\n}").blocks[0], running)
        (cache,) = prepared.provided(ResponseCache)
        for number in range(1025):
            query = question(f"{number}. A")
            cache.memory.learn(key_of(query), query, positive(), b"")
        cache.counts.misses += 1
    evicted = cache_shown("coredns_cache_evictions_total", running.shared)
    assert evicted['{server="dns://:53",type="success",view="",zones="."}'] == 2 * (1025 - 1024 + 1024 // 64)
    assert list(cache_shown("coredns_cache_misses_total", running.shared).values()) == [2]


PUSH_COUNTS = [
    ("messages", "messages_total"),
    ("expired", "expired_total"),
    ("strays", "strays_total"),
    ("contradicted", "contradicted_total"),
]


@pytest.mark.parametrize(("attribute", "name"), PUSH_COUNTS)
def test_counts_of_pushes_are_those_of_the_cache(attribute: str, name: str) -> None:
    shared = Shared()
    setattr(shared.get(SubscriptionCounts, *HERE), attribute, 3)
    assert cache_shown(f"topodns_cache_push_{name}", shared) == {'{server="dns://:53",view="",zones="."}': 3}


def test_sessions_and_subscriptions_that_did_not_come_about_are_counted_by_reason() -> None:
    shared = Shared()
    counts = shared.get(SubscriptionCounts, *HERE)
    counts.refused_sessions, counts.failed_sessions, counts.lost_sessions = 2, 3, 5
    counts.refused.update({"NOTAUTH": 1, "other": 4})
    assert cache_shown("topodns_cache_push_sessions_ended_total", shared) == {
        '{reason="refused",server="dns://:53",view="",zones="."}': 2,
        '{reason="failed",server="dns://:53",view="",zones="."}': 3,
        '{reason="lost",server="dns://:53",view="",zones="."}': 5,
    }
    assert cache_shown("topodns_cache_push_refused_total", shared) == {
        '{rcode="NOTAUTH",server="dns://:53",view="",zones="."}': 1,
        '{rcode="other",server="dns://:53",view="",zones="."}': 4,
    }


def test_sessions_and_subscriptions_are_those_of_caches_with_push() -> None:
    (first, second) = settings(
        "a. b.:54 {\n cache {\n  push\n }\n forward . 192.0.2.1\n}\nc. {\n cache\n forward . 192.0.2.1\n}"
    ).blocks
    blocks = [set_up(first), set_up(second)]
    for name in ("sessions", "subscriptions"):
        assert cache_shown(f"topodns_cache_push_{name}", blocks=blocks) == {
            '{server="dns://:53",view="",zones="a.,b."}': 0
        }
