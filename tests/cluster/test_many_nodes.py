"""300 nodes more, played by kwok, and more than 1,000 pods on them: each client gets exactly the answers of the
EndpointSlices and Nodes that the API server has, while a Deployment is rolled and while nodes move and go.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from typing import Final

import pytest

from tests.kubelab.kwok import MARK, TAINT, FakeNode, fake_nodes
from tests.support.dns_messages import Opt, node_identity, subnet
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.expected_endpoints import Endpoint, chosen, node_labels, service_endpoints
from tests.support.kube.host_process import serving_on_host
from tests.support.kube.objects import HOSTNAME, ZONE, headless, pause_container, pod_spec, workload
from tests.support.kube.slice_history import SliceHistory, never_right, slice_history
from tests.support.kube.waiting import PATIENCE, becomes, eventually
from tests.support.server_process import READY, topodns
from tests.support.server_process import Server as Process

PODS, MEMBERS = 1000, 120
MOVED = 50  # nodes at once
LONG = 5 * PATIENCE  # for a thousand pods, on a machine that has other work to do

RACK: Final = "example.com/rack"
KEYS: Final = {"all": (), "near": (ZONE,), "racked": (RACK, ZONE), "soft": (HOSTNAME, RACK, ZONE, "*")}
KEYS_OF_SET: Final = {"db": (), "db-near": (HOSTNAME, ZONE)}
SIZES: Final = dict.fromkeys(KEYS, PODS) | dict.fromkeys(KEYS_OF_SET, MEMBERS)


def rack_of(index: int) -> Mapping[str, str]:
    """Racks of two to three nodes, all in one zone; a zone has three of four nodes."""
    return {RACK: f"r{index % 3}-{index // 8}"} if index % 4 else {}


FLEET: Final = [FakeNode(i, {ZONE: "abc"[i % 3], **rack_of(i)}) for i in range(300)]
CLIENTS: Final = [node.name for node in FLEET[::37]]  # of each zone, in a rack and in none

Asked = tuple[str, str]  # Service and the client's node
Got = dict[Asked, frozenset[str]]


@pytest.fixture(scope="module")
def crowd(cluster: Cluster) -> Iterator[Place]:
    """Scaled to their size, and as many endpoints there."""
    there = pod_spec(pause_container(), nodeSelector=MARK, tolerations=[{"key": TAINT["key"], "operator": "Exists"}])
    with fake_nodes(cluster.lab, FLEET):
        with cluster.namespace("crowd") as place:
            place.create(*(headless(name, ",".join(keys), app="web") for name, keys in KEYS.items()))
            place.create(*(headless(name, ",".join(keys), app="db") for name, keys in KEYS_OF_SET.items()))
            place.create(workload("Deployment", "web", {"replicas": 10}, there))
            members = {"replicas": 1, "serviceName": "db", "podManagementPolicy": "Parallel"}
            place.create(workload("StatefulSet", "db", members, there))
            place.scale("Deployment", "web", PODS)
            place.scale("StatefulSet", "db", MEMBERS)
            becomes(lambda: sizes(place), SIZES, LONG)
            yield place
        delete_by_force(place, (pod["metadata"]["name"] for pod in cluster.list("Pod", place.name)))
        becomes(lambda: list(cluster.list("Pod", place.name)), [], LONG)


@pytest.fixture(scope="module")
def outside(cluster: Cluster, crowd: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server that believes what its clients say of themselves: no fake node can ask."""
    with serving_on_host(cluster, tmp_path_factory.mktemp("outside"), "trust 127.0.0.0/8") as process:
        yield process


def sizes(place: Place) -> Mapping[str, int]:
    return {service: len(found) for service, found in service_endpoints(place.cluster, place.name).items()}


def nodes_behind(place: Place) -> set[str]:
    found = service_endpoints(place.cluster, place.name)
    return {endpoint.node for endpoints in found.values() for endpoint in endpoints}


