"""What a node cache tells over HTTP: whether it is ready, and its metrics."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CalledProcessError

from tests.node.test_node_cache import NAME, UPSTREAM, cluster_dns, dig, node_cache
from tests.support.namespaces import CLUSTER_DNS, World
from tests.support.node_template import node_template
from tests.support.process import ROOT, until

MANUAL = (ROOT / "docs" / "node-cache.md").read_text(encoding="utf-8")
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
READY = "http://127.0.0.1:8181/ready"


def get(scene: World, url: str) -> str:
    """Status and body; "" where nobody answers."""
    try:
        return scene.node.run(sys.executable, ["-c", READ, url]).strip()
    except CalledProcessError:
        return ""


def sample(scene: World, name: str) -> float | None:
    """The sample of this name, with its labels as they are written; None where there is none."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", get(scene, OWN), re.MULTILINE)
    return None if found is None else float(found[1])


def own_metrics(exposition: str) -> Mapping[str, str]:
    types = re.findall(r"^# TYPE (\w+) (\w+)$", exposition, re.MULTILINE)
    return {name: kind for name, kind in types if "_nodecache_" in name}


def test_each_metric_of_the_manual_is_there_and_no_other_where_nodelocal_dnscache_has_them(
    scene: World, tmp_path: Path
) -> None:
    with cluster_dns(scene, tmp_path), node_cache(scene, tmp_path):
        own, plugins = get(scene, OWN), get(scene, PLUGINS)
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
            f'topodns_nodecache_upstream_reachable{{to="{UPSTREAM}:53"}} 1.0',
        ):
            assert expected in own


def test_a_repair_and_a_configuration_that_cannot_be_served_are_seen(scene: World, tmp_path: Path) -> None:
    with cluster_dns(scene, tmp_path), node_cache(scene, tmp_path):
        read = sample(scene, "topodns_nodecache_config_timestamp_seconds")
        scene.node.run("ip", "link del nodelocaldns")
        until(lambda: sample(scene, 'topodns_nodecache_repairs_total{what="link"}'), "the link is added back")
        repaired = sample(scene, 'topodns_nodecache_last_repair_timestamp_seconds{what="link"}')
        assert read is not None
        assert repaired is not None
        assert repaired > read > 1_600_000_000
        assert sample(scene, 'topodns_nodecache_last_repair_timestamp_seconds{what="rules"}') == 0
        (tmp_path / "Corefile.base").write_text(". {\n")
        until(lambda: sample(scene, "topodns_nodecache_config_in_force") == 0, "it is seen that this cannot be served")
        assert sample(scene, "topodns_nodecache_config_timestamp_seconds") == read


def test_an_upstream_that_is_gone_is_told_and_so_is_one_that_is_back(scene: World, tmp_path: Path) -> None:
    name = f'topodns_nodecache_upstream_reachable{{to="{UPSTREAM}:53"}}'
    with cluster_dns(scene, tmp_path), node_cache(scene, tmp_path):
        scene.cluster.run("ip", f"addr del {UPSTREAM}/24 dev eth0")
        dig(scene.pod, CLUSTER_DNS[4], "not-kept-so-far.shop.svc.cluster.local")
        until(lambda: sample(scene, name) == 0, "it is seen to be gone", 10.0)
        scene.cluster.run("ip", f"addr add {UPSTREAM}/24 dev eth0")
        until(lambda: sample(scene, name) == 1, "it is seen to be back", 10.0)


def test_it_is_ready_when_pods_are_answered_and_not_any_more_when_it_is_told_to_stop(
    scene: World, tmp_path: Path
) -> None:
    template = node_template().replace("    loop\n", "    loop\n    ready 127.0.0.1:8181\n", 1)
    template = template.replace("DNS__:8080", "DNS__:8080 {\n        lameduck 4s\n    }")
    with cluster_dns(scene, tmp_path):
        told, rules = "", ""
        with node_cache(scene, tmp_path, template=template, awaited=False) as process:
            while not told.startswith("200"):
                assert process.poll() is None, (tmp_path / "log").read_text()
                told, rules = get(scene, READY), scene.node.run("nft", "list ruleset")
                assert told[:3] in ("", "503", "200"), told
            assert "table inet topodns" in rules
            assert dig(scene.pod, CLUSTER_DNS[4], NAME) != []
            assert get(scene, "http://169.254.20.10:8080/health") == "200 OK"
            process.terminate()
            until(lambda: get(scene, READY) == "503 Shutting down", "it is not ready any more", 3.0)
            assert process.wait(10) == 0
