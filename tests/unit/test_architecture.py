"""Checks of the structure of the code: sizes of modules and functions, names of tests, importers of short modules.

CONTRIBUTING.md ("Habits") has the rules and their reasons.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.syntax_trees import nodes_of, tree_of

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "topodns").rglob("*.py"))
PACKAGE, UNIT, STORIES = ROOT / "topodns", ROOT / "tests/unit", ROOT / "tests/stories"
MAX_MODULE = 500
MAX_FUNCTION = 60
SHORT_MODULE = 40  # lines: a shorter module with one importer belongs to its importer

TESTED_ELSEWHERE: Mapping[str, str] = {
    "__main__": "runs `cli.main`: tests/stories/test_command_line.py starts it",
    "app.hooks": "a Protocol and options without code",
    "app.listeners": "opens sockets: tests/stories/test_starting.py, tests/stories/test_reload.py",
    "app.process_metrics": "counts sockets and reloads: tests/stories/test_observing.py, tests/stories/test_reload.py",
    "app.event_loop": "runs the program: tests/stories/test_starting.py",
    "app.serving": "is a process: tests/unit/app/test_server.py, tests/stories/test_multisocket.py",
    "app.workers.worker": "is a process: tests/stories/test_multisocket.py",
    "cluster.decode.structs": "the API's fields as msgspec reads them: tests/unit/cluster/decode/test_objects.py",
    "hostnet.commands": "runs programs of the host: tests/node/test_repair.py, tests/node/test_switch.py",
    "hostnet.iptables": "changes a host's rules: tests/node/test_repair.py",
    "hostnet.link": "changes a host's links: tests/node/test_repair.py",
    "hostnet.nftables": "changes a host's rules: tests/node/test_repair.py",
    "hostnet.reconciler": "changes a host's network: tests/node/test_repair.py, tests/node/test_removal.py",
    "hostnet.watchdog_launch": "starts a process: tests/node/test_switch.py",
    "inspect.errors": "an error without code: raised in tests/unit/inspect/test_http_jobs.py",
    "kube.client.http": "opens connections: tests/stories/test_kube_api.py, tests/stories/test_kube_api_bodies.py",
    "kube.informer.store": "a contract without code",
    "kube.manifests.value": "an error and a value without code: tests/unit/kube/manifests/test_documents.py",
    "locator.controller": "asks the API server: tests/stories/test_locator_controller.py",
    "locator.metrics": "read over HTTP in tests/stories/test_locator_process.py",
    "locator.refusals": "asks the API server: tests/stories/test_locator_faults.py",
    "net.http1": "the names of h11 in use: tests/stories/test_admin_http.py, tests/stories/test_https_transport.py",
    "net.http_server.connection": "reads and writes sockets: tests/stories/test_admin_http.py",
    "net.http_server.messages": "values without code",
    "net.http_server.server": "listens: tests/stories/test_admin_http.py",
    "net.socket_memory": "asks the kernel: tests/stories/test_tcp.py",
    "net.tcp_connection": "reads and writes sockets: tests/stories/test_tcp.py",
    "net.tls_server": "makes contexts: tests/unit/plugins/test_tls.py, tests/stories/test_tls_stream.py",
    "net.upstream.client": "opens sockets: tests/stories/test_udp_transport.py, tests/stories/test_tcp_transport.py",
    "nodecache.command": "is the whole program on a node: tests/node/test_life.py",
    "plugins.cache.counts": "values without code",
    "plugins.forward.lazy_upstream": "opens sockets: tests/stories/test_forward_privacy.py",
    "plugins.k8s_external.answer": "asked through the handler: tests/unit/plugins/k8s_external/test_handler.py",
    "query.packet_entry": "values without code",
    "query.session": "a contract and its values without code",
    "query.upstream": "a contract and its values without code",
}
"""Modules without tests of their name, and where they are tested or why there is nothing to test."""

SHORT_WITH_ONE_IMPORTER: Mapping[str, str] = {
    "plugins.loadbalance.source": "reads a file: the I/O of a plugin is a module of its own, as in `file` and `hosts`",
}
"""Modules of fewer than SHORT_MODULE lines with one importer, and why each is a module."""


class Outline(NamedTuple):
    """What the checks look at in a module."""

    docstring: str | None
    functions: dict[str, int]  # the lines of the longest of each name
    names: set[str]  # of variables and arguments
    classes: list[str]  # of the module itself


@cache
def outline(path: Path) -> Outline:
    tree = tree_of(path)
    names, lines = set[str](), dict[str, int]()
    for node in nodes_of(path):
        match node:
            case ast.Name(id=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names |= {arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]}
                lines[name] = max(lines.get(name, 0), (node.end_lineno or node.lineno) - node.lineno)
    return Outline(ast.get_docstring(tree), lines, names, [e.name for e in tree.body if isinstance(e, ast.ClassDef)])


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_module_is_small_and_opens_with_its_subject() -> None:
    lines = {named(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: number for name, number in lines.items() if number > MAX_MODULE} == {}
    assert [named(path) for path in MODULES if not outline(path).docstring] == [], "no docstring"


def test_a_function_fits_on_a_screen() -> None:
    lines = {(named(path), name): lines for path in MODULES for name, lines in outline(path).functions.items()}
    assert {each: number for each, number in lines.items() if number >= MAX_FUNCTION} == {}


def test_no_variable_has_the_name_zone_alone() -> None:
    """`origin` is a DNS zone's name, `topology_zone` the value of topology.kubernetes.io/zone."""
    spelled = ("structs.py", "documents.py")  # the field names of the API, and of our JSON
    assert [named(path) for path in MODULES if path.name not in spelled and "zone" in outline(path).names] == []


