"""The steps of docs/migrate/from-nodelocaldns.md, there and back, with a copy of NodeLocal DNSCache's objects.

The copy has their names, labels and addresses, and belongs to no release; its Pods run topodns's node-cache all the
same, as the program of NodeLocal DNSCache is not available here. tests/node has its effects beside ours.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.kubelab.options import CLUSTER_DNS, FIRST_SERVICES
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster
from tests.support.kube.node_caches import NodeCaches, write_overlay
from tests.support.kube.operator_commands import Operator
from tests.support.kube.query_loads import Asked, load, outcome

pytestmark = pytest.mark.parametrize("proxy_mode", ["iptables"], indirect=True)

ASKED: Final = [Asked("kubernetes.default.svc.cluster.local A", CLUSTER_DNS, FIRST_SERVICES[:1])]
RATE: Final = 50  # questions a second


def test_node_by_node_there_and_back_no_question_to_the_cluster_dns_is_lost(
    operator: Operator, cluster: Cluster, askers: Askers, tmp_path: Path
) -> None:
    theirs = standing_in(operator, cluster, tmp_path)
    before = pods(theirs)
    assert CLUSTER_DNS in operator.follow("docs/migrate/from-nodelocaldns.md", "nodelocaldns-look")
    with ExitStack() as stack:
        loads = [stack.enter_context(load(cluster.lab, each.pod, ASKED, RATE)) for each in askers.values()]
        became = stack.enter_context(outcome(*loads))
        operator.follow("docs/migrate/from-nodelocaldns.md", "nodelocaldns-orphan")
        assert pods(theirs) == before
        operator.follow("docs/migrate/from-nodelocaldns.md", "nodelocaldns-replace")
        assert not set(pods(theirs).values()) & set(before.values())
        operator.follow("docs/migrate/from-nodelocaldns.md", "nodelocaldns-own-strategy")
        operator.follow("docs/migrate/from-nodelocaldns.md", "nodelocaldns-back")
        assert theirs.leftovers() == {}
    assert became.asked > RATE * len(loads)
    assert (became.lost, became.failed, became.wrong) == (0, 0, 0), became.problems


def test_where_coredns_stays_the_chart_brings_the_cache_alone(
    operator: Operator, cluster: Cluster, askers: Askers, tmp_path: Path
) -> None:
    """As a release of its own; here it is topodns that stays."""
    theirs = standing_in(operator, cluster, tmp_path)
    before = pods(theirs)
    operator.follow("docs/migrate/from-nodelocaldns.md", "nodelocaldns-orphan", "nodelocaldns-replace-alone")
    assert not set(pods(theirs).values()) & set(before.values())
    assert {node: theirs.metric(node, "topodns_nodecache_switched_on") for node in before} == dict.fromkeys(before, 1)
    operator.run("helm", "--namespace", "kube-system", "uninstall", "node-cache", "--wait")
    theirs.await_gone()
    assert theirs.leftovers() == {}


def standing_in(operator: Operator, cluster: Cluster, directory: Path) -> NodeCaches:
    """On every node, installed from a file."""
    theirs = NodeCaches(cluster, operator)
    write_overlay(directory)
    operator.run("kubectl", "apply", "-k", str(directory))
    theirs.await_settled()
    return theirs


def pods(caches: NodeCaches) -> dict[str, str]:
    return {node: caches.pod(node).name for node in caches.cluster.nodes}
