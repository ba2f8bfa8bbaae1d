"""NodeLocators and PodLocators at a real API server: its schema, and servers that may read neither Pods nor Nodes."""

import time
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
import yaml

from tests.cluster.conftest import Serve
from tests.support.api_objects import Object, endpoint_slice, node_locator, pod_locator
from tests.support.dns_messages import Opt, subnet
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.image import ROOT
from tests.support.kube.location_service import NAME, NOWHERE, node_of, whereabouts
from tests.support.kube.locator_process import OF_POD_LOCATORS, locator_process
from tests.support.kube.objects import ZONE, headless, manual_slice
from tests.support.kube.query_pods import Asker
from tests.support.kube.server_pods import Server, granted, permissions
from tests.support.kube.waiting import PATIENCE, becomes, eventually

FOLDER = ROOT / "config/kubernetes/locator"
CRDS: list[Object] = list(yaml.safe_load_all((FOLDER / "crds.yaml").read_text(encoding="utf-8")))
NAMES = [each["metadata"]["name"] for each in CRDS]
PORTS = {"nodes nodelocator": 1053, "podlocator": 1054, "nodes podcidr nodelocator podlocator": 1055}
PROVEN = 60  # endpoints on each node, together more than the 200 that prove podCIDRs
BY_NODE_LOCATORS = 53  # and by nothing else
ACCOUNT, OTHERS, OF_PODS = "locators-only", "locators-and-nodes", "pod-locators-only"
RACK, NEW_KEY = "example.com/rack", 10.0  # seconds
WAITING = "kubernetes: waiting for NodeLocators: there is none"
FAULT = "expected an IP address of a Pod or Node, which is not loopback, link-local, multicast or unspecified, found"


def block(port: int, methods: str) -> str:
    options = f"topology {{\n        locate {methods}\n        trust 0.0.0.0/0\n    }}"
    return (
        f".:{port} {{\n    ready\n    errors\n    prometheus :9153\n    kubernetes cluster.local\n    {options}\n}}\n"
    )


def role(account: str, *resources: str) -> list[Object]:
    """The account with the rights of rbac.yaml, but of Nodes and Pods only these `resources`, and to read locators."""
    objects = permissions("rbac.yaml", account=account)
    (found,) = (each for each in objects if each["kind"] == "ClusterRole")
    found["rules"][0]["resources"] = ["services", "namespaces", *resources]
    (locators,) = (each for each in permissions("rbac-locators.yaml") if each["kind"] == "ClusterRole")
    found["rules"] += locators["rules"]
    return objects


def remove(cluster: Cluster) -> None:
    run = cluster.kubectl("delete", "crd", *NAMES, "--ignore-not-found", "--wait")
    assert run.returncode == 0, run.stderr


@pytest.fixture(scope="module")
def kinds(cluster: Cluster) -> Iterator[None]:
    run = cluster.kubectl("apply", "-f", str(FOLDER / "crds.yaml"))
    assert run.returncode == 0, run.stderr
    crds = [f"crd/{name}" for name in NAMES]
    run = cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *crds)
    assert run.returncode == 0, run.stderr
    yield
    remove(cluster)


def located(asker: Asker, server: Server, place: Place, port: int = BY_NODE_LOCATORS, address: str = "") -> str:
    """The node where the server believes the client to be, or this other address."""
    opt = Opt(options=[subnet(f"{address}/32")]) if address else None
    reply = asker.ask(f"{place.fqdn(NAME)} A", server.pod.ip, port, opt=opt)
    assert reply.rcode == "NOERROR", str(reply)
    return node_of(set(reply.data), place.cluster.nodes)


def locators_of(askers: Askers) -> list[Object]:
    return [node_locator(node, sorted(asker.pod.ips), (), "a") for node, asker in askers.items()]


def write_some(cluster: Cluster) -> None:
    """A NodeLocator for each Node and a PodLocator, all of nothing: a server waits for them before it is ready."""
    cluster.apply(*map(node_locator, cluster.nodes), pod_locator("of-no-pod", ["198.51.100.1"], "node1"))