def ask(server: Process, name: str, option: tuple[int, bytes]) -> frozenset[str]:
    """The addresses of the name, or the RCODE; over TCP, because UDP does not hold hundreds of addresses."""
    reply = server.ask(f"{name} A", opt=Opt(options=[option]), tcp=True)
    return frozenset(reply.data) if reply.rcode == "NOERROR" else frozenset([reply.rcode])


def got(server: Process, place: Place, clients: Iterable[str] = CLIENTS) -> Got:
    """To clients whose node cache names their node."""
    services = [*KEYS, *KEYS_OF_SET]
    return {
        (service, client): ask(server, place.fqdn(service), node_identity(client))
        for client in clients
        for service in services
    }


def expected(place: Place, clients: Iterable[str] = CLIENTS) -> Got:
    labels, endpoints = node_labels(place.cluster), service_endpoints(place.cluster, place.name)
    return {
        (service, client): chosen(endpoints[service], keys, client, labels)
        for client in clients
        for service, keys in (KEYS | KEYS_OF_SET).items()
    }


def mistakes(server: Process, place: Place, clients: Iterable[str] = CLIENTS) -> Mapping[Asked, str]:
    """Answers that the objects read from the API server right afterwards do not explain."""
    answers, right = got(server, place, clients), expected(place, clients)
    return {
        key: f"{len(answers[key] - right[key])} too many and {len(right[key] - answers[key])} too few"
        for key in right
        if answers[key] != right[key]
    }


def test_the_server_holds_as_many_objects_as_the_api_server(outside: Process, cluster: Cluster, crowd: Place) -> None:
    kinds = ("Node", "Service", "EndpointSlice", "Namespace")

    def there(kind: str) -> int:
        return len(list(cluster.list(kind, "")))

    def too_many() -> Mapping[str, float]:
        return {kind: outside.metric("topodns_state_objects", kind=kind) - there(kind) for kind in kinds}

    assert there("Node") == len(FLEET) + len(cluster.nodes)
    becomes(too_many, dict.fromkeys(kinds, 0))


def test_a_client_named_by_its_node_identity_gets_the_near_endpoints(outside: Process, crowd: Place) -> None:
    becomes(lambda: mistakes(outside, crowd), {})
    answers = got(outside, crowd)
    assert {len(answers[("all", client)]) for client in CLIENTS} == {PODS}
    assert all(0 < len(answers[("near", client)]) < PODS for client in CLIENTS)


def test_client_subnet_finds_pods_of_every_node_and_the_rest_of_its_addresses(outside: Process, crowd: Place) -> None:
    def mistakes_by_subnet() -> list[tuple[str, str]]:
        pods, right = service_endpoints(crowd.cluster, crowd.name)["all"], expected(crowd)
        return [
            (service, shown)
            for node in FLEET[::37]
            for shown in subnets(node, pods)
            for service in ("near", "racked", "soft")
            if ask(outside, crowd.fqdn(service), subnet(shown)) != right[(service, node.name)]
        ]

    becomes(mistakes_by_subnet, [])


def subnets(node: FakeNode, pods: Iterable[Endpoint]) -> list[str]:
    """Of a pod of the node, of an address that no pod has, of the node itself, of all its pods."""
    of_pod = next(f"{pod.address}/32" for pod in pods if pod.node == node.name)
    return [of_pod, f"{ip_network(node.pod_cidr)[-2]}/32", f"{node.ip}/32", node.pod_cidr]


def test_explain_shows_the_endpoints_of_a_client_on_a_node(outside: Process, crowd: Place) -> None:
    asked = list(zip(["near", "racked", "soft", "db-near"], CLIENTS, strict=False))

    def mistakes_of_explain() -> list[Asked]:
        right = expected(crowd)
        return [each for each in asked if explained(outside, crowd, *each) != right[each]]

    becomes(mistakes_of_explain, [])


def explained(server: Process, place: Place, service: str, client: str) -> frozenset[str]:
    run = topodns("explain", "--server", f"{server.address}:{READY}", "--node", client, place.fqdn(service))
    assert run.returncode == 0, run.stderr
    return frozenset(line.split()[-1] for line in run.stdout.splitlines() if " IN A " in line)


