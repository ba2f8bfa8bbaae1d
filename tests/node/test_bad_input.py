"""Input that a node cache cannot work with: a clear line, status 1, and no change of the node (N11, N16, issue 6)."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.namespaced_cluster import LISTENED, NodeScene
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, answering
from tests.support.node_cache_template import node_template
from tests.support.node_processes import arguments, environment, write_template
from tests.support.server_process import ROOT

GIVEN_UP = 20.0  # seconds: it ends by itself


def ended(
    cluster: NodeScene, command: list[str], variables: Mapping[str, str], *, before: tuple[str, ...] = ()
) -> list[str]:
    """The lines that were said by a node cache that ended with status 1 and left the node as it was."""
    node = cluster.node
    with node.namespace.entered():
        done = subprocess.run(
            [*before, sys.executable, "-m", "topodns", *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=GIVEN_UP, check=False,
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), **variables},
        )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stdout
    assert node.leftovers() == []
    return done.stdout.splitlines()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_template(tmp_path)
    return tmp_path


@pytest.mark.parametrize("wrong", ["not-an-address", "169.254.20.256", "169.254.20.10/32", "dns.example"])
def test_a_local_address_that_is_no_address(cluster: NodeScene, directory: Path, wrong: str) -> None:
    (line,) = ended(cluster, arguments(cluster.node, directory, listened=f"169.254.20.10,{wrong}"), environment())
    assert line == f"node-cache: '-localip' has '{wrong}', expected IP addresses with commas between them"


def test_an_upstream_service_without_a_kubelet_variable_is_an_error(cluster: NodeScene, directory: Path) -> None:
    lines = ended(cluster, arguments(cluster.node, directory), {})
    assert all("KUBE_DNS_UPSTREAM_SERVICE_HOST" in line and "Corefile.base:" in line for line in lines), lines


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("cluster.local:53 {\n    no-such-directive\n}\n", "Corefile.base:2: unknown directive 'no-such-directive'"),
        (node_template().replace("force_tcp", "force_tpc", 1), "Corefile.base:11: unknown option 'force_tpc'"),
        (
            node_template().replace("__PILLAR__LOCAL__DNS__", "__PILLAR__LOCAL__DSN__", 1),
            "Corefile.base:9: found __PILLAR__LOCAL__DSN__",
        ),
        (" \n", "Corefile.base: is empty"),
        (node_template()[:-3], "Corefile.base:"),
    ],
    ids=["directive", "option", "variable", "empty", "brace"],
)
def test_a_template_that_comes_to_no_corefile(
    cluster: NodeScene, directory: Path, template: str, expected: str
) -> None:
    write_template(directory, template)
    lines = ended(cluster, arguments(cluster.node, directory), environment())
    assert expected in lines[-1], lines


def test_no_template_at_all(cluster: NodeScene, directory: Path) -> None:
    (directory / "Corefile.base").unlink()
    (line,) = ended(cluster, arguments(cluster.node, directory), environment())
    own_too = f"nor is there the file of -conf, {directory}/Corefile"
    assert line == f"{directory}/Corefile.base: cannot be read: No such file or directory, {own_too}"


@pytest.mark.parametrize("firewall", ["auto", "nftables", "iptables"])
def test_neither_nft_nor_iptables_on_this_machine(cluster: NodeScene, directory: Path, firewall: str) -> None:
    """A mount namespace of its own, where these programs are not."""
    hidden = ("unshare", "--mount", "sh", "-c", f'{hiding()} exec "$@"', "sh")
    lines = ended(cluster, arguments(cluster.node, directory, firewall), environment(), before=hidden)
    assert re.search(r"-firewall .*(nft|iptables)|(nft|iptables).*-firewall", lines[-1]), lines


def hiding() -> str:
    """Shell commands that put something that cannot be run in the place of each firewall's program."""
    names = [f"{name}{kind}{save}" for name in ("iptables", "ip6tables") for kind in ("", "-nft", "-legacy")
             for save in ("", "-save", "-restore")]  # fmt: skip
    found = {
        os.path.join(folder, name) for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin") for name in [*names, "nft"]
    }
    real = sorted({os.path.realpath(path) for path in found if os.path.exists(path)})
    return "".join(f"mount --bind /dev/null {path}; " for path in real)


