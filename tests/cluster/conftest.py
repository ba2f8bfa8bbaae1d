"""One lab for the whole suite: four nodes in zones a, a, b, c, with IPv4 and IPv6, topodns as cluster DNS, and on each
node a pod and a pod of the node's network that ask it. Tests take a namespace of their own.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.kubelab.lab import Lab
from tests.kubelab.options import CLUSTER_DNS, CLUSTER_DNS_IPV6, Options, node_list
from tests.kubelab.prepare import why_impossible, why_no_fake_nodes
from tests.support.kube.client_pods import Askers, askers_of, client_pods
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.image import write_topodns_image
from tests.support.kube.labs import lab_of
from tests.support.kube.server_pods import Server, cluster_dns_service, grant, permissions, server
from tests.support.suite_skips import skip_all, those_of

TOPOLOGY_ZONES: Final = "a,a,b,c"
CROWDED: Final = ("test_locator.py", "test_many_nodes.py")  # the tests that need kwok
COREFILE: Final = """\
.:53 {
    errors
    health
    ready
    log
    kubernetes cluster.local in-addr.arpa ip6.arpa
    topology {
        locate nodes podcidr-unverified slices
    }
    prometheus :9153
}
"""

Serve = Callable[..., AbstractContextManager[Server]]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where no lab can be had, or none with fake nodes, nothing that needs it is tried."""
    ours = those_of(Path(__file__).parent, items)
    if ours and (reason := why_impossible()):
        skip_all(config, items, ours, f"NO KUBERNETES HERE, nothing of tests/cluster is tried: {reason}")
        return
    crowded = [item for item in ours if item.path.name in CROWDED]
    if crowded and (reason := why_no_fake_nodes()):
        skip_all(config, items, crowded, f"NO KWOK HERE, nothing of {', '.join(CROWDED)} is tried: {reason}")


@pytest.fixture(scope="session")
def topodns_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of an image of the working tree."""
    archive = tmp_path_factory.mktemp("image") / "topodns.tar"
    write_topodns_image(archive)
    return archive


@pytest.fixture(scope="session")
def lab(topodns_image: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    options = Options(node_list(TOPOLOGY_ZONES), dual_stack=True)
    with lab_of(options, tmp_path_factory.mktemp("kubelab") / "lab", topodns_image) as lab:
        yield lab


@pytest.fixture(scope="session")
def cluster(lab: Lab) -> Cluster:
    cluster = Cluster(lab)
    grant(cluster, permissions("rbac.yaml"))
    return cluster


@pytest.fixture(scope="session")
def serve(cluster: Cluster) -> Serve:
    """Another server: `serve(NAME, COREFILE, ...)`, see `servers.server`."""
    return partial(server, cluster)


@pytest.fixture(scope="session")
def dns(cluster: Cluster) -> Iterator[Server]:
    """The cluster's DNS server: a pod on node1."""
    cluster.create("kube-system", cluster_dns_service([CLUSTER_DNS, CLUSTER_DNS_IPV6], "cluster-dns"))
    with server(cluster, "cluster-dns", COREFILE) as running:
        yield running


@pytest.fixture(scope="session")
def clients(cluster: Cluster) -> Iterator[Place]:
    """A namespace of pods that ask, behind a headless Service as most pods are."""
    with client_pods(cluster) as place:
        yield place


@pytest.fixture(scope="session")
def askers(dns: Server, cluster: Cluster, clients: Place) -> Iterator[Askers]:
    """By node: a pod that asks."""
    yield from askers_of(cluster, clients, "client")


@pytest.fixture(scope="session")
def host_askers(dns: Server, cluster: Cluster, clients: Place) -> Iterator[Askers]:
    """By node: a pod of the node's own network that asks."""
    yield from askers_of(cluster, clients, "host-client")


@pytest.fixture
def place(cluster: Cluster) -> Iterator[Place]:
    with cluster.namespace() as place:
        yield place
