"""The steps of docs/migrate-from-nodelocaldns.md, there and back, with a stand-in for NodeLocal DNSCache's objects.

The stand-in has their names, labels and addresses, and is of nobody's release; its Pods are node-cache all the same, as
the program of NodeLocal DNSCache is not to be had here. What it does beside ours is for tests/node.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.kubelab.options import CLUSTER_DNS, FIRST_SERVICES
from tests.support.kube.clients import Askers
from tests.support.kube.cluster import Cluster
from tests.support.kube.loads import Asked, load, outcome
from tests.support.kube.node_caches import NodeCaches, write_overlay
from tests.support.kube.operators import Operator

pytestmark = pytest.mark.parametrize("proxy_mode", ["iptables"], indirect=True)

DOCUMENT: Final = "docs/migrate-from-nodelocaldns.md"
ASKED: Final = [Asked("kubernetes.default.svc.cluster.local A", CLUSTER_DNS, FIRST_SERVICES[:1])]
RATE: Final = 50  # questions a second


def test_node_by_node_there_and_back_no_question_to_the_cluster_dns_is_lost(
    operator: Operator, cluster: Cluster, askers: Askers, tmp_path: Path
) -> None:
    theirs = NodeCaches(cluster, operator)
    write_overlay(tmp_path)
    operator.run("kubectl", "apply", "-k", str(tmp_path))
    theirs.await_settled()
    before = pods(theirs)
    assert CLUSTER_DNS in operator.follow(DOCUMENT, "nodelocaldns-look")
    with ExitStack() as stack:
        loads = [stack.enter_context(load(cluster.lab, each.pod, ASKED, RATE)) for each in askers.values()]
        became = stack.enter_context(outcome(*loads))
        operator.follow(DOCUMENT, "nodelocaldns-orphan")
        assert pods(theirs) == before
        operator.follow(DOCUMENT, "nodelocaldns-replace")
        assert not set(pods(theirs).values()) & set(before.values())
        operator.follow(DOCUMENT, "nodelocaldns-own-strategy")
        theirs.roll()
        operator.follow(DOCUMENT, "nodelocaldns-back")
        assert theirs.leftovers() == {}
    assert became.asked > RATE * len(loads)
    assert (became.lost, became.failed, became.wrong) == (0, 0, 0), became.problems


def pods(caches: NodeCaches) -> dict[str, str]:
    return {node: caches.pod(node).name for node in caches.cluster.nodes}
