"""What a cluster answers with: views by namespace, and queries that wait for their Pod."""

import asyncio
from pathlib import Path

import pytest

from tests.support.corefile_settings import settings
from tests.support.model_builders import node_locator, packed, pod, pod_locator
from tests.unit.plugins.kubernetes.scene import API, corefile
from topodns.app.generation import Assembly
from topodns.cluster.model import ClusterObject, Replaced, kind_of


@pytest.mark.parametrize(("autopath", "apart"), [("autopath @kubernetes", True), ("", False)])
def test_ready_made_answers_are_shared_by_namespace_where_autopath_goes_by_pods(
    assembly: Assembly, directory: Path, autopath: str, apart: bool
) -> None:
    wanted = corefile("manifests cluster.yaml\npods verified", "locate nodes", more=autopath)
    generation = assembly.build(settings(wanted, str(directory)))
    (cluster,) = generation.clusters
    pods = (pod("one", ["10.0.0.1"], "shop"), pod("other", ["10.0.0.2"], "shop"), pod("two", ["10.0.0.3"], "prod"))
    cluster.state.apply(Replaced("Pod", pods), 0)
    views = [generation.view_key(packed(address)) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")]
    assert views[0] == views[1]
    assert len(set(views)) == (3 if apart else 1)


# Queries that wait for their Pod

NEW_POD = packed("10.1.0.9")
LOCATORS = (node_locator("n1", ["10.1.0.1"]), pod_locator("p", ["10.1.0.1"], "n1"))


def waits(assembly: Assembly, source: str, methods: str, *objects: ClusterObject) -> bool:
    """Whether a query of an unknown address waits, once this cluster is known."""
    (cluster,) = assembly.build(settings(corefile(source, f"locate {methods}"), "config/demo")).clusters
    for kind in sorted(cluster.state.needed):
        cluster.state.apply(Replaced(kind, tuple(each for each in objects if kind_of(each) == kind)), 0)

    async def wait() -> bool:
        return cluster.pod_wait is not None and cluster.pod_wait.wait(NEW_POD) is not None

    return asyncio.run(wait())


def test_a_new_pod_waits_where_its_node_will_be_known_in_a_moment(assembly: Assembly) -> None:
    assert waits(assembly, API, "nodes pods")
    assert waits(assembly, API, "nodelocator", LOCATORS[0])
    assert waits(assembly, API, "nodes podlocator slices", LOCATORS[1])


def test_a_new_pod_does_not_wait_for_what_does_not_come(assembly: Assembly) -> None:
    assert not waits(assembly, API, "nodes podcidr slices")
    assert not waits(assembly, API, "nodelocator podlocator")  # there are none: nothing writes them
    assert not waits(assembly, API, "podlocator", LOCATORS[0])
    assert not waits(assembly, "manifests cluster", "nodelocator", LOCATORS[0])
