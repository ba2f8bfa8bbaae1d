"""Services as they are made, changed and deleted through a real API server, seen from every node."""

from pathlib import Path

import pytest

from tests.kubelab.options import CLUSTER_DNS_IPV6
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.expected_nearest import Answers, answers
from tests.support.kube.host_process import serving_on_host
from tests.support.kube.objects import (
    HOSTNAME,
    TOPOLOGY_KEYS,
    ZONE,
    headless,
    manual_slice,
    pause_container,
    pod_spec,
    workload,
)
from tests.support.kube.waiting import becomes, eventually

SLICE_SIZE = 100  # the controller's own limit of endpoints in a slice


def test_a_dual_stack_service_is_filtered_in_both_families(place: Place, cluster: Cluster, askers: Askers) -> None:
    place.create(
        headless("agent", HOSTNAME, ipFamilyPolicy="RequireDualStack"),
        workload("DaemonSet", "agent", {}, pod_spec(pause_container())),
    )
    pods = {pod.node: pod for pod in place.pods_once_ready("agent", len(cluster.nodes))}
    name = place.fqdn("agent")
    becomes(lambda: answers(askers, name, "A"), {node: {pod.ips[0]} for node, pod in pods.items()})
    becomes(lambda: answers(askers, name, "AAAA"), {node: {pod.ips[1]} for node, pod in pods.items()})
    for node, asker in askers.items():  # asked over IPv6, which locates by the other podCIDR
        assert asker.addresses(name, "A", to=CLUSTER_DNS_IPV6) == {pods[node].ips[0]}
        assert asker.addresses(name, "AAAA", to=CLUSTER_DNS_IPV6) == {pods[node].ips[1]}


def test_srv_has_the_endpoints_of_the_clients_zone(place: Place, askers: Askers) -> None:
    endpoints = [("198.51.100.1", "node1"), ("198.51.100.3", "node3"), ("198.51.100.4", "node4")]
    place.create(headless("web", ZONE, app=""), manual_slice("web", "web", endpoints))
    name = f"_http._tcp.{place.fqdn('web')}"
    target = f"0 100 80 198-51-100-1.{place.fqdn('web')}."
    for node in ("node1", "node2"):  # of one zone
        becomes(lambda node=node: askers[node].ask(f"{name} SRV").data, [target])  # type: ignore[misc]
    reply = askers["node1"].ask(f"{name} SRV")
    assert reply.additional == [f"198-51-100-1.{place.fqdn('web')}. 5 IN A 198.51.100.1"]


def test_a_service_without_selector_has_the_endpoints_of_its_slices(place: Place, askers: Askers) -> None:
    place.create(
        headless("outside", f"{ZONE},*", app=""),
        manual_slice("outside", "a", [("198.51.100.1", "node1"), ("198.51.100.2", "")]),
    )
    name = place.fqdn("outside")
    everything = {"198.51.100.1", "198.51.100.2"}
    becomes(lambda: askers["node2"].addresses(name), {"198.51.100.1"})
    becomes(lambda: askers["node4"].addresses(name), everything)
    place.create(manual_slice("outside", "c", [("198.51.100.4", "node4"), ("198.51.100.1", "node1")]))
    becomes(lambda: askers["node4"].addresses(name), {"198.51.100.4"})
    place.patch("EndpointSlice", "c", {"endpoints": []})
    becomes(lambda: askers["node4"].addresses(name), everything)
    place.delete("EndpointSlice", "a")
    becomes(lambda: askers["node4"].addresses(name), {"NXDOMAIN"})


def test_a_service_of_a_thousand_endpoints_is_whole_over_its_slices(
    place: Place, cluster: Cluster, askers: Askers
) -> None:
    endpoints = [(f"198.18.{i // 250}.{1 + i % 250}", cluster.nodes[i % 4]) for i in range(1000)]
    place.create(headless("big", app=""), headless("near", ZONE, app=""))
    for service in ("big", "near"):
        for start in range(0, len(endpoints), SLICE_SIZE):
            part = endpoints[start : start + SLICE_SIZE]
            place.create(manual_slice(service, f"{service}-{start}", part))
    by_node = {node: {address for address, its in endpoints if its == node} for node in cluster.nodes}
    becomes(lambda: askers["node1"].addresses(place.fqdn("big")), set().union(*by_node.values()))
    near = {"node1": by_node["node1"] | by_node["node2"], "node3": by_node["node3"], "node4": by_node["node4"]}
    near["node2"] = near["node1"]
    becomes(lambda: answers(askers, place.fqdn("near")), near)
    place.delete("EndpointSlice", "near-0")
    gone = {address for address, _ in endpoints[:SLICE_SIZE]}
    becomes(lambda: answers(askers, place.fqdn("near")), {node: its - gone for node, its in near.items()})


