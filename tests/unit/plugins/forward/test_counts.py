"""Counts of an upstream."""

import pytest

from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask
from tests.support.scripted_upstream import refuses, says
from topodns.plugins.forward.counts import ForwardCounts, UpstreamCounts
from topodns.query.counters import DURATION_BUCKETS


@pytest.mark.parametrize(("seconds", "bucket"), [(0.0, 0), (0.00025, 0), (0.0003, 1), (0.1, 9), (8.192, 15), (9.0, 16)])
def test_replies_fall_into_coredns_s_buckets(seconds: float, bucket: int) -> None:
    counts = UpstreamCounts()
    counts.replied(0, seconds)
    expected = [0] * (len(DURATION_BUCKETS) + 1)
    expected[bucket] = 1
    assert {label: (found.counts, found.sum) for label, found in counts.durations.items()} == {
        "NOERROR": (expected, seconds)
    }


@pytest.mark.parametrize(
    ("rcode", "label"), [(0, "NOERROR"), (2, "SERVFAIL"), (3, "NXDOMAIN"), (23, "BADCOOKIE"), (24, "other")]
)
def test_codes_are_labelled_as_in_coredns_and_those_without_a_mnemonic_alike(rcode: int, label: str) -> None:
    counts = UpstreamCounts()
    counts.replied(rcode, 0.001)
    assert list(counts.durations) == [label]


def test_all_codes_that_an_upstream_can_send_have_few_labels_and_each_reply_is_counted() -> None:
    counts = UpstreamCounts()
    for rcode in range(4096):
        counts.replied(rcode, 0.001)
    assert len(counts.durations) <= 24
    assert sum(found.count() for found in counts.durations.values()) == 4096


def test_directives_that_forward_to_one_address_share_its_counts() -> None:
    counts = ForwardCounts()
    counts.upstream("192.0.2.1:53").replied(0, 0.5)
    assert counts.upstream("192.0.2.1:53").durations["NOERROR"].sum == 0.5


def test_only_replies_are_counted_each_by_how_long_it_took() -> None:
    scene = ForwardScene(refuses, says(rcode=3))
    scene.upstreams[1].delay = 0.2
    scene.asked_and_answered(ask("www.example.org"))
    assert scene.counts.upstream("192.0.2.1:53").durations == {}
    durations = scene.counts.upstream("192.0.2.2:53").durations["NXDOMAIN"]
    assert (round(durations.sum, 6), durations.count()) == (0.2, 1)
