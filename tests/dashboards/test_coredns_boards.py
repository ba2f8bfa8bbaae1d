"""The dashboards and alerts that people have for CoreDNS go on: a real Prometheus answers what they ask."""

import pytest

from tests.support.coredns_dashboards import AT_REST, IN_VAIN, NOT_OF_A_NODE, PUBLIC, Asked
from tests.support.dashboard_queries import drawn, filled_in
from tests.support.dashboard_targets import NODE_JOB, SERVER_JOB
from tests.support.prometheus import Prometheus

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
