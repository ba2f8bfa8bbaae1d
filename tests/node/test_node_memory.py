"""What a node cache costs in memory before it has anything to remember: started, serving, scraped."""

import sys
from pathlib import Path
from typing import Final

from tests.node.test_node_cache import cluster_dns, node_cache
from tests.support.namespaces import World

CEILING: Final = 33.0  # MB: the caches and hot tables may take 8 more, and 40 is what it may have in all
SUPERVISOR_CEILING: Final = 11.0  # MB: a bare interpreter

SCRAPE: Final = "import urllib.request; print(len(urllib.request.urlopen('http://127.0.0.1:9353/metrics').read()))"


def resident(pid: int) -> float:
    """In MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_a_started_node_cache_leaves_room_for_its_cache(scene: World, tmp_path: Path) -> None:
    with cluster_dns(scene, tmp_path), node_cache(scene, tmp_path) as process:
        assert int(scene.node.run(sys.executable, ["-c", SCRAPE])) > 0
        assert resident(process.pid) <= CEILING


def test_with_iptables_the_supervisor_beside_it_is_a_bare_interpreter(scene: World, tmp_path: Path) -> None:
    with cluster_dns(scene, tmp_path), node_cache(scene, tmp_path, "iptables") as process:
        (child,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        assert resident(process.pid) <= SUPERVISOR_CEILING
        assert resident(child) <= CEILING
