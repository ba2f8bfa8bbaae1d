"""The sample of the queries of the last minutes."""

from collections import Counter
from random import Random

import pytest

from topodns.query.query_sample import MAX_SIZE, MINUTES, MOST_TOKENS, RATE, QuerySample

CLIENT = bytes([10, 0, 0, 1])
REPLY = b"id\x80\x83"


def received(sample: QuerySample, now: float, message: bytes = b"query") -> None:
    """As a socket does with one query."""
    if now >= sample.until:
        sample.redraw(now)
    if sample.left > 1:
        sample.left -= 1
    else:
        sample.take(now, message, CLIENT, REPLY)


def shares(sample: QuerySample) -> Counter[bytes]:
    """The estimated number of queries by their message."""
    found = Counter[bytes]()
    for each in sample.recent(0.0):
        found[each.message] += each.queries
    return found


def test_of_few_queries_each_is_taken_with_its_client_and_the_rcode_of_its_reply() -> None:
    sample = QuerySample()
    for at in range(1000):
        received(sample, at / RATE, b"query %d" % at)
    taken = list(sample.recent(0.0))
    assert [(each.message, each.queries) for each in taken] == [(b"query %d" % at, 1) for at in range(1000)]
    assert (taken[0].address, taken[0].rcode) == (CLIENT, 3)


def test_of_many_queries_some_are_taken_which_stand_for_all() -> None:
    sample = QuerySample(Random(1))
    for at in range(200_000):
        received(sample, at / 10_000)
    taken = list(sample.recent(0.0))
    assert len(taken) < MOST_TOKENS + 2 * 20 * RATE  # in 20 s
    assert sum(each.queries for each in taken) == pytest.approx(200_000, rel=0.05)


@pytest.mark.parametrize("pause", [0.1, 0.3, 1.0])
def test_each_query_of_a_burst_has_its_share(pause: float) -> None:
    """Resolvers ask for A and AAAA, of each name of a search list, at once."""
    sample = QuerySample(Random(2))
    names = [b"a", b"b", b"c", b"d"]
    for burst in range(round(MINUTES * 60 / pause)):
        for name in names:
            for _ in range(2):
                received(sample, burst * pause, name)
    found = shares(sample)
    mean = found.total() / len(names)
    assert {name: found[name] / mean for name in names} == pytest.approx(dict.fromkeys(names, 1.0), abs=0.15)


def test_a_busy_client_behind_a_quiet_one_is_the_busy_one() -> None:
    sample = QuerySample(Random(3))
    for burst in range(300):
        received(sample, burst / 4, b"quiet")
        for _ in range(10):
            received(sample, burst / 4, b"busy")
    found = shares(sample)
    assert found[b"busy"] / found[b"quiet"] == pytest.approx(10, rel=0.4)


@pytest.mark.parametrize("rate", [5, 20])
def test_after_a_flood_others_are_seen_at_once_and_stand_for_themselves_alone(rate: int) -> None:
    sample = QuerySample(Random(4))
    for at in range(500_000):
        received(sample, at / 50_000, b"flood")
    for at in range(20 * rate):
        received(sample, 10.0 + at / rate, b"other")
    found = shares(sample)
    assert found[b"other"] == pytest.approx(20 * rate, rel=0.4)
    assert found[b"flood"] + found[b""] == pytest.approx(500_000, rel=0.05)


def test_queries_older_than_some_minutes_are_left_out() -> None:
    sample = QuerySample()
    for at in (1.0, 2.0, 3.0):
        received(sample, at)
    assert [each.at for each in sample.recent(2.0 + MINUTES * 60)] == [2.0, 3.0]


def test_the_number_of_kept_queries_is_bounded() -> None:
    sample = QuerySample()
    for at in range(10_000):
        received(sample, float(at))
    assert len(list(sample.recent(0.0))) == MINUTES * 60 * RATE + MOST_TOKENS


@pytest.mark.parametrize(("size", "kept"), [(MAX_SIZE, MAX_SIZE), (MAX_SIZE + 1, 0)])
def test_a_long_message_counts_only(size: int, kept: int) -> None:
    sample = QuerySample()
    received(sample, 1.0, b"q" * size)
    assert [(len(each.message), each.queries) for each in sample.recent(1.0)] == [(kept, 1)]


def test_each_query_is_given_once_to_a_reader_that_asks_for_those_since_its_last_time() -> None:
    sample = QuerySample()
    seen, given = 0, []
    for at in range(9):
        received(sample, float(at), b"%d" % at)
        if at % 3 == 2:
            given += [each.message for each in sample.since(seen)]
            seen = sample.added
    assert given == [b"%d" % at for at in range(9)]
    assert sample.since(seen) == ()


def test_a_reader_that_comes_late_gets_the_queries_that_are_still_kept() -> None:
    sample = QuerySample()
    for at in range(10_000):
        received(sample, float(at), b"%d" % at)
    kept = [each.message for each in sample.since(0)]
    assert kept == [each.message for each in sample.recent(0.0)]
    assert kept[-1] == b"9999"
