"""Sources of topology keys other than the Service's annotation, and SRV priorities, on headless Services of a real API
server: an administrator's defaults, `trafficDistribution`, and hints, those that Kubernetes derives from it and those
that an administrator writes.
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
    TOPOLOGY_KEYS,
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
from tests.support.kube.waiting import becomes, eventually

BAZAAR: Final = "bazaar"  # the namespace of the line `default`
PORTS: Final = {
    "keys annotation traffic-distribution": 1053,
    "keys annotation hints": 1054,
    "srv_priority": 1055,
    f"default {ZONE},* namespaces {BAZAAR} labels tier=front": 1056,
}
BY_DISTRIBUTION, BY_HINTS, WITH_PRIORITIES, BY_DEFAULT = PORTS.values()
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


@pytest.fixture(scope="module")
def bazaar(cluster: Cluster) -> Iterator[Place]:
    """Pods `web` on each node and the StatefulSet `db`, behind headless Services, all but `web-back` with the label
    `tier=front`. `db` governs the StatefulSet; keys of `web-apart` count at `_near` alone.
    """
    keys = {"web": None, "web-apart": None, "web-own": HOSTNAME, "web-free": "*", "db": None, "db-clients": None}
    services = {name: headless(name, its, app=name.partition("-")[0]) for name, its in keys.items()}
    for service in services.values():
        service["metadata"]["labels"]["tier"] = "front"
    services["web-apart"]["metadata"]["annotations"]["topodns.io/apply-to"] = "near"
    db = pod_spec(pause_container(), **spread("db", ZONE))
    with cluster.namespace(BAZAAR) as place:
        place.create(
            *services.values(),
            headless("web-back", app="web"),
            workload("Deployment", "web", {"replicas": REPLICAS}, pod_spec(pause_container(), **spread("web"))),
            workload("StatefulSet", "db", {"replicas": 2, "serviceName": "db"}, db),
        )
        place.pods_once_ready("web", REPLICAS)
        place.pods_once_ready("db", 2)
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


def by_default(bazaar: Place, front: tuple[str, ...] = (), back: tuple[str, ...] = ()) -> dict[str, Answers]:
    """The answers, by name, where an administrator gives Services labelled `tier=front` and others these keys."""
    keys = {"web": front, "db-clients": front, "web-back": back}  # without keys of their own
    keys |= {"web-apart": (), "_near.web-apart": front or (HOSTNAME, ZONE, "*")}
    keys |= {"web-own": (HOSTNAME,), "web-free": ("*",), "db": ()}
    pods = {app: bazaar.ready_pods(app) for app in ("web", "db")}
    labels = lab_labels(bazaar.cluster)
    return {name: of_keys(its, pods["db" if name.startswith("db") else "web"], labels) for name, its in keys.items()}


def got_in(bazaar: Place, askers: Askers, server: Server, port: int) -> dict[str, Answers]:
    return {name: got(askers, server, bazaar.fqdn(name), port) for name in by_default(bazaar)}


def test_a_default_of_the_corefile_is_for_services_without_keys_that_it_selects_and_that_govern_no_stateful_set(
    server: Server, bazaar: Place, askers: Askers
) -> None:
    becomes(lambda: got_in(bazaar, askers, server, BY_DEFAULT), by_default(bazaar, front=(ZONE, "*")))
    becomes(lambda: got_in(bazaar, askers, server, AS_USUAL), by_default(bazaar))


def test_keys_of_a_namespace_come_before_the_default_and_invalid_ones_have_no_effect_and_are_named(
    server: Server, bazaar: Place, askers: Askers
) -> None:
    def annotate(keys: str | None) -> None:
        change = {"metadata": {"annotations": {TOPOLOGY_KEYS: keys}}}
        bazaar.cluster.patch("Namespace", "", BAZAAR, change)

    annotate(HOSTNAME)
    by_namespace = by_default(bazaar, (HOSTNAME,), (HOSTNAME,))
    for port in (BY_DEFAULT, AS_USUAL):
        becomes(lambda port=port: got_in(bazaar, askers, server, port), by_namespace)  # type: ignore[misc]
    annotate(f"{ZONE},,*")
    becomes(lambda: got_in(bazaar, askers, server, BY_DEFAULT), by_default(bazaar, front=(ZONE, "*")))
    becomes(lambda: got_in(bazaar, askers, server, AS_USUAL), by_default(bazaar))
    said = f"namespace '{BAZAAR}': annotation '{TOPOLOGY_KEYS}': "
    eventually(lambda: said in server.logs(), said)
    annotate(None)
    becomes(lambda: got_in(bazaar, askers, server, BY_DEFAULT), by_default(bazaar, front=(ZONE, "*")))


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