@pytest.mark.parametrize("firewall", ["auto", "nftables", "iptables"])
def test_no_permission_to_change_the_network(cluster: NodeScene, directory: Path, firewall: str) -> None:
    bounded = ("setpriv", "--bounding-set=-net_admin")
    lines = ended(cluster, arguments(cluster.node, directory, firewall), environment(), before=bounded)
    assert "CAP_NET_ADMIN" in lines[-1], lines


@pytest.mark.parametrize("address", [CLUSTER_DNS[4], LINK_LOCAL[6]])
def test_n11_a_port_that_is_in_use(cluster: NodeScene, directory: Path, address: str) -> None:
    with answering(cluster.node.namespace, "somebody", (address,), 53):
        lines = ended(cluster, arguments(cluster.node, directory), environment())
    assert re.search(rf"{address}\W.*in use", lines[-1]), lines


@pytest.mark.parametrize("kind", ["bridge", "ifb"])
def test_n11_beside_a_nodelocal_dnscache_that_serves_nothing_of_its_is_touched(
    cluster: NodeScene, directory: Path, kind: str
) -> None:
    where = cluster.node.namespace
    where.run("ip", f"link add cache0 type {kind}")
    where.run("ip", "link set cache0 up")
    for address in (LINK_LOCAL[4], CLUSTER_DNS[4]):
        where.run("ip", f"addr add {address}/32 dev cache0")
    where.run("iptables", f"-t raw -I PREROUTING -d {CLUSTER_DNS[4]}/32 -p udp --dport 53 -j NOTRACK")
    before = where.run("ip", "-o addr"), where.run("iptables-save", "-t raw")
    with answering(where, "somebody", (LINK_LOCAL[4], CLUSTER_DNS[4]), 53):
        command = [*arguments(cluster.node, directory, listened=LINK_LOCAL[4]), "-interfacename=cache0"]
        lines = ended(cluster, command, environment())
    assert "in use" in lines[-1], lines
    after = where.run("ip", "-o addr"), where.run("iptables-save", "-t raw")
    assert [re.sub(r"#.*|\[\d+:\d+\]", "", text) for text in after] == [
        re.sub(r"#.*|\[\d+:\d+\]", "", text) for text in before
    ]


@pytest.mark.parametrize("upstream", [CLUSTER_DNS[4], CLUSTER_DNS[6], LINK_LOCAL[4]])
def test_n16_the_cluster_dns_is_ourselves(cluster: NodeScene, directory: Path, upstream: str) -> None:
    lines = ended(cluster, arguments(cluster.node, directory), {"KUBE_DNS_UPSTREAM_SERVICE_HOST": upstream})
    forward = next(number for number, line in enumerate(node_template().split("\n"), 1) if "forward" in line)
    assert re.search(rf"Corefile.base:{forward}: 'forward' has .*{upstream}.*: a loop", lines[-1]), lines


@pytest.mark.parametrize("address", LISTENED)
def test_n16_the_resolver_of_the_node_is_ourselves(cluster: NodeScene, directory: Path, address: str) -> None:
    resolv_conf = directory / "resolv.conf"
    resolv_conf.write_text(f"nameserver {address}\n")
    write_template(directory, node_template().replace("__PILLAR__UPSTREAM__SERVERS__", str(resolv_conf)))
    lines = ended(cluster, arguments(cluster.node, directory), environment())
    assert re.search(rf"Corefile.base:\d+: 'forward' has .*{address}.*: a loop", lines[-1]), lines


@pytest.mark.parametrize("path", ["/nonexistent/pid", "/dev/full"])
def test_a_pid_file_that_cannot_be_written(cluster: NodeScene, directory: Path, path: str) -> None:
    lines = ended(cluster, [*arguments(cluster.node, directory), f"-pidfile={path}"], environment())
    assert re.search("No such file|No space left", lines[-1]), lines


def test_a_template_that_is_a_pipe(cluster: NodeScene, directory: Path) -> None:
    (directory / "Corefile.base").unlink()
    os.mkfifo(directory / "Corefile.base")
    lines = ended(cluster, arguments(cluster.node, directory), environment())
    assert "Corefile.base" in lines[-1], lines
