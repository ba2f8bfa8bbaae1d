"""The server's side of the table that tests/cluster/test_chart.py holds the chart's admission policy to."""

import pytest

from tests.support.topology_key_cases import CASES, Case
from topodns.cluster.model import InvalidPolicy, KeySource, Service, TopologyInputs
from topodns.topology.keys import policy_of


@pytest.mark.parametrize("case", CASES, ids=[ascii(case.annotation)[:60] for case in CASES])
def test_the_server_reads_an_annotation_as_the_table_says(case: Case) -> None:
    service = Service("shop", "cache", headless=True, topology=TopologyInputs(annotation=case.annotation))
    policy = policy_of(service, [KeySource.ANNOTATION])
    assert isinstance(policy, InvalidPolicy) is (case.problem != "")
    if case.problem and isinstance(policy, InvalidPolicy):
        assert policy.problem == case.problem
