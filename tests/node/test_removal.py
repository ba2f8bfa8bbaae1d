"""What a node cache leaves behind that was killed and not started again goes as docs/node-cache.md says."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.namespaces import CLUSTER_DNS
from tests.support.node_processes import dig, node_cache
from tests.support.node_scene import NodeScene
from tests.support.process import until
from tests.support.runnable import block

pytestmark = pytest.mark.usefixtures("servers")


@pytest.mark.parametrize("firewall", ["nftables", "iptables"])
def test_what_is_left_of_one_that_was_killed_with_its_supervisor_is_gone_after_the_documented_commands(
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
        node.namespace.run("sh", ["-c", block("docs/node-cache.md", "remove").text])
        assert node.leftovers() == []
        assert dig(cluster.pod, CLUSTER_DNS[4], "web.shop.svc.cluster.local") == ["10.96.10.20"]
