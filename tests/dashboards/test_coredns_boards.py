"""The dashboards and alerts that people have for CoreDNS go on: a real Prometheus answers what they ask."""

from dataclasses import dataclass
from typing import Final

import pytest

from tests.support.dashboard_queries import drawn, filled_in
from tests.support.dashboard_targets import NODE_JOB, SERVER_JOB
from tests.support.prometheus import Prometheus

# The queries of the well-known dashboards and alerts for CoreDNS, in the form that each has at its core. The dashboard
# of kube-prometheus-stack (grafana.com has it as 14981), dotdc's (15762), povilasv's mixin and its alerts, which are
# asked here without their thresholds: there is something to compare.

SECONDS: Final = 8.192  # what the largest buckets hold
OCTETS: Final = 64000
ANYTHING: Final = float("inf")

_JOB: Final = 'job=~"$job"'
_ONE: Final = 'job=~"$job",instance=~"$instance"'
_RATE: Final = "[$__rate_interval]"


@dataclass(frozen=True, slots=True)
class Asked:
    """One query, and the most that a sane value of it is."""

    whose: str
    expr: str
    most: float = ANYTHING

    def __str__(self) -> str:
        return f"{self.whose}: {self.expr}"


def _rate(metric: str, by: str, more: str = "", where: str = _ONE) -> str:
    return f"sum(rate({metric}{{{where}{more}}}{_RATE})) by ({by})"


def _quantile(quantile: str, metric: str, by: str, more: str = "") -> str:
    return f"histogram_quantile({quantile}, {_rate(f'{metric}_bucket', by, more)})"


_QUANTILES: Final = ("0.99", "0.90", "0.50")
_STACK: Final = tuple(
    Asked("kube-prometheus-stack", expr, most)
    for expr, most in (
        (_rate("coredns_dns_requests_total", "proto"), ANYTHING),
        (_rate("coredns_dns_requests_total", "type"), ANYTHING),
        (_rate("coredns_dns_requests_total", "zone"), ANYTHING),
        (f"sum(rate(coredns_dns_do_requests_total{{{_ONE}}}{_RATE}))", ANYTHING),
        (_rate("coredns_dns_do_requests_total", "zone"), ANYTHING),
        *(
            (_quantile(quantile, f"coredns_dns_{what}_size_bytes", "le,proto", f',proto="{proto}"'), OCTETS)
            for what in ("request", "response")
            for proto in ("udp", "tcp")
            for quantile in _QUANTILES
        ),
        (_rate("coredns_dns_responses_total", "rcode"), ANYTHING),
        *((_quantile(quantile, "coredns_dns_request_duration_seconds", "le"), SECONDS) for quantile in _QUANTILES),
        (f"sum(coredns_cache_entries{{{_ONE}}}) by (type)", ANYTHING),
        (_rate("coredns_cache_hits_total", "type"), ANYTHING),
        (_rate("coredns_cache_misses_total", "type"), ANYTHING),
    )
)
_DOTDC: Final = tuple(
    Asked("dotdc, 15762", expr, most)
    for expr, most in (
        (f"up{{{_ONE}}}", 1),
        (f"rate(process_cpu_seconds_total{{{_ONE}}}{_RATE})", 8),
        (f"process_resident_memory_bytes{{{_ONE}}}", 1 << 30),
        (f'sum(rate(coredns_dns_requests_total{{{_ONE},proto="udp"}}{_RATE}))', ANYTHING),
        (
            f"{_rate('coredns_dns_request_size_bytes_sum', 'proto')}"
            f" / {_rate('coredns_dns_request_size_bytes_count', 'proto')}",
            OCTETS,
        ),
        (f'sum(rate(coredns_proxy_request_duration_seconds_count{{{_JOB},proxy_name="forward"}}{_RATE}))', ANYTHING),
        (
            _rate(
                "coredns_proxy_request_duration_seconds_count",
                "rcode",
                ',proxy_name="forward",rcode=~"SERVFAIL|REFUSED"',
                _JOB,
            ),
            ANYTHING,
        ),
        *(
            (f"sum(increase({metric}_bucket{{{_ONE}{more}}}{_RATE})) by (le)", ANYTHING)
            for metric, more in (
                ("coredns_dns_request_duration_seconds", ""),
                ("coredns_dns_request_size_bytes", ',le!="0"'),
                ("coredns_dns_response_size_bytes", ',le!="0"'),
            )
        ),
    )
)
_MIXIN: Final = tuple(
    Asked("povilasv's mixin", expr, most)
    for expr, most in (
        (f"coredns_build_info{{{_JOB}}}", 1),
        (f"sum(coredns_panics_total{{{_JOB}}})", 0),
        (_rate("coredns_forward_responses_total", "rcode"), ANYTHING),
        (_rate("coredns_forward_requests_total", "to"), ANYTHING),
        (_quantile("0.99", "coredns_forward_request_duration_seconds", "to, le"), SECONDS),
        (_quantile("0.99", "coredns_kubernetes_dns_programming_duration_seconds", "service_kind, le"), 525),
        (f"count(sum(coredns_plugin_enabled{{{_ONE}}}) by (name))", 50),
        (
            f"sum(coredns_cache_hits_total{{{_ONE}}})"
            f" / (sum(coredns_cache_misses_total{{{_ONE}}}) + sum(coredns_cache_hits_total{{{_ONE}}}))",
            1,
        ),
    )
)


