"""Metrics of known counts of queries, read back by Prometheus's own parser."""

from collections.abc import Callable

import pytest

from tests.support.exposition_samples import counted, only, scraped
from topodns.query.counters import (
    DURATION_BUCKETS,
    SIZE_BUCKETS,
    LocalhostAnswer,
    QueryCounters,
    ReplyKind,
    size_bucket,
)

CLUSTER = ReplyKind("cluster.local.", "A", "NOERROR", "kubernetes", False, "", "", 1, 1)

PLACE = 'server="dns://:53",view="",zone="cluster.local."'


def socket_counters(transport: str = "udp", family: str = "1", server: str = "dns://:53") -> QueryCounters:
    return QueryCounters(server, transport, family)


def test_requests_and_responses_carry_coredns_s_labels() -> None:
    samples = scraped(
        counted([(CLUSTER, 3), (CLUSTER._replace(rcode="NXDOMAIN", qtype="AAAA"), 1)]),
        counted([(CLUSTER._replace(query_bucket=2), 2)], into=socket_counters("tcp", "2")),
    )
    assert only(samples, "coredns_dns_requests_total") == {
        '{family="1",proto="udp",server="dns://:53",type="A",view="",zone="cluster.local."}': 3,
        '{family="1",proto="udp",server="dns://:53",type="AAAA",view="",zone="cluster.local."}': 1,
        '{family="2",proto="tcp",server="dns://:53",type="A",view="",zone="cluster.local."}': 2,
    }
    assert only(samples, "coredns_dns_responses_total") == {
        '{plugin="kubernetes",rcode="NOERROR",server="dns://:53",view="",zone="cluster.local."}': 5,
        '{plugin="kubernetes",rcode="NXDOMAIN",server="dns://:53",view="",zone="cluster.local."}': 1,
    }


def test_kinds_that_differ_in_no_label_are_one_sample() -> None:
    samples = scraped(counted([(CLUSTER, 2), (CLUSTER._replace(response_bucket=3), 5)]))
    assert list(only(samples, "coredns_dns_responses_total").values()) == [7]


def test_servers_and_origins_have_samples_of_their_own() -> None:
    other = counted([(CLUSTER._replace(origin="."), 1)], into=socket_counters(server="dns://127.0.0.1:5353"))
    samples = scraped(counted([(CLUSTER, 1), (CLUSTER._replace(origin="dropped", plugin=""), 1)]), other)
    assert only(samples, "coredns_dns_responses_total") == {
        '{plugin="kubernetes",rcode="NOERROR",server="dns://:53",view="",zone="cluster.local."}': 1,
        '{plugin="",rcode="NOERROR",server="dns://:53",view="",zone="dropped"}': 1,
        '{plugin="kubernetes",rcode="NOERROR",server="dns://127.0.0.1:5353",view="",zone="."}': 1,
    }


def test_do_requests_are_those_with_the_do_bit() -> None:
    samples = scraped(counted([(CLUSTER, 3), (CLUSTER._replace(dnssec_ok=True), 2)]))
    assert only(samples, "coredns_dns_do_requests_total") == {f"{{{PLACE}}}": 2}


def buckets(samples: dict[str, float], name: str) -> dict[str, float]:
    """The cumulative counts by upper bound."""
    lines = only(samples, f"{name}_bucket")
    return {line.split('le="')[1].split('"')[0]: value for line, value in lines.items()}


def test_durations_are_a_histogram_over_both_transports() -> None:
    samples = scraped(
        counted([(CLUSTER, 3)], 0.0002),
        counted([(CLUSTER, 2)], 0.0004, into=socket_counters("tcp")),
        counted([(CLUSTER, 1)], 100.0, into=socket_counters("tcp", "2")),
    )
    name = "coredns_dns_request_duration_seconds"
    found = buckets(samples, name)
    assert list(found) == [*(f"{bound:g}" for bound in DURATION_BUCKETS), "+Inf"]
    assert list(found)[:3] == ["0.00025", "0.0005", "0.001"]
    assert list(found.values()) == [3.0] + [5.0] * 15 + [6.0]
    assert only(samples, f"{name}_count") == {f"{{{PLACE}}}": 6}
    assert only(samples, f"{name}_sum")[f"{{{PLACE}}}"] == pytest.approx(3 * 0.0002 + 2 * 0.0004 + 100.0)