def test_names_of_a_deleted_namespace_are_gone_and_its_successors_are_its_own(cluster: Cluster, askers: Askers) -> None:
    asker = askers["node1"]
    with cluster.namespace("shop") as shop:
        shop.create(headless("web", app=""), manual_slice("web", "web", [("198.51.100.1", "node1")]))
        becomes(lambda: asker.addresses(shop.fqdn("web")), {"198.51.100.1"})
    becomes(lambda: asker.addresses("web.shop.svc.cluster.local"), {"NXDOMAIN"})
    becomes(lambda: asker.addresses("shop.svc.cluster.local"), {"NXDOMAIN"})
    eventually(lambda: cluster.read("Namespace", "", "shop") is None, "the namespace is gone")
    with cluster.namespace("shop") as shop:
        shop.create(headless("web", app=""), manual_slice("web", "web", [("198.51.100.2", "node1")]))
        becomes(lambda: asker.addresses(shop.fqdn("web")), {"198.51.100.2"})


@pytest.fixture
def annotated(place: Place) -> Place:
    """A Service without keys, which has an endpoint on each of three nodes."""
    endpoints = [("198.51.100.1", "node1"), ("198.51.100.3", "node3"), ("198.51.100.4", "node4")]
    place.create(headless("web", app=""), manual_slice("web", "web", endpoints))
    return place


def test_keys_count_from_the_answer_after_they_are_written(annotated: Place, cluster: Cluster, askers: Askers) -> None:
    name = annotated.fqdn("web")
    one, three, four = ("198.51.100.1",), ("198.51.100.3",), ("198.51.100.4",)
    everybody: Answers = {node: {*one, *three, *four} for node in cluster.nodes}
    near: Answers = {"node1": {*one}, "node2": {*one}, "node3": {*three}, "node4": {*four}}

    def annotate(keys: str | None) -> None:
        annotated.patch("Service", "web", {"metadata": {"annotations": {TOPOLOGY_KEYS: keys}}})

    becomes(lambda: answers(askers, name), everybody)
    annotate(ZONE)
    becomes(lambda: answers(askers, name), near)
    annotate(HOSTNAME)
    becomes(lambda: answers(askers, name), near | {"node2": set()})
    annotate("no such/key/at all")
    becomes(lambda: answers(askers, name), everybody)
    annotate('["topology.kubernetes.io/zone"]')
    becomes(lambda: answers(askers, name), near)
    annotate("none")
    becomes(lambda: answers(askers, name), everybody)
    annotate(HOSTNAME)
    becomes(lambda: answers(askers, name), near | {"node2": set()})
    annotate(None)
    becomes(lambda: answers(askers, name), everybody)


def test_a_cluster_ip_is_the_same_for_everybody(place: Place, cluster: Cluster, askers: Askers) -> None:
    place.create(headless("web", HOSTNAME, app="", clusterIP="10.96.77.1"))
    becomes(lambda: answers(askers, place.fqdn("web")), {node: {"10.96.77.1"} for node in cluster.nodes})
    api_server = {node: {"10.96.0.1"} for node in cluster.nodes}
    assert answers(askers, "kubernetes.default.svc.cluster.local") == api_server


# topodns as a process outside of the cluster. tests/e2e/test_api_server.py takes its API server away.


def test_outside_the_cluster_a_kubeconfig_is_enough(cluster: Cluster, place: Place, tmp_path: Path) -> None:
    with serving_on_host(cluster, tmp_path) as on_the_host:
        assert on_the_host.ask("kubernetes.default.svc.cluster.local A").data == ["10.96.0.1"]
        place.create(headless("web", app=""), manual_slice("web", "web", [("198.51.100.1", "node1")]))
        becomes(lambda: on_the_host.ask(f"{place.fqdn('web')} A").data, ["198.51.100.1"])