def _failing(metric: str, without: str) -> str:
    """The share of SERVFAIL."""
    bad = f'sum without ({without}) (rate({metric}{{{_JOB},rcode="SERVFAIL"}}{_RATE}))'
    return f"{bad} / sum without ({without}) (rate({metric}{{{_JOB}}}{_RATE}))"


_ALERTS: Final = tuple(
    Asked(alert, expr, most)
    for alert, expr, most in (
        ("CoreDNSDown", f"up{{{_JOB}}} == 1", 1),
        (
            "CoreDNSLatencyHigh",
            "histogram_quantile(0.99, sum without (instance, pod)"
            f" (rate(coredns_dns_request_duration_seconds_bucket{{{_JOB}}}{_RATE})))",
            SECONDS,
        ),
        (
            "CoreDNSErrorsHigh",
            _failing("coredns_dns_responses_total", "pod, instance, server, zone, view, rcode, plugin"),
            1,
        ),
        (
            "CoreDNSForwardLatencyHigh",
            "histogram_quantile(0.99, sum without (pod, instance, rcode)"
            f" (rate(coredns_forward_request_duration_seconds_bucket{{{_JOB}}}{_RATE})))",
            SECONDS,
        ),
        ("CoreDNSForwardErrorsHigh", _failing("coredns_forward_responses_total", "pod, instance, rcode"), 1),
        (
            "CoreDNSForwardHealthcheckFailureCount",
            f"sum without (pod, instance) (rate(coredns_forward_healthcheck_failures_total{{{_JOB}}}{_RATE}))",
            ANYTHING,
        ),
        (
            "CoreDNSForwardHealthcheckBrokenCount",
            f"sum without (pod, instance) (rate(coredns_forward_healthcheck_broken_total{{{_JOB}}}{_RATE}))",
            ANYTHING,
        ),
    )
)

PUBLIC: Final = (*_STACK, *_DOTDC, *_MIXIN, *_ALERTS)

# What has no samples in a node cache, though its name is one of a server's.
NOT_OF_A_NODE: Final = {
    "coredns_kubernetes_dns_programming_duration_seconds": "a node cache watches no cluster",
    'coredns_forward_responses_total{job=~"$job",rcode="SERVFAIL"}': "no upstream of this scene says so",
}
# What is 0 here, as it should be.
AT_REST: Final = {
    "coredns_panics_total": "there was no bug",
    "coredns_forward_healthcheck_broken_total": "one upstream of each `forward` is well",
}
# What the boards ask beside these, and nothing here can answer.
IN_VAIN: Final = {
    "coredns_dns_request_count_total": "a name of CoreDNS before 1.7; boards join it to the newer one with `or`",
    "coredns_cache_size": "likewise",
    "go_goroutines": "this is no Go program",
    "kube_node_info": "of kube-state-metrics, for the variable `cluster`",
}


each_query = pytest.mark.parametrize("asked", PUBLIC, ids=map(str, PUBLIC))


@each_query
def test_a_public_query_has_a_sane_result_of_a_server(server: Prometheus, asked: Asked) -> None:
    found = drawn(server, asked.expr, SERVER_JOB, asked.most)
    assert found
    assert any(sample.value for sample in found) is not any(name in asked.expr for name in AT_REST)


@each_query
def test_a_public_query_has_a_sane_result_of_a_node_cache_or_a_reason(node_cache: Prometheus, asked: Asked) -> None:
    reason = next((reason for part, reason in NOT_OF_A_NODE.items() if part in asked.expr), "")
    assert bool(drawn(node_cache, asked.expr, NODE_JOB, asked.most)) is not bool(reason), reason


@pytest.mark.parametrize(
    ("query", "label"),
    [
        ("coredns_build_info", "job"),
        (f'up{{job="{SERVER_JOB}"}}', "instance"),
        ("coredns_dns_requests_total", "proto"),
    ],
)
def test_the_variables_of_the_boards_have_values(server: Prometheus, query: str, label: str) -> None:
    assert {series.get(label, "") for series in server.series(query)} - {""}


@pytest.mark.parametrize("name", IN_VAIN)
def test_a_metric_that_a_dashboard_asks_for_in_vain_does_not_exist(server: Prometheus, name: str) -> None:
    assert server.query(name) == []


def test_a_query_for_a_missing_metric_draws_nothing(server: Prometheus) -> None:
    assert not drawn(server, 'sum(rate(coredns_dns_request_count_total{job=~"$job"}[$__rate_interval]))', SERVER_JOB, 1)
    assert "$" not in filled_in('x{job=~"$job",instance=~"$instance"}[$__rate_interval]', SERVER_JOB)