@pytest.mark.parametrize(
    ("name", "sized"),
    [
        ("request", lambda size: (size, 61)),
        ("response", lambda size: (45, size)),
    ],
)
def test_sizes_are_histograms_by_transport(name: str, sized: Callable[[int], tuple[int, int]]) -> None:
    sizes = {100: 1, 101: 2, 511: 3, 512: 4, 65535: 5}
    counts = socket_counters()
    for size, times in sizes.items():
        buckets_of = [size_bucket(each) for each in sized(size)]
        kind = CLUSTER._replace(query_bucket=buckets_of[0], response_bucket=buckets_of[1])
        counted([(kind, times)], into=counts, sizes=sized(size))
    samples = scraped(counts)
    found = buckets(samples, f"coredns_dns_{name}_size_bytes")
    assert list(found) == [*map(str, SIZE_BUCKETS), "+Inf"]
    assert found == {
        "0": 0,
        "100": 1,
        **dict.fromkeys(("200", "300", "400"), 3),
        "511": 6,
        **dict.fromkeys(("1023", "2047", "4095", "8291", "16000", "32000", "48000", "64000"), 10),
        "+Inf": 15,
    }
    labels = '{proto="udp",' + PLACE + "}"
    assert only(samples, f"coredns_dns_{name}_size_bytes_count") == {labels: 15}
    assert only(samples, f"coredns_dns_{name}_size_bytes_sum") == {
        labels: sum(size * times for size, times in sizes.items())
    }


def test_a_dropped_query_is_a_request_without_response() -> None:
    samples = scraped(counted([(CLUSTER._replace(rcode="", plugin="acl", response_bucket=0), 4)]))
    assert list(only(samples, "coredns_dns_requests_total").values()) == [4]
    assert only(samples, "coredns_dns_responses_total") == {}
    assert only(samples, "coredns_dns_response_size_bytes_count") == {}


def test_decisions_of_topology_are_counted_by_outcome_and_key() -> None:
    zone = "topology.kubernetes.io/zone"
    kinds = [
        (CLUSTER._replace(outcome="matched", topology_key=zone), 5),
        (CLUSTER._replace(outcome="matched", topology_key=zone, qtype="AAAA"), 1),
        (CLUSTER._replace(outcome="no_match"), 2),
        (CLUSTER._replace(outcome="unknown_client"), 3),
        (CLUSTER._replace(outcome="unknown_client_all"), 4),
    ]
    samples = scraped(counted(kinds))
    assert only(samples, "topodns_selections_total") == {
        f'{{key="{zone}",outcome="matched"}}': 6,
        '{key="",outcome="no_match"}': 2,
        '{key="",outcome="unknown_client"}': 3,
        '{key="",outcome="unknown_client_all"}': 4,
    }
    assert only(samples, "topodns_unlocated_queries_total") == {"": 7}


def test_misses_are_counted_by_service_and_strangers_by_where_they_are() -> None:
    empty = CLUSTER._replace(outcome="unknown_client", missed="shop/cache", prefix="10.240.0.0/24")
    kinds = [
        (empty, 2),
        (empty._replace(qtype="AAAA"), 1),
        (empty._replace(outcome="no_match", prefix=""), 4),
        (empty._replace(outcome="unknown_client_all", missed="", prefix="others"), 8),
    ]
    samples = scraped(counted(kinds))
    assert only(samples, "topodns_misses_total") == {
        '{name="shop/cache",outcome="unknown_client"}': 3,
        '{name="shop/cache",outcome="no_match"}': 4,
    }
    assert only(samples, "topodns_unlocated_sources_total") == {'{prefix="10.240.0.0/24"}': 3, '{prefix="others"}': 8}


def test_names_that_became_localhost_are_counted_and_are_no_decision_of_topology() -> None:
    samples = scraped(counted([(CLUSTER._replace(plugin="local", detail=LocalhostAnswer()), 2)]))
    assert only(samples, "coredns_local_localhost_requests_total") == {"": 2}
    assert only(samples, "topodns_selections_total") == {}


def test_the_views_of_an_origin_have_samples_of_their_own() -> None:
    samples = scraped(counted([(CLUSTER._replace(view="inside"), 2), (CLUSTER, 1)]))
    inside = '{server="dns://:53",view="inside",zone="cluster.local."}'
    assert only(samples, "coredns_dns_request_duration_seconds_count") == {inside: 2, f"{{{PLACE}}}": 1}
    assert list(only(samples, "coredns_dns_requests_total").values()) == [2, 1]
    assert list(only(samples, "coredns_dns_request_size_bytes_count").values()) == [2, 1]


def test_panics_of_all_sockets_are_summed() -> None:
    one, other = socket_counters(), socket_counters("tcp")
    one.panics, other.panics = 2, 1
    assert only(scraped(one, other), "coredns_panics_total") == {"": 3}