def pod_address(cluster: Cluster, node: str, number: int) -> str:
    """The address with this number in the IPv4 podCIDR of a real node."""
    found = cluster.read("Node", "", node)
    assert found is not None
    return str(ip_network(found["spec"]["podCIDR"])[number])


# Without the kinds, or with another version of them: first, since CustomResourceDefinitions are of the whole cluster.


def test_without_the_kinds_it_is_ready_after_a_minute_and_says_so_and_of_another_version_too(
    cluster: Cluster, serve: Serve
) -> None:
    remove(cluster)
    with granted(cluster, role(ACCOUNT)):
        with serve("absent", block(BY_NODE_LOCATORS, "nodelocator"), account=ACCOUNT, wait=False) as server:
            eventually(lambda: server.readiness().body == WAITING, "it waits for locators")
            eventually(lambda: server.readiness().ok, server.logs(), 2 * PATIENCE)
            assert f"after 60 s ready without locators: {WAITING}" in server.logs()
            missing = "not installed: the cluster has no CustomResourceDefinition nodelocators.topodns.io"
            eventually(lambda: missing in server.logs(), server.logs())
            assert server.metric("topodns_watch_failing", kind="NodeLocator", status="404") == 1
        other = yaml.safe_load(yaml.safe_dump(CRDS[0]).replace("v1alpha1", "v1beta1"))
        cluster.apply(other)
        with serve("other", block(BY_NODE_LOCATORS, "nodelocator"), account=ACCOUNT, wait=False) as server:
            eventually(lambda: server.readiness().body == WAITING, "it waits for locators")
            version = "the cluster has topodns.io in version v1beta1, expected v1alpha1"
            eventually(lambda: version in server.logs(), server.logs())
    remove(cluster)


# The schema

REFUSED = [
    *(
        pytest.param(node_locator("n", [text]), f'spec.podIPs[0]: Invalid value: "{text}": {FAULT} {text}', id=text)
        for text in ("127.0.0.1", "::1", "169.254.20.10", "fe80::1", "224.0.0.1", "ff02::1", "0.0.0.0", "::")
    ),
    pytest.param(node_locator("n", ["10.0.0.0/8"]), f"{FAULT} 10.0.0.0/8", id="a network"),
    pytest.param(node_locator("n", ["node1"]), f"{FAULT} node1", id="a name"),
    pytest.param(node_locator("n", [], ["127.0.0.1"]), f"{FAULT} 127.0.0.1", id="of the node"),
    pytest.param(node_locator("n", ["10.0.0.1"] * 1025), "must have at most 1024 items", id="too many Pods"),
    pytest.param(node_locator("n", [], ["10.0.0.1"] * 33), "must have at most 32 items", id="too many addresses"),
    pytest.param(pod_locator("p", ["127.0.0.1"], "node1"), f"{FAULT} 127.0.0.1", id="of a Pod"),
    pytest.param(pod_locator("p", [], "node1"), "should have at least 1 items", id="none of a Pod"),
    pytest.param(pod_locator("p", ["10.0.0.1"] * 9, "node1"), "must have at most 8 items", id="too many of a Pod"),
    pytest.param(pod_locator("p", ["10.0.0.1"] * 2, "node1"), "expected each address once", id="one twice"),
    pytest.param(pod_locator("p", ["10.0.0.1"], ""), "spec.nodeName", id="no node"),
    pytest.param(pod_locator("p", ["10.0.0.1"], "Node_1"), "spec.nodeName", id="no name of a node"),
]


@pytest.mark.parametrize(("locator", "words"), REFUSED)
def test_the_api_server_refuses_a_locator_that_cannot_be_true(
    cluster: Cluster, kinds: None, locator: Object, words: str
) -> None:
    run = cluster.kubectl("apply", "-f", "-", objects=[locator])
    assert run.returncode != 0
    assert words in run.stderr


