"""Misses of the last minutes."""

from collections import Counter

from topodns.inspect.page.page import EVERY, MINUTES, RecentCounts, totals_of
from topodns.query.counters import QueryCounters, ReplyKind

KIND = ReplyKind("cluster.local.", "A", "NOERROR", "kubernetes", False, "no_match", "", 1, 1)


def test_of_a_young_process_all_misses_are_recent() -> None:
    counts = RecentCounts()
    assert counts.recent(Counter({"a/b": 3})) == {"a/b": 3}


def test_a_miss_is_recent_for_the_minutes_and_no_longer() -> None:
    counts = RecentCounts()
    for _ in range(round(MINUTES * 60 / EVERY) - 1):
        counts.sample(Counter({"a/b": 3}))
    assert counts.recent(Counter({"a/b": 4})) == {"a/b": 4}
    counts.sample(Counter({"a/b": 4}))
    counts.sample(Counter({"a/b": 4}))
    assert counts.recent(Counter({"a/b": 4, "c/d": 1})) == {"a/b": 1, "c/d": 1}


def test_the_memory_is_bounded() -> None:
    counts = RecentCounts()
    for number in range(1000):
        counts.sample(Counter({"a/b": number}))
    assert len(counts._samples) == 21


def test_totals_add_up_sockets_and_kinds() -> None:
    first, second = QueryCounters("a", "udp", "1"), QueryCounters("b", "tcp", "1")
    for counters, kind, times in (
        (first, KIND._replace(missed="a/b"), 2),
        (first, KIND._replace(missed="a/b", qtype="AAAA", prefix="10.0.0.0/24"), 1),
        (second, KIND._replace(missed="c/d"), 4),
        (second, KIND, 8),
    ):
        for _ in range(times):
            counters.count_kind(kind, 0.0, 40, 90)
    assert totals_of([first, second]) == ({"a/b": 3, "c/d": 4}, {"10.0.0.0/24": 1})
