"""topodns as an operator installs and runs it: real kubelets on four nodes in three topology zones, with IPv4 and IPv6,
the image of the working tree, the Helm chart, and the commands of the documents.

A lab for each mode of kube-proxy, in which the scenarios follow each other; what they need is installed by the first
that asks for it. The first scenario of four nodes is README's chapter about installing.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kubelab.lab import Lab
from tests.kubelab.options import Options, node_list
from tests.kubelab.prepare import why_impossible
from tests.support.chart.helm import HELM
from tests.support.kube.client_pods import Askers, askers_of, client_pods
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.coredns import kubeadm_coredns
from tests.support.kube.dnstools import DNSTOOLS_IMAGE, dnstools_image
from tests.support.kube.image import write_topodns_image
from tests.support.kube.labs import lab_of
from tests.support.kube.operator_commands import Operator
from tests.support.kube.outage_scene import Scene, outage_scene
from tests.support.kube.server_pods import grant, serving
from tests.support.kube.upstream import upstream
from tests.support.kube.waiting import becomes
from tests.support.suite_skips import skip_all, those_of

TOPOLOGY_ZONES: Final = "a,a,b,c"
# In this order: the first has a lab of its own, which is down before the others' is brought up. Each of these finds
# topodns as the cluster DNS, as README installs it, and leaves it so; the last two have CoreDNS there.
SCENARIOS: Final = (
    "test_one_node",
    "test_install",
    "test_kubectl_plugin",
    "test_admission",
    "test_topology",
    "test_topology_page",
    "test_locator",
    "test_node_cache",
    "test_node_cache_push",
    "test_client_pods",
    "test_from_nodelocaldns",
    "test_permissions",
    "test_api_server",
    "test_cut_off",
    "test_dnsperf",
    "test_replacing_coredns",
    "test_quick_start",
)

FIGURES: Final = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The measurements of the run, whatever else is printed."""
    if config.stash[FIGURES]:
        terminalreporter.section("figures")
        for line in config.stash[FIGURES]:
            terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)  # after -m and -k, or the one test with the reason might be deselected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One line where none of it can be tried; else in order, the labs one after the other."""
    ours = those_of(Path(__file__).parent, items)
    if ours and (reason := why_impossible() or (HELM.missing and "no helm: `make test-e2e` builds it")):
        skip_all(config, items, ours, f"NO KUBERNETES HERE, nothing of tests/e2e is tried: {reason}")
        return
    ordered = iter(sorted(ours, key=lambda item: (_lab_of(item), SCENARIOS.index(item.path.stem))))
    items[:] = [next(ordered) if item in ours else item for item in items]


def _lab_of(item: pytest.Item) -> str:
    """So that the lab with nftables, which has all the scenarios, comes first."""
    assert isinstance(item, pytest.Function)
    return "" if item.callspec.params["proxy_mode"] == "nftables" else "later"


@pytest.fixture(scope="session")
def say(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """A line with a measurement, for the end of the session."""
    return pytestconfig.stash[FIGURES].append


@pytest.fixture(scope="session", params=["nftables", "iptables"])
def proxy_mode(request: pytest.FixtureRequest) -> str:
    """Of kube-proxy. What does not depend on it is tried with one: `parametrize("proxy_mode", ["nftables"], ...)`."""
    mode: str = request.param
    return mode


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The images beside the lab's own: that of the working tree, and that of the pods that ask."""
    archive = tmp_path_factory.mktemp("image") / "topodns.tar"
    write_topodns_image(archive)
    return [archive, dnstools_image()]


@pytest.fixture(scope="session")
def lab(proxy_mode: str, archives: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    options = Options(node_list(TOPOLOGY_ZONES), dual_stack=True, proxy_mode=proxy_mode, audit=True)
    with lab_of(options, tmp_path_factory.mktemp(proxy_mode) / "lab", *archives) as lab, upstream(lab):
        yield lab


@pytest.fixture(scope="session")
def cluster(lab: Lab) -> Cluster:
    return Cluster(lab)


@pytest.fixture(scope="session")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator(lab, tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="session")
def installed(operator: Operator) -> str:
    """topodns is the cluster DNS of a cluster that had none; what README's commands printed."""
    return operator.follow("README.md", "install")


@pytest.fixture(scope="session")
def clients(cluster: Cluster) -> Iterator[Place]:
    """On each node a pod and a pod of the node's network, with Python, dig and dnsperf."""
    with client_pods(cluster, image=DNSTOOLS_IMAGE) as place:
        yield place


@pytest.fixture(scope="session")
def askers(installed: str, cluster: Cluster, clients: Place) -> Iterator[Askers]:
    """By node: a pod that asks."""
    yield from askers_of(cluster, clients, "client")


@pytest.fixture(scope="session")
def host_askers(installed: str, cluster: Cluster, clients: Place) -> Iterator[Askers]:
    """By node: a pod of the node's own network that asks."""
    yield from askers_of(cluster, clients, "host-client")


@pytest.fixture
def place(cluster: Cluster) -> Iterator[Place]:
    with cluster.namespace() as place:
        yield place


@pytest.fixture
def scene(place: Place, askers: Askers) -> Scene:
    return outage_scene(place, askers)


@pytest.fixture(scope="session")
def kubeadm(installed: str, cluster: Cluster, operator: Operator) -> None:
    """CoreDNS is the cluster DNS, as kubeadm sets it up; of topodns nothing is left but the Service."""
    operator.run("helm", "--namespace", "kube-system", "uninstall", "topodns", "--wait")
    grant(cluster, kubeadm_coredns())
    becomes(lambda: serving(cluster), ["coredns"] * 2)
