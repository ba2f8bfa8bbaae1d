"""The command `node-cache` on a node: real processes, a real cluster DNS behind it, pods that ask with dig."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.support.namespaces import CLUSTER_DNS, LINK_LOCAL, Namespace, World, ask
from tests.support.node_template import node_template
from tests.support.process import until

ROOT: Final = Path(__file__).parents[2]
UPSTREAM: Final = "10.50.0.3"
NAME: Final = "cache.shop.svc.cluster.local"  # headless, with keys: each node of the demo gets its own
SERVER: Final = f"""
cluster.local:53 {{
    bind {UPSTREAM}
    kubernetes cluster.local {{
        manifests {ROOT}/config/demo/cluster
    }}
    topology {{
        trust 10.50.0.0/24
    }}
    log
}}
"""


@contextmanager
def running(where: Namespace, arguments: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """`python -m topodns ARGUMENTS` there; its output in `log`. Killed at the end if it still lives."""
    with where.entered(), log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "topodns", *arguments],
            stdout=output, stderr=subprocess.STDOUT, cwd=log.parent, env={**os.environ, **environment},
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with what runs under it
        process.wait()


@contextmanager
def cluster_dns(scene: World, directory: Path) -> Iterator[Path]:
    """A topodns server with the demo's cluster; the file of its query log."""
    scene.cluster.run("ip", f"addr add {UPSTREAM}/24 dev eth0")
    (directory / "server").mkdir()
    corefile = directory / "server" / "Corefile"
    corefile.write_text(SERVER)
    log = directory / "server" / "log"
    with running(scene.cluster, ["-conf", str(corefile)], log):
        until(lambda: dig(scene.cluster, UPSTREAM, "web.shop.svc.cluster.local"), "the cluster DNS answers")
        yield log


@contextmanager
def node_cache(
    scene: World, directory: Path, firewall: str = "nftables", template: str = "", awaited: bool = True
) -> Iterator[subprocess.Popen[bytes]]:
    """A node cache of node-b2, which answers by its addresses before this goes on where it is `awaited`."""
    base = (template or node_template()).replace("__PILLAR__UPSTREAM__SERVERS__", UPSTREAM)
    (directory / "Corefile.base").write_text(base)
    arguments = [
        "node-cache", f"-localip={LINK_LOCAL[4]},{CLUSTER_DNS[4]}", "-upstreamsvc=kube-dns-upstream",
        f"-basecorefile={directory}/Corefile.base", f"-conf={directory}/Corefile", f"-kubednscm={directory}/kube-dns",
        "-nodename=node-b2", f"-firewall={firewall}", "-metrics-listen-address=127.0.0.1:9353",
    ]  # fmt: skip
    environment = {"KUBE_DNS_UPSTREAM_SERVICE_HOST": UPSTREAM}
    with running(scene.node, arguments, directory / "log", **environment) as process:
        if awaited:
            until(
                lambda: process.poll() is not None or dig(scene.pod, CLUSTER_DNS[4], NAME),
                "the node cache answers",
                15.0,
            )
        assert process.poll() is None, (directory / "log").read_text()
        yield process


def dig(where: Namespace, server: str, name: str) -> list[str]:
    """The addresses; none where nobody answers."""
    try:
        found = where.run("dig", f"+short +time=1 +tries=1 @{server} {name}.")
    except subprocess.CalledProcessError:
        return []
    return sorted(line for line in found.splitlines() if not line.startswith(";"))


def is_kept_from_conntrack(scene: World) -> bool:
    scene.forget_tracked()  # what was asked before the switch was on
    return dig(scene.pod, CLUSTER_DNS[4], NAME) != [] and not scene.is_tracked(CLUSTER_DNS[4])


def leftovers(scene: World) -> list[str]:
    """Tables and links that are not the world's own."""
    tables = [line for line in scene.node.run("nft", "list tables").splitlines() if "topodns" in line]
    links = [line for line in scene.node.run("ip", "-o link").splitlines() if "nodelocaldns" in line]
    return tables + links


def test_a_pod_gets_its_own_nodes_endpoints_through_the_cache_of_its_node(scene: World, tmp_path: Path) -> None:
    with cluster_dns(scene, tmp_path) as log, node_cache(scene, tmp_path):
        own = dig(scene.pod, CLUSTER_DNS[4], NAME)
        assert own == dig(scene.pod, LINK_LOCAL[4], NAME)
        option = f"+ednsopt=65518:{b'node-b2'.hex()}"
        expected = scene.node.run("dig", f"+short {option} @{UPSTREAM} {NAME}.")
        assert own == sorted(expected.split())
        everybody = scene.node.run("dig", f"+short {option.replace(b'b2'.hex(), b'c1'.hex())} @{UPSTREAM} {NAME}.")
        assert own != sorted(everybody.split())
        assert " tcp " in log.read_text()
        assert is_kept_from_conntrack(scene)


def test_a_claim_of_the_client_goes_no_further(scene: World, tmp_path: Path) -> None:
    with cluster_dns(scene, tmp_path), node_cache(scene, tmp_path):
        claim = f"+short +ednsopt=65518:{b'node-a1'.hex()} @{CLUSTER_DNS[4]} {NAME}."
        assert sorted(scene.pod.run("dig", claim).split()) == dig(scene.pod, CLUSTER_DNS[4], NAME)


def test_stopped_it_leaves_nothing_and_the_cluster_dns_answers(scene: World, tmp_path: Path) -> None:
    with cluster_dns(scene, tmp_path), node_cache(scene, tmp_path) as process:
        assert len(leftovers(scene)) == 2
        process.terminate()
        assert process.wait(10) == 0
        assert leftovers(scene) == []
        assert ask(scene.pod, CLUSTER_DNS[4]) == "cluster"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_n09_killed_or_hung_the_cluster_dns_answers_within_two_seconds(
    scene: World, tmp_path: Path, number: signal.Signals
) -> None:
    with cluster_dns(scene, tmp_path), node_cache(scene, tmp_path) as process:
        process.send_signal(number)
        until(lambda: ask(scene.pod, CLUSTER_DNS[4]) == "cluster", "the cluster DNS answers", 3.0)


def test_with_iptables_it_runs_under_a_supervisor(scene: World, tmp_path: Path) -> None:
    with cluster_dns(scene, tmp_path), node_cache(scene, tmp_path, "iptables") as process:
        assert is_kept_from_conntrack(scene)
        process.terminate()
        assert process.wait(10) == 0
        assert "topodns" not in scene.node.run("iptables-save", []).lower()
        assert ask(scene.pod, CLUSTER_DNS[4]) == "cluster"


def test_n11_a_port_in_use_is_said_before_any_rule_stands(scene: World, tmp_path: Path) -> None:
    scene.answer_on_node(CLUSTER_DNS[4])
    taken = pytest.raises(AssertionError, match="in use")
    with cluster_dns(scene, tmp_path), taken, node_cache(scene, tmp_path):
        pass
    assert leftovers(scene) == []
