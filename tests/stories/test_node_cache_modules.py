"""What a node's cache has in memory: the rest of the program is never loaded there."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.process import ROOT
from tests.support.shipped_template import shipped_template

LIBRARIES: Final = (
    *("kubernetes", "aiohttp", "msgspec", "yaml", "dnslib", "re2"),
    *("prometheus_client", "email", "http", "argparse", "difflib"),
)
OF_CLUSTERS: Final = (
    *("clusters", "published_clusters", "published_api", "explain", "manifest_check", "commands"),
    *(
        "cluster.state",
        "cluster.decode",
        "cluster.policy",
        "cluster.locate",
        "settings.kubernetes",
        "settings.topology",
    ),
    *("edge.api_source", "edge.kube_api", "edge.manifests", "edge.documents", "edge.service_events"),
    *("resolve.cluster_zone", "resolve.k8s_external", "resolve.identity", "config.directives.kubernetes"),
)
OF_FEW_COREFILES: Final = (
    *("resolve.autopath", "resolve.dns64", "resolve.hosts", "resolve.rewrite", "resolve.template", "resolve.view"),
    *("resolve.zone_file", "edge.hosts_source", "edge.weight_source", "edge.zone_file_source", "dns.presentation"),
    *("config.directives.rewrite", "config.directives.template", "config.directives.view", "config.migration"),
)
# All that the command runs but its sockets: its own modules, and all that the template asks for, built.
SCRIPT: Final = """
import sys
from pathlib import Path
from random import Random
import topodns.cli
import topodns.node_cache
import topodns.app
from tests.support.node_template import ENVIRONMENT, node_flags
from topodns.admin import Admin
from topodns.assembly import Assembly, Machine
from topodns.config.node_cache.corefile import NodeCorefile
from topodns.edge.metrics import Metrics
from topodns.resolve.chain import Host

directory = Path(sys.argv[1])
(directory / "resolv.conf").write_text("nameserver 192.0.2.1\\n")
corefile = NodeCorefile(node_flags(directory), ENVIRONMENT, str(directory / "resolv.conf"))
rendered = corefile.render(corefile.read())
assert rendered.problems == ()
generation = Assembly(Machine(Host("", Random(0)), "", frozenset()), print).build(corefile.settings(rendered.text))
Admin(Metrics(list, ()))._routes(generation)
print(*sys.modules)
"""


def test_a_node_cache_loads_no_kubernetes_library_and_nothing_that_its_template_does_not_ask_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "Corefile.base").write_text(shipped_template())
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(run.stdout.split())
    assert {"topodns.node_cache", "topodns.app", "topodns.resolve.forward.step", "uvloop"} <= loaded
    unwanted = (*LIBRARIES, *(f"topodns.{name}" for name in (*OF_CLUSTERS, *OF_FEW_COREFILES)))
    assert loaded.intersection(unwanted) == set()
