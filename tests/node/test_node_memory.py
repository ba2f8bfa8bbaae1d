"""Memory of a node cache before it has anything to remember: started, serving, scraped."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.namespaced_cluster import NodeScene
from tests.support.node_processes import node_cache
from tests.support.shipped_template import shipped_template

CEILING: Final = 36.7  # MB, of which runs differ by 0.1; prometheus-client included. Caches may take 7 more
SUPERVISOR_CEILING: Final = 11.0  # MB: a bare interpreter


def resident(pid: int) -> float:
    """In MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("firewall", ["nftables", "iptables"])
def test_started_and_scraped_it_leaves_room_for_its_cache(cluster: NodeScene, tmp_path: Path, firewall: str) -> None:
    with node_cache(cluster.node, tmp_path, firewall, shipped_template()) as cache:
        assert cache.metrics()
        assert resident(cache.pid) <= CEILING
        if firewall == "iptables":
            assert resident(cache.process.pid) <= SUPERVISOR_CEILING