def test_the_unit_tests_mirror_the_package() -> None:
    packages = {path.parent.relative_to(ROOT / "topodns") for path in MODULES}
    tested = {path.parent.relative_to(ROOT / "tests/unit") for path in (ROOT / "tests/unit").rglob("test_*.py")}
    assert {package for package in tested if package not in packages} == set()


def test_a_type_name_is_defined_once() -> None:
    """One word, one meaning: a reader who meets a name knows which one it is. Private classes are left out."""
    names = Counter(name for path in MODULES for name in outline(path).classes)
    assert [name for name, count in names.items() if count > 1 and not name.startswith("_")] == []


@pytest.mark.parametrize(
    ("text", "module"),
    [
        (r"AF_NETLINK|nlmsghdr", "netlink.messages"),
        (r"class \w*Histogram", "query.histogram"),
        (r"\bSSHFP 44\b|\bNAPTR: Final = 35\b", "dns.rrtype"),
    ],
)
def test_there_is_one_netlink_parser_one_histogram_and_one_list_of_record_types(text: str, module: str) -> None:
    assert [name for name, path in named_modules().items() if re.search(text, path.read_text())] == [module]


def named_modules() -> dict[str, Path]:
    """The modules by name below the package, without `__init__`."""
    paths = [path for path in MODULES if path.stem != "__init__"]
    return {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in paths}


@cache
def imports_of(path: Path) -> frozenset[str]:
    """What a file imports of the package, by name below it: modules, and what `from` takes out of them."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(name.removeprefix("topodns.") for name in found if name.startswith("topodns."))


def is_of_a_plugin_folder(path: Path) -> bool:
    """Whether the module is in a plugin's own folder. Each has the same names inside."""
    return path.parent.parent == PACKAGE / "plugins"


def unit_tests_of(path: Path) -> list[Path]:
    """`test_MODULE.py` and `test_MODULE_*.py` in the folder of the package; of two modules the longer name owns a file.

    The settings of a plugin are tested with the `setup` that parses them.
    """
    stem = "setup" if is_of_a_plugin_folder(path) and path.stem == "settings" else path.stem
    longer = [each.stem for each in path.parent.glob(f"{stem}_*.py")]
    tests = (UNIT / path.parent.relative_to(PACKAGE)).glob("test_*.py")
    return [test for test in tests if is_named(test, stem) and not any(is_named(test, other) for other in longer)]


def is_named(test: Path, name: str) -> bool:
    return test.stem == f"test_{name}" or test.stem.startswith(f"test_{name}_")


def stories_of(path: Path) -> list[Path]:
    """Tests with sockets or processes: `test_MODULE*.py` or `test_PACKAGE_MODULE*.py` that import from the package."""
    package = ".".join(path.parent.relative_to(PACKAGE).parts)
    names = (path.stem, f"{path.parent.name}_{path.stem}")
    return [
        test
        for test in STORIES.glob("test_*.py")
        if any(is_named(test, name) for name in names)
        and any(f"{imported}.".startswith(f"{package}.") for imported in imports_of(test))
    ]


def test_the_tests_of_a_module_have_its_name() -> None:
    modules = named_modules()
    without = {name for name, path in modules.items() if not unit_tests_of(path) and not stories_of(path)}
    assert sorted(without - TESTED_ELSEWHERE.keys()) == [], "no tests of this name: write them"
    assert sorted(TESTED_ELSEWHERE.keys() - without) == [], "in the list, and has tests of its name or does not exist"


def test_the_files_that_test_a_module_instead_exist() -> None:
    named = [path for reason in TESTED_ELSEWHERE.values() for path in re.findall(r"tests/[\w/]+\.py", reason)]
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_a_short_module_has_several_importers() -> None:
    """Plugins are left out, which `load` imports by name, and the modules that each plugin's folder has."""
    imported = Counter(name for path in MODULES for name in imports_of(path))
    short = {
        name
        for name, path in named_modules().items()
        if len(path.read_text(encoding="utf-8").splitlines()) < SHORT_MODULE and imported[name] == 1
        if path.parent != PACKAGE / "plugins"
        if not (is_of_a_plugin_folder(path) and path.stem in ("handler", "metrics", "settings", "setup"))
    }
    assert short == SHORT_WITH_ONE_IMPORTER.keys()


def test_the_locator_lists_and_watches_by_the_informer_and_writes_by_the_kubernetes_package() -> None:
    """There is one reflector. The package reads kubeconfigs, and is the client of nothing but the controller."""
    users = {name for name, path in named_modules().items() if "kube.client.official_client" in set(imports_of(path))}
    assert {name.partition(".")[0] for name in users - {"kube.client.kubeconfig"}} == {"locator"}
    assert "kube.informer.reflector" in set(imports_of(PACKAGE / "locator" / "controller.py"))
    text = (PACKAGE / "kube" / "client" / "official_client.py").read_text(encoding="utf-8")
    assert not re.search(r"kubernetes\.aio\.(watch|informer)", text)
