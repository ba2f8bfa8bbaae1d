import pytest

from topodns.query.histogram import Histogram

BOUNDS = (0.25, 100.0)


def counted(*values: float) -> Histogram:
    histogram = Histogram(BOUNDS)
    for value in values:
        histogram.observe(value)
    return histogram


@pytest.mark.parametrize(
    ("value", "counts"), [(0.0, [1, 0, 0]), (0.25, [1, 0, 0]), (0.26, [0, 1, 0]), (100, [0, 1, 0]), (101, [0, 0, 1])]
)
def test_a_value_is_counted_in_the_first_bucket_whose_bound_is_not_below_it(value: float, counts: list[int]) -> None:
    assert (counted(value).counts, counted(value).sum) == (counts, value)


def test_values_known_by_their_sum_are_counted_in_the_bucket_of_their_mean() -> None:
    histogram = Histogram(BOUNDS)
    histogram.observe_mean(3, 150.0)
    assert (histogram.counts, histogram.sum, histogram.count()) == ([0, 3, 0], 150.0, 3)


def test_the_values_of_another_histogram_are_added_and_it_stays_as_it_is() -> None:
    histogram, other = counted(0.1, 200.0), counted(0.2, 50.0)
    histogram.add(other)
    assert histogram.counts == [2, 1, 1]
    assert histogram.sum == pytest.approx(250.3)
    assert other.counts == [1, 1, 0]
