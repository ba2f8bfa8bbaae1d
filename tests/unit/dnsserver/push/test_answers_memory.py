"""The memory that subscriptions take, beside what they count for the limit: bench/push_memory.py prints more of it."""

from collections.abc import Collection

import pytest

from bench.push_memory import SRV, ZONE, measure
from topodns.dns.rrtype import ADDRESS_TYPES


@pytest.mark.parametrize(
    ("clients", "services", "keys", "qtypes", "most_each"),
    [
        (1, 100, None, ADDRESS_TYPES, 2500),
        (20, 30, None, ADDRESS_TYPES, 400),
        (20, 20, ZONE, ADDRESS_TYPES, 1500),
        (1, 150, None, SRV, 3500),
        (20, 40, None, SRV, 400),
    ],
    ids=["one-client", "shared-answers", "answers-by-zone", "targets", "shared-targets"],
)
def test_what_counts_for_the_limit_is_what_is_allocated_and_somewhat_more(
    clients: int, services: int, keys: str | None, qtypes: Collection[int], most_each: int
) -> None:
    measured = measure(clients, services, keys, qtypes)
    assert measured.allocated <= measured.counted <= 2 * measured.allocated
    assert measured.counted / measured.subscribed < most_each