def test_while_a_thousand_pods_are_rolled_every_answer_was_right_once_and_none_goes_back(
    outside: Process, crowd: Place
) -> None:
    with slice_history(crowd.cluster.lab, crowd.name) as history:
        eventually(lambda: history.latest("all"), "the first slices")
        crowd.patch("Deployment", "web", {"spec": {"template": {"metadata": {"annotations": {"rolled": "yes"}}}}})
        answered = ask_until_rolled(outside, crowd, history)
    becomes(lambda: mistakes(outside, crowd), {})
    assert sizes(crowd)["all"] == PODS
    labels = node_labels(crowd.cluster)
    assert len(set(answered[("all", CLIENTS[0])])) > 3
    for (service, client), answers in answered.items():
        moments = (chosen(endpoints, KEYS[service], client, labels) for endpoints in history.moments(service))
        assert never_right(answers, moments) is None, (service, client)


def ask_until_rolled(server: Process, place: Place, history: SliceHistory) -> Mapping[Asked, list[frozenset[str]]]:
    """The answers in their order; the history has then caught up with all of them."""
    deadline = time.monotonic() + LONG
    answered: dict[Asked, list[frozenset[str]]] = {}
    while not rolled(place) or not caught_up(place, history):
        assert time.monotonic() < deadline, "not rolled"
        for client in CLIENTS[:3]:
            for service in KEYS:
                answer = ask(server, place.fqdn(service), node_identity(client))
                answered.setdefault((service, client), []).append(answer)
    return answered


def caught_up(place: Place, history: SliceHistory) -> bool:
    """With what the API server has now: all pods, none of them twice."""
    found = service_endpoints(place.cluster, place.name)
    return all(len(found[service]) == PODS and history.latest(service) == found[service] for service in KEYS)


def rolled(place: Place) -> bool:
    found = place.read("Deployment", "web")
    assert found is not None
    status = found["status"]
    counts = {status.get(name) for name in ("replicas", "updatedReplicas", "readyReplicas")}
    return counts == {PODS} and bool(status["observedGeneration"] == found["metadata"]["generation"])


def test_fifty_nodes_relabelled_at_once_have_moved_for_everybody(
    outside: Process, cluster: Cluster, crowd: Place
) -> None:
    moved = [node.name for node in FLEET if node.labels[ZONE] == "a"][:MOVED]
    clients = [*CLIENTS, *moved[::10]]
    before = expected(crowd, clients)
    change = {"metadata": {"labels": {ZONE: "c", RACK: None}}}
    at_once(moved, lambda name: cluster.patch("Node", "", name, change))
    becomes(lambda: mistakes(outside, crowd, clients), {})
    after = expected(crowd, clients)
    assert all(before[("near", client)] != after[("near", client)] for client in moved[::10])


def test_fifty_nodes_deleted_at_once_take_their_clients_and_in_the_end_their_endpoints_along(
    outside: Process, cluster: Cluster, crowd: Place
) -> None:
    """Their pods are deleted by force, as Kubernetes itself does after about a minute."""
    gone = [node.name for node in FLEET if node.labels[ZONE] == "b"][:MOVED]
    clients = [*CLIENTS, *gone[::10]]
    at_once(gone, lambda name: cluster.delete("Node", "", name))
    becomes(lambda: mistakes(outside, crowd, clients), {})
    assert all(got(outside, crowd, [client])[("near", client)] == frozenset() for client in gone[::10])
    lost = [pod["metadata"]["name"] for pod in cluster.list("Pod", crowd.name) if pod["spec"].get("nodeName") in gone]
    assert lost
    delete_by_force(crowd, lost)
    becomes(lambda: (nodes_behind(crowd) & set(gone), sizes(crowd)), (set(), SIZES), LONG)
    becomes(lambda: mistakes(outside, crowd, clients), {})


def delete_by_force(place: Place, pods: Iterable[str]) -> None:
    at_once(pods, lambda name: place.delete("Pod", name, grace=0))


def at_once(names: Iterable[str], change: Callable[[str], None]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, names))
