"""The smallest cluster, for a first try of topodns: one node, README's commands, a
headless Service, and a Pod behind no Service that asks for it as soon as it starts.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubelab.lab import Lab
from tests.kubelab.options import Options, node_list
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.first_lookups import logged_at_start
from tests.support.kube.labs import lab_of
from tests.support.kube.objects import HOSTNAME, headless, pause_container, pod, sleeping_container
from tests.support.kube.operator_commands import Operator
from tests.support.kube.query_pods import asker

pytestmark = [pytest.mark.short, pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)]

NODE = "node1"


@pytest.fixture(scope="module")
def small_lab(proxy_mode: str, archives: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    options = Options(node_list("a"), proxy_mode=proxy_mode)
    with lab_of(options, tmp_path_factory.mktemp("one-node") / "lab", *archives) as lab:
        yield lab


@pytest.fixture(scope="module")
def shop(small_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """`db` with the keys of README, `db-local` with the node alone: two Pods of both."""
    operator = Operator(small_lab, tmp_path_factory.mktemp("operator-of-one"))
    operator.follow("README.md", "install")
    with Cluster(small_lab).namespace() as place:
        place.create(
            headless("db", app="db"),
            headless("db-local", HOSTNAME, app="db"),
            *(pod(f"db-{at}", "db", pause_container()) for at in range(2)),
        )
        operator.follow("README.md", "annotate", NAMESPACE=place.name, SERVICE="db")
        place.pods_once_ready("db", 2)
        yield place


def test_the_first_pod_gets_the_endpoint_of_its_own_node_at_its_first_query(shop: Place) -> None:
    everything = {each.ip for each in shop.pods("db")}
    got = logged_at_start(shop, NODE, ["db-local", "db"])
    assert got == {"db-local": everything, "db": everything}


def test_a_process_of_the_node_is_found_as_well(small_lab: Lab, shop: Place) -> None:
    """It shows the address of the gateway, which no Pod has."""
    host = pod("host", "host", sleeping_container(), NODE, hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")
    shop.create(host)
    (running,) = shop.pods_once_ready("host", 1)
    with asker(small_lab, running) as asking:
        assert asking.addresses(shop.fqdn("db-local")) == {each.ip for each in shop.pods("db")}
