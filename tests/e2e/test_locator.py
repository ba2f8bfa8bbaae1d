"""The locator, installed by the commands of its document from the image with the package kubernetes, while clients ask
all the time: the servers lose the right to Pods, and every client stays located.

Afterwards `locate` has no other method for Pods, so that each answer depends on the NodeLocators.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from release.image import TOOLS, assemble
from release.sbom import LOCK
from tests.support.kube.background_clients import asked_all_the_time
from tests.support.kube.chart_servers import topology_options
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.dnstools import DNSTOOLS_IMAGE
from tests.support.kube.expected_endpoints import node_labels
from tests.support.kube.first_lookups import logged_at_start
from tests.support.kube.objects import (
    HOSTNAME,
    ZONE,
    headless,
    pause_container,
    pod_spec,
    sleeping_container,
    spread,
    workload,
)
from tests.support.kube.operator_commands import Operator
from tests.support.kube.waiting import becomes, eventually

pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

KEYS: Final = {"web": (), "web-near": (ZONE,), "web-local": (HOSTNAME,)}
REPLICAS: Final = 6
SOLITARY: Final = "solitary"  # a Pod on each node that is behind no Service, so that no slice locates it
LATE: Final = 5.0  # seconds
LOCATORS_ONLY: Final = "locate nodes nodelocator"


@pytest.fixture(scope="module")
def shop(installed: str, cluster: Cluster) -> Iterator[Place]:
    with cluster.namespace() as place:
        place.create(
            *(headless(name, ",".join(keys) or None, app="web") for name, keys in KEYS.items()),
            workload("Deployment", "web", {"replicas": REPLICAS}, pod_spec(pause_container(), **spread("web"))),
            workload("DaemonSet", SOLITARY, {}, pod_spec(sleeping_container(DNSTOOLS_IMAGE))),
        )
        place.pods_once_ready("web", REPLICAS)
        yield place


@pytest.fixture(scope="module")
def asking(shop: Place, clients: Place) -> Iterator[None]:
    """Clients on all nodes ask until the tests of this module are over; each answer must be right."""
    solitary = shop.pods_once_ready(SOLITARY, len(shop.cluster.nodes))
    with asked_all_the_time(shop, KEYS, [*clients.pods("client"), *solitary]):
        yield


@pytest.fixture(scope="module")
def allowed_before(installed: str, operator: Operator) -> bool:
    """Whether the servers might list Pods while no locator was installed."""
    return may_list_pods(operator)


@pytest.fixture(scope="module")
def locator(
    asking: None, allowed_before: bool, cluster: Cluster, operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The release has a locator, whose image reaches the nodes only when the servers that read locators have started.

    In the end it is removed as the document says.
    """
    archive = tmp_path_factory.mktemp("tools") / "topodns-tools.tar"
    assemble(archive, TOOLS, LOCK)
    try:
        with ThreadPoolExecutor(1) as pool:
            loaded = pool.submit(load_late, cluster, archive)
            operator.follow("docs/operate/locator.md", "install-locator", TOOLS_IMAGE=TOOLS.partition(":")[0])
            loaded.result()
        yield
    finally:
        operator.follow("docs/operate/locator.md", "remove-locator")


def load_late(cluster: Cluster, archive: Path) -> None:
    """Load the locator's image once a Pod waits for it, and some more seconds later."""
    eventually(lambda: waits_for_image(cluster), "a Pod of the locator that has no image")
    time.sleep(LATE)
    cluster.lab.load_image(archive)


def waits_for_image(cluster: Cluster) -> bool:
    states = [
        status["state"].get("waiting", {}).get("reason", "")
        for pod in cluster.list("Pod", "kube-system")
        for status in pod["status"].get("containerStatuses", ())
        if status["name"] == "locator"
    ]
    return any(reason in ("ErrImagePull", "ImagePullBackOff") for reason in states)


def may_list_pods(operator: Operator) -> bool:
    account = "system:serviceaccount:kube-system:topodns"
    asked = operator.tried("kubectl", "auth", "can-i", "list", "pods", "--all-namespaces", "--as", account)
    assert asked.stdout.startswith(("yes", "no")), asked.stderr
    return asked.returncode == 0


def located(cluster: Cluster) -> dict[str, set[str]]:
    """By Node: the addresses of Pods in its NodeLocator."""
    found = cluster.list("NodeLocator", "")
    return {each["metadata"]["name"]: set(each["spec"].get("podIPs", ())) for each in found}


def pods_by_node(cluster: Cluster) -> dict[str, set[str]]:
    """By Node: the addresses of all Pods that have one of their own, in every namespace."""
    addresses: dict[str, set[str]] = {node: set() for node in cluster.nodes}
    for pod in cluster.list("Pod", ""):
        status, spec = pod["status"], pod["spec"]
        if not spec.get("hostNetwork") and status["phase"] not in ("Succeeded", "Failed") and "podIPs" in status:
            addresses[spec["nodeName"]] |= {each["ip"] for each in status["podIPs"]}
    return addresses


@pytest.fixture(scope="module")
def by_locators_only(locator: None, operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`topology` has no method for Pods but the NodeLocators; in the end it has those of before."""
    with topology_options(operator, tmp_path_factory.mktemp("values"), LOCATORS_ONLY):
        yield


def test_every_address_of_a_pod_gets_into_the_locator_of_its_node(locator: None, cluster: Cluster) -> None:
    becomes(lambda: located(cluster) == pods_by_node(cluster), True)


def test_the_servers_lose_the_right_to_list_pods_that_they_had(
    allowed_before: bool, locator: None, operator: Operator
) -> None:
    assert allowed_before
    assert not may_list_pods(operator)


def test_clients_are_located_by_their_locators_alone(
    by_locators_only: None, shop: Place, askers: Askers, cluster: Cluster
) -> None:
    endpoints = {node: {pod.ip for pod in shop.ready_pods("web") if pod.node == node} for node in cluster.nodes}
    becomes(lambda: {node: asker.addresses(shop.fqdn("web-local")) for node, asker in askers.items()}, endpoints)
    assert not any("pods" in rule for rule in server_rules(cluster))


def server_rules(cluster: Cluster) -> list[list[str]]:
    (role,) = (each for each in cluster.list("ClusterRole", "") if each["metadata"]["name"] == "topodns")
    return [rule["resources"] for rule in role["rules"]]


@pytest.mark.parametrize("node", ["node1", "node3"])
def test_a_pod_behind_no_service_is_located(by_locators_only: None, shop: Place, node: str) -> None:
    """Its first query may come before the locator is written, and is then answered as an unknown client's."""
    labels = node_labels(shop.cluster)
    expected = {pod.ip for pod in shop.ready_pods("web") if labels[pod.node][ZONE] == labels[node][ZONE]}
    eventually(lambda: logged_at_start(shop, node, ["web-near"])["web-near"] == expected, "located at its first query")


def test_a_leader_that_is_deleted_hands_over_and_no_address_is_lost(
    by_locators_only: None, shop: Place, cluster: Cluster
) -> None:
    lease = cluster.read("Lease", "kube-system", "topodns-locator")
    assert lease is not None
    leader = lease["spec"]["holderIdentity"].partition("_")[0]
    cluster.delete("Pod", "kube-system", leader)
    shop.scale("Deployment", "web", REPLICAS + 4)
    shop.pods_once_ready("web", REPLICAS + 4)
    becomes(lambda: located(cluster) == pods_by_node(cluster), True)
