"""The HTTP endpoints of a node cache: readiness and metrics."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tests.support.namespaced_cluster import UPSTREAM_SERVICE, NodeScene
from tests.support.namespaced_node import CLUSTER_DNS
from tests.support.node_cache_template import node_template
from tests.support.node_processes import READY, arguments, dig, environment, node_cache, running, write_template
from tests.support.server_process import ROOT, until

MANUAL = (ROOT / "docs/operate/node-cache.md").read_text(encoding="utf-8")
METRIC_ROW = re.compile(r"^\| `((?:coredns|topodns)_nodecache_\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)
READ = """
import sys, urllib.error, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=2) as reply:
        print(reply.status, reply.read().decode())
except urllib.error.HTTPError as refused:
    print(refused.code, refused.read().decode())
"""
OWN, PLUGINS = "http://127.0.0.1:9353/metrics", "http://127.0.0.1:9253/metrics"
READINESS = "http://127.0.0.1:8181/ready"

pytestmark = pytest.mark.usefixtures("servers")


def get(cluster: NodeScene, url: str) -> str:
    """Status and body; "" where there is no answer."""
    try:
        return cluster.node.namespace.run(sys.executable, ["-c", READ, url]).strip()
    except CalledProcessError:
        return ""


def sample(cluster: NodeScene, name: str) -> float | None:
    """The sample of this name, with its labels as they are written; None where there is none."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", get(cluster, OWN), re.MULTILINE)
    return None if found is None else float(found[1])


def own_metrics(exposition: str) -> Mapping[str, str]:
    types = re.findall(r"^# TYPE (\w+) (\w+)$", exposition, re.MULTILINE)
    return {name: kind for name, kind in types if "_nodecache_" in name}


def test_each_metric_of_the_manual_is_there_and_no_other_where_nodelocal_dnscache_has_them(
    cluster: NodeScene, tmp_path: Path
) -> None:
    with node_cache(cluster.node, tmp_path):
        own, plugins = get(cluster, OWN), get(cluster, PLUGINS)
        assert {name: kind for name, kind, _ in METRIC_ROW.findall(MANUAL)} == own_metrics(own)
        assert own_metrics(plugins) == own_metrics(own)
        assert "\ncoredns_dns_requests_total{" in own
        for label in {label for _, _, labels in METRIC_ROW.findall(MANUAL) for label in labels.split()}:
            assert f'{label}="' in own
        for expected in (
            'coredns_nodecache_setup_errors_total{errortype="configmap"} 0.0',
            'coredns_nodecache_setup_errors_total{errortype="iptables"} 0.0',
            "topodns_nodecache_rules_present 1.0",
            "topodns_nodecache_link_present 1.0",
            "topodns_nodecache_switched_on 1.0",
            "topodns_nodecache_config_in_force 1.0",
            'topodns_nodecache_repairs_total{what="rules"} 0.0',
            f'topodns_nodecache_upstream_reachable{{to="{UPSTREAM_SERVICE[4]}:53"}} 1.0',
        ):
            assert expected in own


def test_a_repair_and_a_configuration_that_cannot_be_served_are_seen(cluster: NodeScene, tmp_path: Path) -> None:
    with node_cache(cluster.node, tmp_path) as cache:
        read = sample(cluster, "topodns_nodecache_config_timestamp_seconds")
        cluster.node.namespace.run("ip", "link del nodelocaldns")
        until(lambda: sample(cluster, 'topodns_nodecache_repairs_total{what="link"}'), "the link is added back")
        repaired = sample(cluster, 'topodns_nodecache_last_repair_timestamp_seconds{what="link"}')
        assert read is not None
        assert repaired is not None
        assert repaired > read > 1_600_000_000
        assert sample(cluster, 'topodns_nodecache_last_repair_timestamp_seconds{what="rules"}') == 0
        cache.template.write_text(". {\n")
        until(
            lambda: sample(cluster, "topodns_nodecache_config_in_force") == 0, "it is seen that this cannot be served"
        )
        assert sample(cluster, "topodns_nodecache_config_timestamp_seconds") == read


def test_a_failed_upstream_is_reported_and_so_is_its_recovery(cluster: NodeScene, tmp_path: Path) -> None:
    name = f'topodns_nodecache_upstream_reachable{{to="{UPSTREAM_SERVICE[4]}:53"}}'
    with node_cache(cluster.node, tmp_path):
        for server in (0, 1):
            cluster.take_address(server)
        dig(cluster.pod, CLUSTER_DNS[4], "not-kept-so-far.shop.svc.cluster.local")
        until(lambda: sample(cluster, name) == 0, "it is seen to be gone", 15.0)
        for server in (0, 1):
            cluster.give_address(server)
        until(lambda: sample(cluster, name) == 1, "it is seen to be back", 15.0)


def test_readiness_begins_when_pods_are_answered_and_ends_at_sigterm(cluster: NodeScene, tmp_path: Path) -> None:
    template = node_template().replace("    loop\n", "    loop\n    ready 127.0.0.1:8181\n", 1)
    write_template(tmp_path, template.replace("DNS__:8080", "DNS__:8080 {\n        lameduck 4s\n    }"))
    node, got, rules = cluster.node, "", ""
    with running(node.namespace, arguments(node, tmp_path), tmp_path / "log", **environment()) as process:
        while not got.startswith("200"):
            assert process.poll() is None, (tmp_path / "log").read_text()
            got, rules = get(cluster, READINESS), node.namespace.run("nft", "list ruleset")
            assert got[:3] in ("", "503", "200"), got
        assert "table inet topodns" in rules
        assert dig(cluster.pod, CLUSTER_DNS[4], READY) != []
        assert get(cluster, "http://169.254.20.10:8080/health") == "200 OK"
        process.terminate()
        until(lambda: get(cluster, READINESS) == "503 Shutting down", "it is not ready any more", 3.0)
        assert process.wait(10) == 0
