"""A bad annotation does not get in, and kubectl says in the server's words why. tests/cluster/test_chart.py tries the
whole table of cases.
"""

import pytest

from tests.support.kube.cluster import Place
from tests.support.kube.objects import TOPOLOGY_KEYS, headless
from tests.support.kube.operator_commands import Operator
from tests.support.topology_key_cases import CASES

pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

BAD = [case for case in CASES if case.problem][:3]


@pytest.mark.parametrize("case", BAD, ids=[ascii(case.annotation) for case in BAD])
def test_a_bad_annotation_is_refused_in_the_words_of_the_server(
    installed: str, operator: Operator, place: Place, case: tuple[str, str]
) -> None:
    annotation, problem = case
    place.create(headless("cache", app=""))
    done = operator.tried("kubectl", "-n", place.name, "annotate", "service", "cache", f"{TOPOLOGY_KEYS}={annotation}")
    assert done.returncode == 1
    assert done.stderr.strip().endswith(f"denied request: {TOPOLOGY_KEYS}: {problem}")
    found = place.read("Service", "cache")
    assert found is not None
    assert TOPOLOGY_KEYS not in found["metadata"].get("annotations", {})
