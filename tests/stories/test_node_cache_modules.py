"""The modules in a node cache's memory: the rest of the program is never loaded there."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.event_loops import PATIENCE
from tests.support.server_process import ROOT
from tests.support.shipped_template import shipped_template

LIBRARIES: Final = (
    *("kubernetes", "aiohttp", "msgspec", "yaml", "dnslib", "re2"),
    *("argparse", "difflib"),
)
OF_METRICS: Final = ("prometheus_client", "email", "http.server", "topodns.metrics.exposition")
OF_CLUSTERS: Final = (
    *(
        "app.workers",
        "app.workers.pool",
        "cli.check",
        "cli.serve",
    ),
    *("inspect.model", "inspect.coverage", "inspect.findings", "inspect.what_if", "inspect.audit", "inspect.sources"),
    *("inspect.explain", "inspect.reasons", "inspect.who", "inspect.text", "inspect.page.page"),
    *("cluster.state", "cluster.decode", "topology.keys", "topology.client_locator", "topology.select"),
    "kube",
    *("plugins.kubernetes", "plugins.k8s_external", "plugins.topology", "query.client_claim"),
)
OF_FEW_COREFILES: Final = (
    *(
        "plugins.autopath.handler",
        "plugins.dns64",
        "plugins.file",
        "plugins.hosts",
        "plugins.rewrite",
        "plugins.template",
    ),
    *("plugins.view", "plugins.loadbalance.source", "dns.dnslib_text", "cli.coredns_check"),
)
OF_PUSH: Final = (
    "dns.dso",
    "dns.push_messages",
    "net.upstream.dso_session",
    "plugins.cache.subscriptions",
    "plugins.push",
)
OF_PERSIST: Final = (
    *("cluster.decode.structs", "files.atomic_write", "files.framed_file"),
    *("plugins.cache.answer_file", "plugins.cache.persistence"),
)
# All that the command runs but its sockets: its own modules, and all that the template asks for, built.
SCRIPT: Final = """
import sys
from pathlib import Path
from random import Random
import topodns.cli.main
import topodns.nodecache.network
import topodns.app.server
from tests.support.node_cache_template import ENVIRONMENT, node_flags
from topodns.app.admin_endpoints import Admin
from topodns.app.generation import Assembly, Machine
from topodns.inspect.routes import inspection
from topodns.nodecache.corefile import NodeCorefile
from topodns.app.metrics import Metrics

directory = Path(sys.argv[1])
(directory / "resolv.conf").write_text("nameserver 192.0.2.1\\n")
corefile = NodeCorefile(node_flags(directory), ENVIRONMENT, str(directory / "resolv.conf"))
rendered = corefile.render(corefile.read())
assert rendered.problems == ()
generation = Assembly(Machine("", "", frozenset(), Random(0)), print).build(corefile.settings(rendered.text))
Admin(Metrics(list, ()), more=inspection(list))._routes(generation)
print(*sys.modules)
"""


def loaded_modules(directory: Path, template: str) -> set[str]:
    """The names of the modules of a node cache with this template."""
    (directory / "Corefile.base").write_text(template)
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return set(run.stdout.split())


def test_a_node_cache_loads_no_kubernetes_library_and_nothing_that_its_template_does_not_ask_for(
    tmp_path: Path,
) -> None:
    loaded = loaded_modules(tmp_path, shipped_template())
    assert {"topodns.nodecache.network", "topodns.app.server", "topodns.plugins.forward.handler", "uvloop"} <= loaded
    unwanted = (*LIBRARIES, *(f"topodns.{name}" for name in (*OF_CLUSTERS, *OF_FEW_COREFILES)))
    assert loaded.intersection(unwanted) == set()


def test_before_a_node_cache_blocks_signals_it_loads_neither_asyncio_nor_logging() -> None:
    """Until then a signal kills the process, which leaves the rules of an earlier instance behind."""
    script = "import sys, topodns.cli.main; print({'asyncio', 'logging'} & set(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert run.stdout == "set()\n"


def test_the_library_of_metrics_is_loaded_before_the_first_query_and_only_where_metrics_are_served(
    tmp_path: Path,
) -> None:
    template = shipped_template()
    assert loaded_modules(tmp_path, template).issuperset(OF_METRICS)
    without = re.sub(r"(?m)^ +prometheus .*\n", "", template)
    assert without != template
    assert loaded_modules(tmp_path, without).intersection(OF_METRICS) == set()


def test_what_persist_needs_is_loaded_only_with_it(tmp_path: Path) -> None:
    of_persist = {"msgspec", *(f"topodns.{name}" for name in OF_PERSIST)}
    template = shipped_template()
    assert loaded_modules(tmp_path, template) & of_persist == set()
    kept = template.replace("cache 30\n", f"cache 30 {{\n        persist {tmp_path}/answers\n    }}\n", 1)
    loaded = loaded_modules(tmp_path, kept)
    assert loaded >= of_persist
    assert "topodns.cluster.state" not in loaded


def test_what_push_needs_is_loaded_only_with_it(tmp_path: Path) -> None:
    template = shipped_template()
    of_push = {f"topodns.{name}" for name in OF_PUSH}
    assert loaded_modules(tmp_path, template) & of_push == of_push - {"topodns.plugins.push"}  # that of a server
    without = re.sub(r"(?m)^ +push\n", "", template)
    assert without != template
    assert loaded_modules(tmp_path, without) & of_push == set()
