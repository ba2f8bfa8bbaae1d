"""The Corefile that `servers` becomes is the one that CoreDNS's chart makes of them, and topodns serves it."""

from ipaddress import ip_address

import pytest
import yaml

from tests.support.chart.helm import ROOT, Values, rendered
from tests.support.chart.matrix import MATRIX, SERVERS_OF_COREDNS
from tests.support.documents import yaml_block
from topodns.app.load import settings_from_text
from topodns.nodecache.corefile import NODE_CACHE
from topodns.nodecache.template import ClusterDns, TemplateValues, fill
from topodns.plugins.block import ServerBlock
from topodns.plugins.cache.settings import DEFAULT_SUBSCRIPTIONS
from topodns.plugins.context import Context
from topodns.query.session import PushLimits

FILLING = TemplateValues(
    (ip_address("169.254.20.10"), ip_address("10.96.0.10")), ClusterDns("10.96.0.99", ""), ("192.0.2.53",), ":9253", ""
)


def config_map(values: Values, name: str = "topodns") -> dict[str, str]:
    (found,) = (each for each in rendered(values) if each["kind"] == "ConfigMap" and each["metadata"]["name"] == name)
    data: dict[str, str] = found["data"]
    return data


def test_servers_of_coredns_chart_become_its_corefile() -> None:
    assert config_map({"servers": SERVERS_OF_COREDNS})["Corefile"] == (
        ".:53 {\n"
        "    errors\n"
        "    health {\n"
        "        lameduck 10s\n"
        "    }\n"
        "    ready\n"
        "    kubernetes cluster.local in-addr.arpa ip6.arpa {\n"
        "        pods verified\n"
        "        fallthrough in-addr.arpa ip6.arpa\n"
        "        ttl 30\n"
        "    }\n"
        "    prometheus 0.0.0.0:9153\n"
        "    forward . 192.0.2.53\n"
        "    cache 30\n"
        "    loadbalance\n"
        "}\n"
        "dns://hello.world.:5353 foo.bar.:5353 {\n"
        "    hosts {\n"
        "        192.0.2.1 a.hello.world\n"
        "        fallthrough\n"
        "    }\n"
        "}\n"
    )


def test_each_kubernetes_gets_a_snapshot_of_its_own_name() -> None:
    values: Values = {"servers": SERVERS_OF_COREDNS, "snapshot": {"enabled": True, "parameters": "max_age 48h"}}
    corefile = config_map(values)["Corefile"]
    assert "        ttl 30\n        snapshot /var/lib/topodns/cluster.local max_age 48h\n    }\n" in corefile
    assert corefile.count("snapshot") == 1


def test_a_snapshot_of_the_operators_own_stays() -> None:
    own = [{"plugins": [{"name": "kubernetes", "configBlock": "snapshot /var/lib/topodns/own"}]}]
    corefile = config_map(
        {
            "servers": [
                {
                    **SERVERS_OF_COREDNS[0],
                    "plugins": [
                        *[each for each in SERVERS_OF_COREDNS[0]["plugins"] if each["name"] != "kubernetes"],
                        *own[0]["plugins"],
                    ],
                }
            ],
            "snapshot": {"enabled": True},
        }
    )["Corefile"]
    assert [line.split() for line in corefile.splitlines() if "snapshot" in line] == [
        ["snapshot", "/var/lib/topodns/own"]
    ]


def test_without_values_it_is_the_corefile_of_kubeadm_with_topology_and_push() -> None:
    """And without what kubeadm has to keep names of the cluster out of the cache, where they never come here."""
    kubeadm = (ROOT / "config/corefiles/kubeadm/Corefile").read_text(encoding="utf-8")
    lines = [line.split() for line in kubeadm.splitlines()[1:] if "disable" not in line]
    ours = [line.split() for line in config_map({})["Corefile"].splitlines()]
    assert [line for line in ours if line not in (["topology"], ["push"])] == flattened(lines)
    assert ours.index(["push"]) == ours.index(["topology"]) + 1


def flattened(lines: list[list[str]]) -> list[list[str]]:
    """With the lameduck of CoreDNS's chart, and without the block that is empty now."""
    text = "\n".join(" ".join(line) for line in lines).replace("lameduck 5s", "lameduck 10s")
    return [line.split() for line in text.replace("cache 30 {\n}", "cache 30").splitlines()]


