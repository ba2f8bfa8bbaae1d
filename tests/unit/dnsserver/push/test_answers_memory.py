"""The memory that subscriptions take, beside what they count for the limit: bench/push_memory.py prints more of it."""

import pytest

from bench.push_memory import ZONE, measure


@pytest.mark.parametrize(
    ("clients", "services", "keys", "most_each"),
    [(1, 200, None, 2500), (20, 100, None, 400), (20, 40, ZONE, 1500)],
    ids=["one-client", "shared-answers", "answers-by-zone"],
)
def test_what_counts_for_the_limit_is_what_is_allocated_and_somewhat_more(
    clients: int, services: int, keys: str | None, most_each: int
) -> None:
    measured = measure(clients, services, keys)
    assert measured.allocated <= measured.counted <= 2 * measured.allocated
    assert measured.counted / measured.subscribed < most_each
