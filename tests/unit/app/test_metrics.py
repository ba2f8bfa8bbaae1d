"""The content of /metrics: its families, its order, and the moment of its figures."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.exposition_samples import counted, exposition_text
from topodns.app.metrics import Metrics
from topodns.metrics.exposition import OPEN_METRICS, TEXT, TEXT_1
from topodns.metrics.registry import Reading
from topodns.net.http_server.messages import HttpReply, HttpRequest
from topodns.plugins.acl import readings as acl_readings
from topodns.plugins.setup import MetricsSource, Shared
from topodns.plugins.template.metrics import readings as template_readings
from topodns.query.counters import QueryCounters, ReplyKind

CLUSTER = ReplyKind("cluster.local.", "A", "NOERROR", "kubernetes", False, "", "", 1, 1)


def socket_counters(transport: str = "udp", family: str = "1", server: str = "dns://:53") -> QueryCounters:
    return QueryCounters(server, transport, family)


def test_every_family_has_coredns_s_name_and_type() -> None:
    all_counters = [counted([(CLUSTER, 1)])]
    source = MetricsSource(Shared(), list, lambda: all_counters)
    of_plugins = [*acl_readings(source), *template_readings(source)]
    text = exposition_text(Metrics(lambda: all_counters, of_plugins))
    types = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE"))
    assert {name: kind for name, kind in types.items() if not name.startswith(("process_", "python_"))} == {
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
        "coredns_acl_allowed_requests_total": "counter",
        "coredns_local_localhost_requests_total": "counter",
        "coredns_template_matches_total": "counter",
        "coredns_template_template_failures_total": "counter",
        "coredns_template_rr_failures_total": "counter",
        "topodns_selections_total": "counter",
        "topodns_unlocated_queries_total": "counter",
        "topodns_misses_total": "counter",
        "topodns_unlocated_sources_total": "counter",
    }


def test_each_scrape_shows_the_counts_of_its_moment() -> None:
    all_counters = [counted([(CLUSTER, 1)])]
    metrics = Metrics(lambda: all_counters, [])
    exposition_text(metrics)
    counted([(CLUSTER, 1)], into=all_counters[0])
    all_counters.append(counted([(CLUSTER, 1)], into=socket_counters(server="dns://:5353")))
    text = exposition_text(metrics)
    values = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "coredns_dns_responses_total"
    ]
    assert values == [2, 1]


def test_a_scrape_says_when_it_was_begun() -> None:
    text = exposition_text(Metrics(list, [], lambda: 1_790_000_000.25))
    assert "\ntopodns_exposition_timestamp_seconds 1.79000000025e+09\n" in text


def test_parts_without_samples_come_where_their_reader_may_pause() -> None:
    kinds = [(CLUSTER._replace(outcome=str(number)), 1) for number in range(1000)]
    parts = list(Metrics(lambda: [counted(kinds)], []).published())
    of_queries = [part for part in parts if part.name in ("coredns_dns_requests", "coredns_dns_request_size_bytes")]
    assert sum(not list(part.read()) for part in of_queries) >= 2 * 512 // 64
    assert [bool(list(part.read())) for part in of_queries].count(True) == 2


def test_readings_are_read_at_each_scrape() -> None:
    numbers = iter((7, 9))
    metrics = Metrics(list, [Reading("topodns_hot_entries", "Kept.", "gauge", (), lambda: [((), next(numbers))])])
    assert "\ntopodns_hot_entries 7.0\n" in exposition_text(metrics)
    assert "\ntopodns_hot_entries 9.0\n" in exposition_text(metrics)


def scrape(metrics: Metrics, *accepts: str) -> list[HttpReply]:
    """The replies of /metrics to requests with these Accept headers at once; "" is none."""

    async def run() -> list[HttpReply]:
        replies = []
        for accept in accepts:
            reply = metrics.route()(HttpRequest("/metrics", {}, "127.0.0.1", {"accept": accept} if accept else {}))
            assert isinstance(reply, asyncio.Future)
            replies.append(reply)
        return await asyncio.gather(*replies)

    return asyncio.run(run())


def test_a_client_gets_the_form_that_it_accepts() -> None:
    replies = scrape(Metrics(list, []), "", "text/plain;version=1.0.0", "application/openmetrics-text;version=1.0.0")
    assert [reply.status for reply in replies] == [200] * 3
    assert [reply.content_type for reply in replies] == [form.content_type for form in (TEXT, TEXT_1, OPEN_METRICS)]
    assert replies[2].body.endswith(b"\n# EOF\n")


def test_both_versions_of_the_text_format_share_one_exposition_however_often_they_are_scraped() -> None:
    calls: list[None] = []
    metrics = Metrics(lambda: calls.append(None) or (), [])  # type: ignore[func-returns-value]
    replies = scrape(metrics, *["", "text/plain;version=1.0.0", "application/openmetrics-text"] * 20)
    assert len(calls) == 2
    assert replies[0].body is replies[1].body


def test_a_bug_in_a_metric_is_an_error_for_each_scrape(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics(list, [Reading("broken", "", "gauge", (), lambda: [((), 1 // 0)])])
    with pytest.raises(ZeroDivisionError):
        scrape(metrics, "", "text/plain;version=1.0.0")
    assert "bug: the metrics cannot be made" in caplog.messages
