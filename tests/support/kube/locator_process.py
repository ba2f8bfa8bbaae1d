"""`topodns locator` as a process of the host, with the rights that it has in a cluster."""

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.kube.cluster import Cluster
from tests.support.kube.host_process import account_kubeconfig
from tests.support.kube.waiting import eventually
from tests.support.server_process import COMMAND, METRICS, ROOT, own_address

ACCOUNT = "topodns-locator"
OF_POD_LOCATORS: Final = (
    {"apiGroups": [""], "resources": ["namespaces", "nodes", "pods", "services"], "verbs": ["list", "watch"]},
    {"apiGroups": ["multicluster.x-k8s.io"], "resources": ["serviceimports"], "verbs": ["list", "watch"]},
    {
        "apiGroups": ["topodns.io"],
        "resources": ["podlocators"],
        "verbs": ["list", "watch", "create", "patch", "delete"],
    },
)
"""The rules of its ClusterRole with the flag `--kind podlocator`."""


class LocatorProcess:
    """One replica; `log` is its output."""

    def __init__(self, process: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
        self.process = process
        self._address = address
        self.log = log

    def metrics(self) -> Mapping[str, float]:
        """Its samples by name and labels; none while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://{self._address}:{METRICS}/metrics", timeout=5) as response:
                text = response.read().decode()
        except OSError:
            return {}
        return {name: float(value) for name, value in re.findall(r"^(topodns_locator_\S+) (\S+)$", text, re.MULTILINE)}

    @property
    def leads(self) -> bool:
        return self.metrics().get("topodns_locator_leader") == 1.0

    @property
    def writes(self) -> float:
        return sum(value for name, value in self.metrics().items() if name.startswith("topodns_locator_writes_total"))

    @property
    def resident(self) -> int:
        """MB of 1,048,576 octets."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        (kilobytes,) = re.findall(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        return int(kilobytes) // 1024


@contextmanager
def locator_process(cluster: Cluster, directory: Path, *flags: str) -> Iterator[LocatorProcess]:
    """It runs, and may not lead yet; its service account exists. In the end it is killed."""
    directory.mkdir(exist_ok=True)
    kubeconfig, log, address = directory / "kubeconfig", directory / "log", own_address()
    kubeconfig.write_text(json.dumps(account_kubeconfig(cluster, ACCOUNT)))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*COMMAND, "locator", "--kubeconfig", str(kubeconfig), "--metrics", f"{address}:{METRICS}", *flags],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        running = LocatorProcess(process, address, log)
        eventually(lambda: running.metrics() or process.poll() is not None, "its metrics")
        assert process.poll() is None, log.read_text()
        yield running
    finally:
        process.kill()
        process.wait()
