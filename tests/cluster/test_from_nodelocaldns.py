"""The steps of docs/migrate-from-nodelocaldns.md, there and back, with a stand-in for NodeLocal DNSCache's objects.

The stand-in has their names, labels and addresses, and is of nobody's release; its Pods are node-cache all the same, as
the program of NodeLocal DNSCache is not to be had here. What it does beside ours is for tests/node.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.kubelab.lab import Lab
from tests.kubelab.options import CLUSTER_DNS, Options, node_list
from tests.support.chart.helm import HELM
from tests.support.kube.clients import Askers, askers_of, client_pods
from tests.support.kube.cluster import Cluster, Place, PodView
from tests.support.kube.labs import lab_of
from tests.support.kube.loads import load
from tests.support.kube.node_caches import NodeCaches
from tests.support.kube.operators import Operator

pytestmark = pytest.mark.skipif(bool(HELM.missing), reason="NO HELM HERE: run `make test-chart`, which builds it")

DOCUMENT: Final = "docs/migrate-from-nodelocaldns.md"
ASKED: Final = "kubernetes.default.svc.cluster.local A"
RATE: Final = 50  # questions a second


@pytest.fixture(scope="module")
def lab(topodns_image: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    options = Options(node_list("a,a,b"), dual_stack=True, proxy_mode="iptables")
    with lab_of(options, tmp_path_factory.mktemp("lab") / "lab", topodns_image) as lab:
        yield lab


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Cluster:
    return Cluster(lab)


@pytest.fixture(scope="module")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    operator = Operator(lab, tmp_path_factory.mktemp("operator"))
    operator.follow("README.md", "install")
    return operator


@pytest.fixture(scope="module")
def clients(cluster: Cluster) -> Iterator[Place]:
    with client_pods(cluster) as place:
        yield place


@pytest.fixture(scope="module")
def askers(operator: Operator, cluster: Cluster, clients: Place) -> Iterator[Askers]:
    yield from askers_of(cluster, clients, "client")


def test_node_by_node_there_and_back_no_question_to_the_cluster_dns_is_lost(
    operator: Operator, cluster: Cluster, askers: Askers, tmp_path: Path
) -> None:
    theirs = NodeCaches(cluster, tmp_path)
    theirs.install()
    before = pods(theirs)
    assert CLUSTER_DNS in operator.follow(DOCUMENT, "nodelocaldns-look")
    with ExitStack() as stack:
        asked = [stack.enter_context(load(cluster.lab, pod, ASKED, [CLUSTER_DNS], RATE)) for pod in pods_of(askers)]
        operator.follow(DOCUMENT, "nodelocaldns-orphan")
        assert pods(theirs) == before
        operator.follow(DOCUMENT, "nodelocaldns-replace")
        assert not set(pods(theirs).values()) & set(before.values())
        operator.follow(DOCUMENT, "nodelocaldns-own-strategy")
        theirs.roll()
        operator.follow(DOCUMENT, "nodelocaldns-back")
        assert theirs.leftovers() == {}
    assert all(each.asked > RATE for each in asked), asked
    assert [(each.lost, each.failed) for each in asked] == [(0, 0)] * len(asked), asked


def pods(caches: NodeCaches) -> dict[str, str]:
    return {node: caches.pod(node).name for node in caches.cluster.nodes}


def pods_of(askers: Askers) -> list[PodView]:
    return [asker.pod for asker in askers.values()]
