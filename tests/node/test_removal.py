"""The documented commands remove everything that a node cache, killed and not started again, leaves behind."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.namespaced_cluster import NodeScene
from tests.support.namespaced_node import CLUSTER_DNS, Namespace
from tests.support.node_processes import dig, node_cache
from tests.support.runnable_blocks import block
from tests.support.server_process import until

pytestmark = pytest.mark.usefixtures("servers")


@pytest.mark.parametrize("firewall", ["nftables", "iptables"])
def test_the_documented_commands_remove_everything_that_an_instance_killed_with_its_supervisor_left(
    cluster: NodeScene, tmp_path: Path, firewall: str
) -> None:
    node = cluster.node
    with node_cache(node, tmp_path, firewall) as cache:
        pids = {cache.process.pid, cache.pid}
        for pid in sorted(pids):  # the supervisor first, so that it cannot switch off
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        cache.process.wait()
        until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), "both are gone")
        assert node.leftovers() != []
        node.namespace.run("sh", ["-c", block("docs/operate/node-cache.md", "remove").text])
        assert node.leftovers() == []
        assert dig(cluster.pod, CLUSTER_DNS[4], "web.shop.svc.cluster.local") == ["10.96.10.20"]


def test_rules_that_a_nodelocal_dnscache_has_left_are_gone_after_the_documented_commands(cluster: NodeScene) -> None:
    where = cluster.node.namespace
    before = rules(where)
    match = f"-d {CLUSTER_DNS[4]}/32 -p udp --dport 53 -m comment --comment"
    for rule in (
        ["-t", "raw", "-I", "PREROUTING", *match.split(), "NodeLocal DNS Cache: skip conntrack", "-j", "NOTRACK"],
        ["-t", "filter", "-I", "INPUT", *match.split(), "NodeLocal DNS Cache: allow DNS traffic", "-j", "ACCEPT"],
    ):
        where.run("iptables", rule)
    assert dig(cluster.pod, CLUSTER_DNS[4], "web.shop.svc.cluster.local") == []  # NAT does not get to see the question
    where.run("sh", ["-c", block("docs/migrate/from-nodelocaldns.md", "nodelocaldns-rules").text])
    assert rules(where) == before
    assert dig(cluster.pod, CLUSTER_DNS[4], "web.shop.svc.cluster.local") == ["10.96.10.20"]


def rules(where: Namespace) -> list[str]:
    """All of iptables, in their order."""
    return [line for line in where.run("iptables-save", []).splitlines() if line.startswith("-A")]
