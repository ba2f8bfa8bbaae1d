"""Processes in a `namespaced_cluster`: servers of the cluster DNS, and the node cache of a node, with real files."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.support.namespaced_cluster import LISTENED, NODES, OUTSIDE, SERVERS, UPSTREAM_SERVICE, Node, NodeScene
from tests.support.namespaced_node import CLUSTER_DNS, Namespace
from tests.support.node_cache_template import node_template
from tests.support.scraped_metrics import fresh
from tests.support.server_process import ROOT, until

READY: Final = "web.shop.svc.cluster.local"
HEADLESS: Final = "cache.shop.svc.cluster.local"  # with keys: each node of the demo gets its own endpoints
OWN_METRICS: Final = "127.0.0.1:9353"
NOISE: Final = 1.0  # seconds that a figure of the issue may be missed by, on a machine that does other things, too
SLOW_START: Final = 4.0  # seconds likewise for a start, which is nearly all computing
STOP_PATIENCE: Final = 5.0  # seconds that a teardown may take (issue 6)

_SERVER: Final = f"""
cluster.local:53 {{
    bind HERE
    kubernetes cluster.local {{
        manifests {ROOT}/config/demo/cluster
        pods insecure
    }}
    topology {{
        trust {" ".join(NODES)}
    }}
    log
}}
"""


@contextmanager
def running(where: Namespace, arguments: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """`python -m topodns ARGUMENTS` there; its output at the end of `log`. Killed at the end if it still lives."""
    with where.entered(), log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "topodns", *arguments],
            stdout=output, stderr=subprocess.STDOUT, cwd=log.parent, start_new_session=True,
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), **environment},
        )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with what runs under it
        process.wait()


def dig(where: Namespace, server: str, name: str, more: str = "") -> list[str]:
    """The data of the answers, sorted; none where no server answers."""
    try:
        found = where.run("dig", f"+short +time=1 +tries=1 {more} @{server} {name}.")
    except subprocess.CalledProcessError:
        return []
    return sorted(line for line in found.splitlines() if not line.startswith(";"))


class ClusterServer:
    """One server of the cluster DNS, which can end and start again."""

    def __init__(self, scene: NodeScene, number: int, directory: Path) -> None:
        self.log = directory / f"server{number}.log"
        self._scene, self._addresses, self._stack = scene, SERVERS[number], ExitStack()
        self._corefile = directory / f"server{number}.Corefile"
        self._corefile.write_text(_SERVER.replace("HERE", " ".join(self._addresses.values())))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = self._stack.enter_context(
            running(self._scene.cluster, ["-conf", str(self._corefile)], self.log)
        )

    def wait(self) -> None:
        """Return once it answers."""
        until(lambda: dig(self._scene.cluster, self._addresses[4], READY), f"the cluster DNS answers: {self.log}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Return when it has ended."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(2 * STOP_PATIENCE)
        self._stack.close()

    def close(self) -> None:
        self._stack.close()


@contextmanager
def cluster_dns(scene: NodeScene, directory: Path) -> Iterator[tuple[ClusterServer, ClusterServer]]:
    """Both servers of the cluster DNS, answering."""
    with ExitStack() as stack:
        servers = ClusterServer(scene, 0, directory), ClusterServer(scene, 1, directory)
        for server in servers:
            stack.callback(server.close)
            server.start()
        for server in servers:
            server.wait()
        yield servers


class NodeCache:
    """The node cache of a node, or one of several instances."""

    def __init__(self, node: Node, process: subprocess.Popen[bytes], log: Path, template: Path) -> None:
        self.node, self.process, self.log, self.template = node, process, log, template

    @property
    def pid(self) -> int:
        """The process that answers: the one under its supervisor, where it has one."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else self.process.pid

    def metrics(self) -> dict[str, float]:
        """The samples of node-cache's own metrics, as `name` or `name{label}`; the value of one label only."""
        return {
            sample.name + (f"{{{','.join(sample.labels.values())}}}" if sample.labels else ""): sample.value
            for family in fresh(self._exposition).families
            for sample in family.samples
        }

    def _exposition(self) -> str:
        host, _, port = OWN_METRICS.partition(":")
        with self.node.namespace.entered():
            connection = http.client.HTTPConnection(host, int(port), timeout=STOP_PATIENCE)
            try:
                connection.request("GET", "/metrics")
                return connection.getresponse().read().decode()
            finally:
                connection.close()

    def switched_on(self) -> bool:
        """Whether what a Pod asks the cluster DNS is answered here, seen from outside: answered, and not tracked.

        Not under load: what others have just asked for by way of kube-proxy is forgotten by it, too.
        """
        self.node.forget_tracked()
        pod = self.node.pods[0]
        for address in CLUSTER_DNS.values():
            if not dig(pod, address, READY) or self.node.is_tracked(address):
                return False
        return True

    def wait(self) -> None:
        """Return once it answers and has the traffic."""
        until(lambda: self.process.poll() is not None or self.switched_on(), f"switched on: {self.log}", 20.0)
        assert self.process.poll() is None, self.log.read_text()

    def stop(self) -> int:
        """The exit status of an orderly end."""
        self.process.terminate()
        return self.process.wait(2 * STOP_PATIENCE)


def arguments(node: Node, directory: Path, firewall: str = "nftables", listened: str = ",".join(LISTENED)) -> list[str]:
    """The command line of a node cache whose files are in `directory`."""
    return [
        "node-cache", f"-localip={listened}", "-upstreamsvc=kube-dns-upstream",
        f"-basecorefile={directory}/Corefile.base", f"-conf={directory}/Corefile", f"-kubednscm={directory}/kube-dns",
        f"-nodename={node.name}", f"-firewall={firewall}", f"-metrics-listen-address={OWN_METRICS}",
    ]  # fmt: skip


def environment(version: int = 4) -> dict[str, str]:
    """The kubelet's variables: the address of the Service behind which the cluster DNS is."""
    return {"KUBE_DNS_UPSTREAM_SERVICE_HOST": UPSTREAM_SERVICE[version]}


def write_template(directory: Path, text: str | None = None) -> Path:
    """NodeLocal DNSCache's template, or another one, with the resolver of this scene."""
    directory.mkdir(exist_ok=True)
    path = directory / "Corefile.base"
    path.write_text((node_template() if text is None else text).replace("__PILLAR__UPSTREAM__SERVERS__", OUTSIDE))
    return path


@contextmanager
def node_cache(
    node: Node, directory: Path, firewall: str = "nftables", template: str | None = None, version: int = 4
) -> Iterator[NodeCache]:
    """A node cache that has the traffic; it reaches the cluster DNS by an address of this IP version."""
    directory = directory / f"{node.name}-cache"
    path = write_template(directory, template)
    log = directory / "log"
    with running(node.namespace, arguments(node, directory, firewall), log, **environment(version)) as process:
        cache = NodeCache(node, process, log, path)
        cache.wait()
        yield cache