def test_kubectl_shows_addresses_and_nodes(cluster: Cluster, kinds: None) -> None:
    with cluster.namespace() as place:
        locators = (
            node_locator("n", ["10.0.0.1"], ["192.0.2.1"], "a"),
            pod_locator("p", ["10.0.0.1", "fd00::1"], "n", place.name),
        )
        cluster.apply(*locators)
        shown = [cluster.kubectl("get", *words).stdout.splitlines() for words in (["nloc"], ["-n", place.name, "ploc"])]
        assert [lines[0].split() for lines in shown] == [
            ["NAME", "ADDRESSES", "AGE"],
            ["NAME", "ADDRESSES", "NODE", "AGE"],
        ]
        assert shown[0][1].split()[:2] == ["n", '["192.0.2.1"]']
        assert shown[1][1].split()[:3] == ["p", '["10.0.0.1","fd00::1"]', "n"]
        cluster.kubectl("delete", "nodelocator", "n")


# Servers that may not read Pods


@pytest.fixture(scope="module")
def here(cluster: Cluster) -> Iterator[Place]:
    with cluster.namespace() as place:
        place.create(*whereabouts(cluster.nodes))
        yield place


@pytest.fixture(scope="module")
def server(cluster: Cluster, kinds: None, serve: Serve) -> Iterator[Server]:
    """It may read neither Pods nor Nodes."""
    write_some(cluster)
    with granted(cluster, role(ACCOUNT)), serve(ACCOUNT, block(53, "nodelocator"), account=ACCOUNT) as running:
        yield running


def test_a_server_that_may_read_neither_pods_nor_nodes_locates_clients_by_node_locators(
    cluster: Cluster, server: Server, here: Place, askers: Askers
) -> None:
    assert {located(asker, server, here) for asker in askers.values()} == {NOWHERE}
    cluster.apply(*locators_of(askers))
    everywhere = {node: node for node in cluster.nodes}
    becomes(lambda: {node: located(asker, server, here) for node, asker in askers.items()}, everywhere, 5)
    assert server.readiness().ok
    cluster.kubectl("delete", "nodelocators", "--all")
    becomes(lambda: {located(asker, server, here) for asker in askers.values()}, {NOWHERE}, 5)


def test_an_address_that_moves_to_another_node_is_right_within_a_second(
    cluster: Cluster, server: Server, here: Place, askers: Askers
) -> None:
    asker = askers["node2"]
    cluster.apply(node_locator("node2", [asker.pod.ip]), node_locator("node3"))
    becomes(lambda: located(asker, server, here), "node2", 5)
    cluster.apply(node_locator("node2"))
    cluster.apply(node_locator("node3", [asker.pod.ip]))
    begun = time.monotonic()
    becomes(lambda: located(asker, server, here), "node3", 5)
    assert time.monotonic() - begun < 1
    cluster.kubectl("delete", "nodelocators", "--all")


@pytest.fixture(scope="module")
def with_nodes(cluster: Cluster, kinds: None, serve: Serve, here: Place) -> Iterator[Server]:
    """It may read Nodes and not Pods, and locates clients by the methods of each of the PORTS; podCIDRs are proven."""
    there = [(pod_address(cluster, node, 100 + number), node) for node in cluster.nodes for number in range(PROVEN)]
    here.create(headless("proof", None, app=""), endpoint_slice("proof", dict(there), here.name))
    write_some(cluster)
    corefile = "".join(block(port, methods) for methods, port in PORTS.items())
    with granted(cluster, role(OTHERS, "nodes")), serve(OTHERS, corefile, account=OTHERS) as running:
        yield running


def logged(server: Server, words: str) -> str:
    """The server's log once it has these words."""
    eventually(lambda: words in server.logs(), words)
    return server.logs()


def contradicted(server: Server, kind: str, reason: str) -> float:
    """How many addresses in locators of this kind locate no client for this reason, over all blocks of the server."""
    return server.metric("topodns_locator_contradictions", kind=kind, reason=reason)


