"""The sample of the queries of the last minutes."""

import pytest

from topodns.query.query_sample import INTERVAL, MAX_SIZE, MINUTES, QuerySample

CLIENT = bytes([10, 0, 0, 1])


def received(sample: QuerySample, now: float, message: bytes = b"query") -> None:
    """As a socket does with one query."""
    sample.queries += 1
    if now >= sample.due:
        sample.take(now, message, CLIENT, b"id\x80\x83")


def test_a_query_stands_for_all_since_the_one_before_it() -> None:
    sample = QuerySample()
    for at in range(100):
        received(sample, 1 + at * INTERVAL / 10, b"query %d" % at)
    taken = list(sample.recent(2.0))
    assert [(each.message, each.queries) for each in taken[:3]] == [
        (b"query 0", 1),
        (b"query 10", 10),
        (b"query 20", 10),
    ]
    assert len(taken) == 10
    assert (taken[0].address, taken[0].rcode) == (CLIENT, 3)


def test_queries_older_than_some_minutes_are_left_out() -> None:
    sample = QuerySample()
    for at in (1.0, 2.0, 3.0):
        received(sample, at)
    assert [each.at for each in sample.recent(2.0 + MINUTES * 60)] == [2.0, 3.0]


def test_the_number_of_kept_queries_is_bounded() -> None:
    sample = QuerySample()
    for at in range(10_000):
        received(sample, float(at))
    assert len(list(sample.recent(0.0))) == MINUTES * 60 / INTERVAL


@pytest.mark.parametrize(("size", "taken"), [(MAX_SIZE, 1), (MAX_SIZE + 1, 0)])
def test_a_long_message_is_left_to_the_next_query(size: int, taken: int) -> None:
    sample = QuerySample()
    received(sample, 1.0, b"q" * size)
    assert len(list(sample.recent(1.0))) == taken
    received(sample, 2.0)
    assert sum(each.queries for each in sample.recent(2.0)) == 2
