"""Metrics of several processes as sums."""

from collections.abc import Iterable

import pytest

from topodns.app.workers.metric_sums import Families, family_samples, totals
from topodns.inspect.page.page import totals_of
from topodns.metrics.registry import Distribution, Published, Reading
from topodns.query.histogram import Histogram

Rows = list[tuple[tuple[str, ...], float]]


def reading(name: str, rows: Rows, kind: str = "counter", adds_up: bool = True) -> Reading:
    return Reading(name, "", kind, ("l",), lambda: rows, adds_up)  # type: ignore[arg-type]


def distribution(*values: float) -> Distribution:
    counted = Histogram((1, 2))
    for value in values:
        counted.observe(value)
    return Distribution("took", "", ("l",), lambda: [(("a",), counted)])


def families(*published: Published) -> Families:
    """As a worker reports them."""
    found = Families()
    for each in published:
        if (samples := family_samples(each)) is not None:
            found.take(samples)
    return found


def samples(own: Iterable[Published], others: Families) -> dict[str, Rows]:
    return {
        each.name: sorted(each.read())
        for each in totals(own, others)
        if isinstance(each, Reading) and tuple(each.read())
    }


def test_counters_and_gauges_add_up_by_label_values() -> None:
    own = [reading("asked", [(("a",), 1), (("b",), 2)]), reading("held", [(("a",), 1)], "gauge")]
    others = families(reading("asked", [(("b",), 5), (("c",), 7)]), reading("held", [(("a",), 2)], "gauge"))
    assert samples(own, others) == {"asked": [(("a",), 1), (("b",), 7), (("c",), 7)], "held": [(("a",), 3)]}


def test_what_does_not_add_up_is_that_of_the_first_process() -> None:
    own = [reading("when", [(("a",), 1)], "gauge", adds_up=False)]
    assert family_samples(own[0]) is None
    assert samples(own, families(reading("when", [(("a",), 5)], "gauge"))) == {"when": [(("a",), 1)]}


def test_the_parts_of_a_family_come_as_one_so_that_no_sample_comes_twice() -> None:
    own = [reading("asked", []), reading("asked", [(("a",), 1)]), reading("asked", [(("b",), 1)])]
    others = families(reading("asked", [(("b",), 3)]))
    assert samples(own, others) == {"asked": [(("a",), 1), (("b",), 4)]}
    assert [len(list(each.read())) for each in totals(own, others)] == [0, 0, 0, 2]  # it may pause between


def test_histograms_add_up_by_bucket() -> None:
    others = families(distribution(1.5, 9.0))
    *_, last = totals([distribution(0.5)], others)
    ((labels, counted),) = last.read()
    assert isinstance(counted, Histogram)
    assert (labels, counted.counts, counted.sum) == (("a",), [1, 1, 1], 11.0)


def test_a_histogram_that_only_a_worker_has_is_in_the_sum() -> None:
    empty = Distribution("took", "", ("l",), lambda: [])
    *_, last = totals([empty], families(distribution(1.5)))
    ((_, counted),) = last.read()
    assert isinstance(counted, Histogram)
    assert counted.count() == 1


def counts_of(found: Families) -> list[int]:
    counted = found.of("took")[("a",)]
    assert isinstance(counted, Histogram)
    return counted.counts


def test_of_a_worker_that_has_ended_only_counts_stay() -> None:
    past = Families()
    ended = families(reading("asked", [(("a",), 1)]), reading("held", [(("a",), 2)], "gauge"), distribution(1.5))
    past.add(ended, gauges=False)
    past.add(ended, gauges=False)
    assert {name: past.of(name) for name in past.samples if name != "took"} == {"asked": {("a",): 2}}
    assert counts_of(past) == [0, 2, 0]
    assert counts_of(ended) == [0, 1, 0]


@pytest.mark.parametrize("times", [1, 3])
def test_the_topology_page_gets_misses_and_sources_of_the_workers(times: int) -> None:
    misses = Reading("topodns_misses", "", "counter", ("name", "outcome"), lambda: [(("shop/db", "no_match"), 4)])
    sources = Reading("topodns_unlocated_sources", "", "counter", ("prefix",), lambda: [(("192.0.2.0/24",), 2)])
    found = Families()
    for _ in range(times):
        found.add(families(misses, sources))
    missed, prefixes = totals_of([found.missed()])
    assert (missed, prefixes) == ({"shop/db": 4 * times}, {"192.0.2.0/24": 2 * times})