def test_a_proven_pod_cidr_contradicts_a_locator_that_lies(cluster: Cluster, with_nodes: Server) -> None:
    lie, other = pod_address(cluster, "node3", 250), pod_address(cluster, "node3", 251)
    try:
        cluster.apply(node_locator("node2", [lie]), pod_locator("liar", [other], "node2"))
        eventually(lambda: contradicted(with_nodes, "NodeLocator", "pod_cidr") >= 1, "the NodeLocator is counted")
        eventually(lambda: contradicted(with_nodes, "PodLocator", "pod_cidr") >= 1, "the PodLocator is counted")
        for name, address in (("NodeLocator node2", lie), ("PodLocator default/liar", other)):
            said = f"{name} says that {address} is on node node2, but that is in the podCIDR of Node node3"
            assert said in logged(with_nodes, said)
    finally:
        cluster.apply(node_locator("node2"))
        cluster.delete("PodLocator", "default", "liar")
    becomes(lambda: [contradicted(with_nodes, kind, "pod_cidr") for kind in ("NodeLocator", "PodLocator")], [0.0, 0.0])


def test_of_two_locators_for_one_address_the_newer_counts_and_of_two_namespaces_none(
    cluster: Cluster, with_nodes: Server, here: Place, place: Place, askers: Askers
) -> None:
    shared, claimed = "198.51.100.7", "198.51.100.8"

    def where(address: str) -> str:
        """An address that is not located counts as that of the client, which is on node3."""
        port = PORTS["nodes podcidr nodelocator podlocator"]
        return located(askers["node3"], with_nodes, here, port, address)

    try:
        cluster.apply(node_locator("node1", [shared]))
        becomes(lambda: where(shared), "node1", 5)
        cluster.apply(node_locator("node2", [shared]))
        becomes(lambda: where(shared), "node2", 5)
        eventually(lambda: contradicted(with_nodes, "NodeLocator", "superseded") >= 1, "the older one is counted")
        cluster.apply(pod_locator("mine", [claimed], "node1", place.name))
        becomes(lambda: where(claimed), "node1", 5)
        cluster.apply(pod_locator("theirs", [claimed], "node2"))
        becomes(lambda: where(claimed), "node3", 5)
        eventually(lambda: contradicted(with_nodes, "PodLocator", "conflict") >= 2, "both are counted")
        cluster.delete("PodLocator", "default", "theirs")
        becomes(lambda: where(claimed), "node1", 5)
    finally:
        cluster.apply(node_locator("node1"), node_locator("node2"))
        cluster.delete("PodLocator", "default", "theirs")


def test_nodes_contradict_a_locator_that_lies_and_pod_locators_place_clients(
    cluster: Cluster, with_nodes: Server, here: Place, askers: Askers, host_askers: Askers
) -> None:
    asker, host, server = askers["node2"], host_askers["node3"], with_nodes
    by_nodes, by_pods, _ = PORTS.values()
    cluster.apply(node_locator("node2", [asker.pod.ip, host.pod.ip]))
    becomes(lambda: located(asker, server, here, by_nodes), "node2", 5)
    assert located(host, server, here, by_nodes) == "node3"
    said = f"NodeLocator node2 says that {host.pod.ip} is on node node2, but that is an address of Node node3"
    eventually(lambda: said in server.logs(), server.logs())
    eventually(lambda: contradicted(server, "NodeLocator", "node_address") >= 1, "the lie is counted")
    assert located(asker, server, here, by_pods) == NOWHERE
    cluster.apply(pod_locator("p", list(asker.pod.ips), "node2", here.name))
    becomes(lambda: located(asker, server, here, by_pods), "node2", 5)
    cluster.kubectl("delete", "nodelocators", "--all")


# PodLocators with the labels of Nodes, written by the locator, for a server that may read neither Pods nor Nodes