@pytest.mark.parametrize("number", [30, 1_000_000, 3_000_000, 4_294_967_295, 0.25])
def test_a_number_stays_as_it_was_written(number: float) -> None:
    plugins = [{"name": "health"}, {"name": "ready"}, {"name": "cache", "parameters": number}]
    more = {"import": {"parameters": number}}
    found = config_map({"servers": [{"plugins": plugins}], "extraConfig": more})["Corefile"].split("\n")
    assert (f"import {number}", f"    cache {number}") == (found[0], found[-3])


def test_the_example_of_the_manual_is_the_default_and_one_line_of_topology() -> None:
    example = config_map(yaml.safe_load(yaml_block("docs/operate/install.md", "Your Corefile")))["Corefile"]
    block = "    topology {\n        trust 10.0.0.0/16\n    }\n"
    assert example.replace(block, "    topology\n") == config_map({})["Corefile"]
    assert block in example
    assert settings_from_text(example.replace("/etc/resolv.conf", "192.0.2.53"), "Corefile", 53, {}).blocks


@pytest.mark.parametrize("case", [name for name, values in MATRIX.items() if "deployment" not in values])
def test_topodns_serves_it(case: str) -> None:
    text = "\n".join(line for line in config_map(MATRIX[case])["Corefile"].splitlines() if "import" not in line)
    text = text.replace("/etc/resolv.conf", "192.0.2.53")
    assert settings_from_text(text, "Corefile", 53, {}).blocks


@pytest.mark.parametrize("case", ["as it is", "dual-stack"])
def test_the_server_pushes_changes_of_the_cluster(case: str) -> None:
    text = config_map(MATRIX[case])["Corefile"].replace("/etc/resolv.conf", "192.0.2.53")
    (block,) = settings_from_text(text, "Corefile", 53, {}).blocks
    assert "kubernetes" in block.directives
    assert block.settings["push"] == PushLimits()


NODE_CACHES = ["dual-stack", "beside, with a node cache", "the node cache alone", "everything"]


def node_cache_template(case: str) -> str:
    """The template of this case of the matrix, filled in."""
    values = {**MATRIX[case], "service": {"clusterIP": "10.96.0.10"}}
    text, problems = fill(config_map(values, "node-local-dns")["Corefile"], "Corefile.base", FILLING)
    assert problems == ()
    return text


def node_cache_blocks(case: str) -> tuple[ServerBlock, ...]:
    host = Context((), cache=NODE_CACHE)
    return tuple(settings_from_text(node_cache_template(case), "Corefile.base", 53, {}, host=host).blocks)


@pytest.mark.parametrize("case", NODE_CACHES)
def test_the_node_cache_serves_its_template(case: str) -> None:
    assert "cluster.local:53" in node_cache_template(case)
    assert len(node_cache_blocks(case)) == (4 if case == "everything" else 3)


@pytest.mark.parametrize("case", NODE_CACHES)
def test_the_node_cache_subscribes_to_changes_of_the_cluster_and_of_no_other_names(case: str) -> None:
    """`push` counts only in a block with one `forward`, over TCP: that of the cluster's domain to the cluster DNS."""
    cluster, *others = node_cache_blocks(case)
    assert cluster.settings["cache"].origins == (("cluster", "local"),)
    assert cluster.settings["cache"].push == DEFAULT_SUBSCRIPTIONS
    (forward,) = cluster.settings["forward"]
    assert forward.force_tcp
    caches = [block.settings["cache"] for block in others if "cache" in block.directives]
    assert [cache.push for cache in caches] == [0, 0]


@pytest.mark.parametrize("case", NODE_CACHES)
def test_each_cache_of_the_node_cache_has_a_file_of_its_own_where_that_is_switched_on(case: str) -> None:
    caches = [block.settings["cache"] for block in node_cache_blocks(case) if "cache" in block.directives]
    persists = [cache.persist for cache in caches]
    files = [persist.path if persist is not None else "" for persist in persists]
    folder = "/var/lib/topodns"
    expected = [f"{folder}/cluster", f"{folder}/reverse", f"{folder}/others"] if case == "everything" else [""] * 3
    assert files == expected
    assert {persist.interval for persist in persists if persist is not None} == ({120.0} if all(files) else set())


def test_the_node_cache_asks_for_the_domain_that_the_server_has() -> None:
    plugins = [{"name": "health"}, {"name": "ready"}, {"name": "kubernetes", "parameters": "my.domain. in-addr.arpa"}]
    values = {"servers": [{"plugins": plugins}], "nodeCache": {"enabled": True, "dnsServer": ["10.96.0.10"]}}
    assert config_map(values, "node-local-dns")["Corefile"].startswith("my.domain:53 {")
