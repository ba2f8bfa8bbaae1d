"""Sources of topology keys other than the annotation, and SRV priorities, on headless Services of a real API server:
`trafficDistribution`, the hints that Kubernetes derives from it, and those that an administrator writes.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.cluster.conftest import Serve
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.expected_nearest import Answers, of_keys
from tests.support.kube.objects import (
    HOSTNAME,
    ZONE,
    Object,
    headless,
    manual_slice,
    pause_container,
    pod_spec,
    spread,
    workload,
)
from tests.support.kube.server_pods import Server
from tests.support.kube.topology_key_services import lab_labels
from tests.support.kube.waiting import becomes

PORTS: Final = {"keys annotation traffic-distribution": 1053, "keys annotation hints": 1054, "srv_priority": 1055}
BY_DISTRIBUTION, BY_HINTS, WITH_PRIORITIES = PORTS.values()
AS_USUAL: Final = 53
REPLICAS: Final = 4  # one on each node
IN_A, ALSO_IN_A, IN_B, IN_C = "node1", "node2", "node3", "node4"  # by topology zone
ENDPOINTS: Final = {"198.51.100.1": IN_A, "198.51.100.2": ALSO_IN_A, "198.51.100.3": IN_B}


def block(port: int, options: str) -> str:
    location = "locate nodes podcidr-unverified slices"
    topology = f"topology {{\n        {location}\n        {options}\n    }}"
    return f".:{port} {{\n    ready\n    errors\n    kubernetes cluster.local\n    {topology}\n}}\n"


@pytest.fixture(scope="module")
def server(serve: Serve) -> Iterator[Server]:
    """With each of the PORTS for its options, and without any at the usual port."""
    corefile = "".join(block(port, options) for options, port in {"": AS_USUAL, **PORTS}.items())
    with serve("key-sources", corefile) as running:
        yield running


@pytest.fixture(scope="module")
def shop(cluster: Cluster) -> Iterator[Place]:
    """A Pod `web` on each node, behind headless Services of different `trafficDistribution`."""
    with cluster.namespace() as place:
        place.create(
            headless("zonal", app="web", trafficDistribution="PreferSameZone"),
            headless("nodal", app="web", trafficDistribution="PreferSameNode"),
            headless("web"),
            workload("Deployment", "web", {"replicas": REPLICAS}, pod_spec(pause_container(), **spread("web"))),
        )
        place.pods_once_ready("web", REPLICAS)
        yield place


def got(askers: Askers, server: Server, name: str, port: int, qtype: str = "A") -> Answers:
    return {node: asker.addresses(name, qtype, server.pod.ip, port) for node, asker in askers.items()}


@pytest.mark.parametrize(
    ("service", "keys"), [("zonal", (ZONE, "*")), ("nodal", (HOSTNAME, ZONE, "*")), ("web", ())]
)  # fmt: skip
def test_traffic_distribution_acts_as_keys_where_it_is_a_source(
    server: Server, shop: Place, askers: Askers, service: str, keys: tuple[str, ...]
) -> None:
    pods, labels, name = shop.ready_pods("web"), lab_labels(shop.cluster), shop.fqdn(service)
    becomes(lambda: got(askers, server, name, BY_DISTRIBUTION), of_keys(keys, pods, labels))
    becomes(lambda: got(askers, server, name, AS_USUAL), of_keys((), pods, labels))


def test_without_an_endpoint_in_their_zone_clients_get_those_of_other_zones(
    server: Server, place: Place, askers: Askers
) -> None:
    slices = manual_slice("web", "web", list(ENDPOINTS.items()))
    place.create(headless("web", app="", trafficDistribution="PreferSameZone"), slices)
    near = {"198.51.100.1", "198.51.100.2"}
    expected = {IN_A: near, ALSO_IN_A: near, IN_B: {"198.51.100.3"}, IN_C: set(ENDPOINTS)}
    becomes(lambda: got(askers, server, place.fqdn("web"), BY_DISTRIBUTION), expected)


def hints(place: Place, service: str) -> dict[str, set[str]]:
    """By address of the Service: the zones for which Kubernetes has hinted it."""
    slices = place.cluster.list("EndpointSlice", place.name, f"kubernetes.io/service-name={service}")
    return {
        address: {each["name"] for each in endpoint.get("hints", {}).get("forZones", ())}
        for found in slices
        for endpoint in found.get("endpoints") or ()
        for address in endpoint["addresses"]
    }


def test_the_hints_that_kubernetes_derives_from_a_traffic_distribution_choose_the_endpoints_of_a_zone(
    server: Server, shop: Place, askers: Askers
) -> None:
    """The EndpointSlice controller writes them for headless Services, too."""
    zones, labels = shop.cluster.topology_zones, lab_labels(shop.cluster)
    pods = shop.ready_pods("web")
    becomes(lambda: hints(shop, "zonal"), {pod.ip: {zones[pod.node]} for pod in pods})
    becomes(lambda: got(askers, server, shop.fqdn("zonal"), BY_HINTS), of_keys((ZONE, "*"), pods, labels))
    assert set().union(*hints(shop, "web").values()) == set()
    becomes(lambda: got(askers, server, shop.fqdn("web"), BY_HINTS), of_keys((), pods, labels))


def test_hints_that_an_administrator_writes_count_and_not_the_zone_of_the_endpoint(
    server: Server, place: Place, askers: Askers
) -> None:
    hinted = {"198.51.100.1": "c", "198.51.100.2": "b", "198.51.100.3": "b"}
    slices = manual_slice("web", "web", list(ENDPOINTS.items()))
    for endpoint in slices["endpoints"]:
        endpoint["hints"] = for_zone(hinted[endpoint["addresses"][0]])
    place.create(headless("web", app=""), slices)
    name, everything = place.fqdn("web"), set(ENDPOINTS)
    for_b, for_c = {"198.51.100.2", "198.51.100.3"}, {"198.51.100.1"}
    expected = {IN_A: everything, ALSO_IN_A: everything, IN_B: for_b, IN_C: for_c}
    becomes(lambda: got(askers, server, name, BY_HINTS), expected)
    becomes(lambda: got(askers, server, name, AS_USUAL), dict.fromkeys(askers, everything))
    del slices["endpoints"][0]["hints"]  # as while the controller is at work: then all of them count
    place.patch("EndpointSlice", "web", {"endpoints": slices["endpoints"]})
    becomes(lambda: got(askers, server, name, BY_HINTS), dict.fromkeys(askers, everything))


def for_zone(topology_zone: str) -> Object:
    return {"forZones": [{"name": topology_zone}]}


def test_with_srv_priority_each_client_gets_every_endpoint_its_nearest_with_the_lowest_priority(
    server: Server, place: Place, askers: Askers
) -> None:
    place.create(headless("web", f"{HOSTNAME},{ZONE},*", app=""), manual_slice("web", "web", list(ENDPOINTS.items())))
    name, target = place.fqdn("web"), f"{{}}.{place.fqdn('web')}."

    def srv(*priorities_and_weights: str) -> set[str]:
        """Records of the endpoints in their order, without those of ""."""
        targets = (target.format(address.replace(".", "-")) for address in ENDPOINTS)
        return {f"{each} 80 {its}" for each, its in zip(priorities_and_weights, targets, strict=True) if each}

    expected = {
        IN_A: srv("0 100", "1 100", "2 100"),
        ALSO_IN_A: srv("1 100", "0 100", "2 100"),
        IN_B: srv("2 50", "2 50", "0 100"),
        IN_C: srv("2 33", "2 33", "2 33"),
    }
    becomes(lambda: got(askers, server, f"_http._tcp.{name}", WITH_PRIORITIES, "SRV"), expected)
    near = {IN_A: {"198.51.100.1"}, ALSO_IN_A: {"198.51.100.2"}, IN_B: {"198.51.100.3"}, IN_C: set(ENDPOINTS)}
    becomes(lambda: got(askers, server, name, WITH_PRIORITIES), near)
    only = {IN_A: srv("0 100", "", ""), ALSO_IN_A: srv("", "0 100", ""), IN_B: srv("", "", "0 100")}
    becomes(
        lambda: got(askers, server, f"_http._tcp.{name}", AS_USUAL, "SRV"), only | {IN_C: srv("0 33", "0 33", "0 33")}
    )