@pytest.fixture(scope="module")
def written(cluster: Cluster, kinds: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    rights = permissions("locator/serviceaccount.yaml", "locator/rbac.yaml")
    with granted(cluster, rights):
        cluster.patch("ClusterRole", "", "topodns-locator", {"rules": OF_POD_LOCATORS})
        with locator_process(cluster, Path(tmp_path_factory.mktemp("locator")), "--kind", "podlocator"):
            eventually(lambda: any(cluster.list("PodLocator", "")), "PodLocators")
            yield
    cluster.kubectl("delete", "podlocators", "--all", "--all-namespaces")


@pytest.fixture(scope="module")
def by_pod_locators(cluster: Cluster, written: None, serve: Serve) -> Iterator[Server]:
    with granted(cluster, role(OF_PODS)), serve(OF_PODS, block(53, "podlocator"), account=OF_PODS) as running:
        yield running


def near_service(place: Place, name: str, key: str) -> None:
    """A Service with this key, and an endpoint on each node."""
    endpoints = [(f"192.0.2.{node.removeprefix('node')}", node) for node in place.cluster.nodes]
    place.create(headless(name, key, app=""), manual_slice(name, name, endpoints))


def domains(cluster: Cluster, key: str) -> dict[str, set[str]]:
    """By node: the addresses of `near_service` in its domain."""
    labels = {each["metadata"]["name"]: each["metadata"]["labels"].get(key) for each in cluster.list("Node", "")}
    return {
        node: {f"192.0.2.{other.removeprefix('node')}" for other in cluster.nodes if labels[other] == labels[node]}
        for node in cluster.nodes
    }


def answers(place: Place, name: str, server: Server, askers: Askers) -> dict[str, set[str]]:
    found = {}
    for node, asker in askers.items():
        found[node] = set(asker.ask(f"{place.fqdn(name)} A", server.pod.ip).data)
    return found


def test_without_the_right_to_pods_and_nodes_pod_locators_locate_clients_and_have_the_labels_of_nodes(
    cluster: Cluster, by_pod_locators: Server, place: Place, askers: Askers, host_askers: Askers
) -> None:
    near_service(place, "zonal", ZONE)
    expected = domains(cluster, ZONE)
    assert len({frozenset(each) for each in expected.values()}) == 3
    becomes(lambda: answers(place, "zonal", by_pod_locators, askers), expected)
    elsewhere = {node: asker for node, asker in host_askers.items() if node != by_pod_locators.pod.node}
    becomes(lambda: answers(place, "zonal", by_pod_locators, elsewhere), {node: expected[node] for node in elsewhere})
    for kind in ("nodes", "pods"):
        run = cluster.kubectl("auth", "can-i", "list", kind, f"--as=system:serviceaccount:kube-system:{OF_PODS}")
        assert run.stdout.strip() == "no"


def test_a_new_key_is_in_all_pod_locators_and_answers_within_10_s(
    cluster: Cluster, by_pod_locators: Server, place: Place, askers: Askers
) -> None:
    racks = {node: f"r{int(node.removeprefix('node')) % 2}" for node in cluster.nodes}
    for node, rack in racks.items():
        cluster.patch("Node", "", node, {"metadata": {"labels": {RACK: rack}}})

    def written_racks() -> dict[str, set[str | None]]:
        found: dict[str, set[str | None]] = {}
        for each in cluster.list("PodLocator", ""):
            found.setdefault(each["spec"]["nodeName"], set()).add(each["spec"]["nodeLabels"].get(RACK))
        return found

    try:
        assert written_racks() == {node: {None} for node in cluster.nodes}
        began = time.monotonic()
        near_service(place, "racked", RACK)
        becomes(written_racks, {node: {rack} for node, rack in racks.items()})
        becomes(lambda: answers(place, "racked", by_pod_locators, askers), domains(cluster, RACK))
        took = time.monotonic() - began
        print(f"\nthe new key was in all PodLocators and answers after {took:.1f} s")
        assert took < NEW_KEY
    finally:
        for node in racks:
            cluster.patch("Node", "", node, {"metadata": {"labels": {RACK: None}}})
