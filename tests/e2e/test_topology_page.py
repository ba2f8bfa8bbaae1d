"""The topology page of a release of the chart, reached as docs/operate/topology-page.md says."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.kube.chart_servers import topology_options
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.objects import ZONE, headless, manual_slice
from tests.support.kube.operator_commands import Operator
from tests.support.kube.server_pods import NAMESPACE
from tests.support.kube.waiting import becomes
from tests.support.runnable_blocks import block

pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

PAGE: Final = 8182
LIVE: Final = 5.0  # seconds until a change is on the page, which has it within one


@pytest.fixture(scope="module")
def page(installed: str, operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page."""
    command = block("docs/operate/topology-page.md", "page-forward").text
    with (
        topology_options(operator, tmp_path_factory.mktemp("values"), "page"),
        operator.forwarding(command) as port,
    ):
        yield f"http://127.0.0.1:{port}/topology"


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as response:
        assert response.status == 200
        return json.load(response)


def row(page: str, place: Place, name: str) -> Any:
    """The row of a Service; None if there is none."""
    rows = {each["id"]: each for each in get(f"{page}/state")["rows"]}
    return rows.get(f"{place.name}/{name}")


def test_a_service_with_keys_has_a_row_with_its_cells_by_zone_which_follows_its_endpoints(
    page: str, place: Place
) -> None:
    """Cells are endpoints, nodes, those of them whose clients get an endpoint, and those that get a near one."""
    place.create(
        headless("web", ZONE, app=""),
        headless("plain", app=""),
        manual_slice("web", "web", [("198.51.100.1", "node1"), ("198.51.100.3", "node3")]),
    )
    expected = {
        "id": f"{place.name}/web",
        "keys": [ZONE],
        "source": "annotation",
        "problems": [],
        "endpoints": 2,
        "zones": {"a": [1, 2, 2, 2], "b": [1, 1, 1, 1], "c": [0, 1, 0, 0]},
        "others": None,
        "guards": {},
    }
    becomes(lambda: row(page, place, "web"), expected, LIVE)
    assert row(page, place, "plain") is None
    state = get(f"{page}/state")
    assert state["summary"]["synced"]
    assert state["nodes"] == [["node1", "a"], ["node2", "a"], ["node3", "b"], ["node4", "c"]]
    place.patch("EndpointSlice", "web", {"endpoints": [{"addresses": ["198.51.100.4"], "nodeName": "node4"}]})
    moved = {"endpoints": 1, "zones": {"a": [0, 2, 0, 0], "b": [0, 1, 0, 0], "c": [1, 1, 1, 1]}}
    becomes(lambda: row(page, place, "web"), expected | moved, LIVE)


def test_a_node_that_is_supposed_to_be_down_leaves_the_clients_of_its_zone_without_an_endpoint(
    page: str, place: Place
) -> None:
    endpoints = [("198.51.100.1", "node1"), ("198.51.100.3", "node3"), ("198.51.100.4", "node4")]
    place.create(headless("web", ZONE, app=""), manual_slice("web", "web", endpoints))
    lost = {"id": f"{place.name}/web", "without_endpoints": 1, "far": 0, "endpoints": 2}

    def worse() -> list[Any]:
        found = get(f"{page}/what-if?change=node=node1:down")["worse"]
        return [each for each in found if each["id"] == lost["id"]]

    becomes(worse, [lost], LIVE)


def test_no_client_outside_of_the_pod_reaches_the_page(page: str, cluster: Cluster) -> None:
    """It listens on loopback: the API server's proxy, which connects to the Pod's address, gets no connection."""
    for pod in cluster.list("Pod", NAMESPACE, "app.kubernetes.io/name=topodns"):
        answer = cluster.http(NAMESPACE, pod["metadata"]["name"], PAGE, "/topology/state")
        assert answer.status >= 500, answer
