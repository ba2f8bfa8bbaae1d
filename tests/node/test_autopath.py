"""A Pod's search path gone through on its node: real stubs in the pod's namespace, one question on its link."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Namespace, Setup
from tests.support.node_cache_template import node_template
from tests.support.node_processes import running
from tests.support.server_process import ROOT, until

UPSTREAM = "10.50.0.3"
CLUSTER = f"""
cluster.local:53 {{
    bind {UPSTREAM}
    kubernetes cluster.local {{
        manifests {ROOT}/config/demo/cluster
    }}
}}
.:53 {{
    bind {UPSTREAM}
    file root
}}
"""
ROOT_FILE = """\
$ORIGIN .
$TTL 300
.           IN SOA ns.example. admin.example. 1 7200 1800 86400 60
.           IN NS ns.example.
example.com. IN A 192.0.2.1
example.com. IN AAAA 2001:db8::1
"""
# As the kubelet writes it for a Pod of the namespace `shop`.
RESOLV_CONF = f"""\
search shop.svc.cluster.local svc.cluster.local cluster.local
nameserver {CLUSTER_DNS[4]}
options ndots:5
"""


@contextmanager
def searching(pod: Namespace) -> Iterator[None]:
    """A process that `ip netns exec` starts in the namespace has a Pod's resolv.conf."""
    directory = Path("/etc/netns", pod.name)
    directory.mkdir(parents=True)
    (directory / "resolv.conf").write_text(RESOLV_CONF)
    try:
        yield
    finally:
        (directory / "resolv.conf").unlink()
        directory.rmdir()


@contextmanager
def node(scene: Setup, directory: Path, autopath: str) -> Iterator[None]:
    scene.cluster.run("ip", f"addr add {UPSTREAM}/24 dev eth0")
    (directory / "server").mkdir()
    (directory / "server" / "Corefile").write_text(CLUSTER)
    (directory / "server" / "root").write_text(ROOT_FILE)
    template = node_template().replace("/etc/resolv.conf", UPSTREAM).replace("__PILLAR__UPSTREAM__SERVERS__", UPSTREAM)
    (directory / "Corefile.base").write_text(template.replace("    loop\n", f"    loop\n{autopath}", 1))
    arguments = [
        "node-cache", f"-localip={LINK_LOCAL[4]},{CLUSTER_DNS[4]}", "-upstreamsvc=kube-dns-upstream",
        f"-basecorefile={directory}/Corefile.base", f"-kubednscm={directory}/kube-dns", "-firewall=nftables",
        "-metrics-listen-address=127.0.0.1:9353",
    ]  # fmt: skip
    with (
        running(scene.cluster, ["-conf", str(directory / "server" / "Corefile")], directory / "server" / "log"),
        running(scene.node, arguments, directory / "log", KUBE_DNS_UPSTREAM_SERVICE_HOST=UPSTREAM) as process,
        searching(scene.pod),
    ):
        until(
            lambda: process.poll() is not None or "10." in got(scene.pod, "dig +short +search web.shop"),
            "the node cache answers",
        )
        assert process.poll() is None, (directory / "log").read_text()
        yield


def got(pod: Namespace, command: str) -> str:
    """The output of a program of the pod, with the pod's resolv.conf; "" where it fails."""
    try:
        return pod.run("ip", f"netns exec {pod.name} {command}")
    except subprocess.CalledProcessError:
        return ""


def count_questions(scene: Setup) -> None:
    scene.node.run("nft", "add table inet counting")
    scene.node.run("nft", "add chain inet counting before { type filter hook prerouting priority -500 ; }")
    scene.node.run("nft", "add rule inet counting before iifname pod0 udp dport 53 counter")


def questions(scene: Setup) -> int:
    """How many have come over the pod's link since `count_questions`."""
    found = re.search(r"packets (\d+)", scene.node.run("nft", "list table inet counting"))
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize(
    ("autopath", "expected"), [("    autopath @kubernetes\n", 1), ("", 4)], ids=["with", "without"]
)
def test_with_autopath_a_pod_asks_once_for_a_name_outside(
    scene: Setup, tmp_path: Path, autopath: str, expected: int
) -> None:
    with node(scene, tmp_path, autopath):
        count_questions(scene)
        assert "192.0.2.1" in got(scene.pod, "dig +short +search example.com")
        assert questions(scene) == expected
        assert "192.0.2.1" in got(scene.pod, "getent ahostsv4 example.com")  # the C library
        assert questions(scene) == 2 * expected
