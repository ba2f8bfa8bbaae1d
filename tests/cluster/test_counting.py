"""The counts that docs/operate/sizing.md has an operator take."""

from pathlib import Path

import pytest

from tests.kubelab.lab import Lab
from tests.support.chart.helm import HELM
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.objects import headless
from tests.support.kube.operator_commands import Operator

pytestmark = pytest.mark.skipif(bool(HELM.missing), reason="NO HELM HERE: run `make test-chart`, which builds it")


def test_the_commands_count_the_variables_of_the_formula(
    lab: Lab, cluster: Cluster, place: Place, tmp_path: Path
) -> None:
    place.create(headless("without-endpoints", app="nobody"))
    *kinds, endpoints = Operator(lab, tmp_path).follow("docs/operate/sizing.md", "sizing-count").splitlines()
    counted = {kind: int(number) for number, kind in (line.split() for line in kinds)}
    assert counted.keys() == {"nodes", "services", "endpointslices", "pods"}
    assert counted["nodes"] == len(cluster.nodes)
    slices = cluster.list("EndpointSlice", "")
    assert int(endpoints) == sum(len(each.get("endpoints") or ()) for each in slices)
