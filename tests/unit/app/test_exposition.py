"""The content of /metrics: its families, its order, and the moment of its figures."""

from prometheus_client.parser import text_string_to_metric_families

from tests.support.exposition_samples import counted
from topodns.app.exposition import Metrics
from topodns.metrics.registry import Reading
from topodns.query.counters import QueryCounters, ReplyKind

CLUSTER = ReplyKind("cluster.local.", "A", "NOERROR", "kubernetes", False, "", "", 1, 1)


def socket_counters(transport: str = "udp", family: str = "1", server: str = "dns://:53") -> QueryCounters:
    return QueryCounters(server, transport, family)


def test_every_family_has_coredns_s_name_and_type() -> None:
    text = Metrics(lambda: [counted([(CLUSTER, 1)])], []).exposition().decode()
    types = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE"))
    assert {name: kind for name, kind in types.items() if not name.startswith("process_")} == {
        "topodns_exposition_timestamp_seconds": "gauge",
        "coredns_dns_requests_total": "counter",
        "coredns_dns_responses_total": "counter",
        "coredns_dns_do_requests_total": "counter",
        "coredns_dns_request_size_bytes": "histogram",
        "coredns_dns_response_size_bytes": "histogram",
        "coredns_dns_request_duration_seconds": "histogram",
        "coredns_panics_total": "counter",
        "coredns_acl_blocked_requests_total": "counter",
        "coredns_acl_filtered_requests_total": "counter",
        "coredns_acl_dropped_requests_total": "counter",
        "coredns_local_localhost_requests_total": "counter",
        "coredns_template_matches_total": "counter",
        "topodns_selections_total": "counter",
        "topodns_unlocated_queries_total": "counter",
        "topodns_misses_total": "counter",
        "topodns_unlocated_sources_total": "counter",
    }


def test_each_scrape_shows_the_counts_of_its_moment() -> None:
    all_counters = [counted([(CLUSTER, 1)])]
    metrics = Metrics(lambda: all_counters, [])
    metrics.exposition()
    counted([(CLUSTER, 1)], into=all_counters[0])
    all_counters.append(counted([(CLUSTER, 1)], into=socket_counters(server="dns://:5353")))
    text = metrics.exposition().decode()
    values = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "coredns_dns_responses_total"
    ]
    assert values == [2, 1]


def test_a_scrape_says_when_it_was_begun() -> None:
    text = Metrics(list, [], lambda: 1_790_000_000.25).exposition()
    assert b"\ntopodns_exposition_timestamp_seconds 1790000000.25\n" in text


def test_the_lines_come_with_empty_ones_where_their_reader_may_pause() -> None:
    kinds = [(CLUSTER._replace(outcome=str(number)), 1) for number in range(1000)]
    lines = list(Metrics(lambda: [counted(kinds)], []).lines())
    assert lines.count("") >= 3 * 512 // 64
    assert all(line.endswith("\n") for line in lines if line)


def test_readings_are_read_at_each_scrape() -> None:
    numbers = iter((7, 9))
    metrics = Metrics(list, [Reading("topodns_hot_entries", "Kept.", "gauge", (), lambda: [((), next(numbers))])])
    assert b"\ntopodns_hot_entries 7.0\n" in metrics.exposition()
    assert b"\ntopodns_hot_entries 9.0\n" in metrics.exposition()
