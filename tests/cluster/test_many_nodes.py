"""300 nodes more, played by kwok, and more than 1,000 pods on them: each client is told exactly what follows from the
EndpointSlices and Nodes that the API server has, while a Deployment is rolled and while nodes move and go.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from typing import Final

import pytest

from tests.kubelab.kwok import MARK, TAINT, FakeNode, fake_nodes
from tests.support.kube.choice import chosen, node_labels, service_endpoints
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.objects import HOSTNAME, ZONE, headless, pause_container, pod_spec, workload
from tests.support.kube.on_host import serving_on_host
from tests.support.kube.slice_history import SliceHistory, Timeline, slice_history
from tests.support.kube.waiting import PATIENCE, becomes, eventually
from tests.support.messages import Opt, node_identity, subnet
from tests.support.process import READY, topodns
from tests.support.process import Server as Process

PODS, MEMBERS = 1000, 120
MOVED = 50  # nodes at once
SECONDS = 5.0  # until what the API server has said is in every answer

RACK: Final = "example.com/rack"
KEYS: Final = {"all": (), "near": (ZONE,), "racked": (RACK, ZONE), "soft": (HOSTNAME, RACK, ZONE, "*")}
KEYS_OF_SET: Final = {"db": (), "db-near": (HOSTNAME, ZONE)}
SIZES: Final = dict.fromkeys(KEYS, PODS) | dict.fromkeys(KEYS_OF_SET, MEMBERS)


def rack_of(index: int) -> Mapping[str, str]:
    """Racks of two to three nodes, all in one zone; three of four nodes stand in one."""
    return {RACK: f"r{index % 3}-{index // 8}"} if index % 4 else {}


FLEET: Final = [FakeNode(i, {ZONE: "abc"[i % 3], **rack_of(i)}) for i in range(300)]
CLIENTS: Final = [node.name for node in FLEET[::37]]  # of each zone, in a rack and in none

Told = dict[tuple[str, str], frozenset[str]]  # by Service and the client's node


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
            becomes(lambda: sizes(place), SIZES, 2 * PATIENCE)
            yield place
        delete_by_force(place, (pod["metadata"]["name"] for pod in cluster.list("Pod", place.name)))
        becomes(lambda: list(cluster.list("Pod", place.name)), [])


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
    """What the name leads to, or the RCODE; over TCP, because UDP does not hold hundreds of addresses."""
    reply = server.ask(f"{name} A", opt=Opt(options=[option]), tcp=True)
    return frozenset(reply.data) if reply.rcode == "NOERROR" else frozenset([reply.rcode])


def told(server: Process, place: Place, clients: Iterable[str] = CLIENTS) -> Told:
    """To clients whose node cache names their node."""
    services = [*KEYS, *KEYS_OF_SET]
    return {
        (service, client): ask(server, place.fqdn(service), node_identity(client))
        for client in clients
        for service in services
    }


def expected(place: Place, clients: Iterable[str] = CLIENTS) -> Told:
    labels, endpoints = node_labels(place.cluster), service_endpoints(place.cluster, place.name)
    return {
        (service, client): chosen(endpoints[service], keys, client, labels)
        for client in clients
        for service, keys in (KEYS | KEYS_OF_SET).items()
    }


def test_the_server_holds_as_many_objects_as_the_api_server(outside: Process, cluster: Cluster, crowd: Place) -> None:
    kinds = ("Node", "Service", "EndpointSlice", "Namespace")

    def held() -> Mapping[str, float]:
        return {kind: outside.metric("topodns_state_objects", kind=kind) for kind in kinds}

    def there() -> Mapping[str, float]:
        return {kind: len(list(cluster.list(kind, ""))) for kind in kinds}

    assert there()["Node"] == len(FLEET) + len(cluster.nodes)
    eventually(lambda: held() == there(), f"the same numbers: {held()}, {there()}", SECONDS)


def test_each_client_that_is_named_by_its_node_gets_what_is_near(outside: Process, crowd: Place) -> None:
    answers = told(outside, crowd)
    assert answers == expected(crowd)
    assert {len(answers[("all", client)]) for client in CLIENTS} == {PODS}
    assert all(0 < len(answers[("near", client)]) < PODS for client in CLIENTS)


def test_client_subnet_finds_pods_of_every_node_and_the_rest_of_its_addresses(outside: Process, crowd: Place) -> None:
    right = expected(crowd)
    pods = service_endpoints(crowd.cluster, crowd.name)["all"]
    for node in FLEET[::37]:
        of_pod = next(f"{pod.address}/32" for pod in pods if pod.node == node.name)
        of_nobody = f"{ip_network(node.pod_cidr)[-2]}/32"
        for shown in (of_pod, of_nobody, f"{node.ip}/32", node.pod_cidr):
            for service in ("near", "racked", "soft"):
                answer = ask(outside, crowd.fqdn(service), subnet(shown))
                assert answer == right[(service, node.name)], (service, shown)


def test_explain_says_what_a_client_on_a_node_gets(outside: Process, crowd: Place) -> None:
    right = expected(crowd)
    for client, service in zip(CLIENTS, ["near", "racked", "soft", "db-near"], strict=False):
        words = ("explain", "--server", f"{outside.address}:{READY}", "--node", client, crowd.fqdn(service))
        run = topodns(*words)
        assert run.returncode == 0, run.stderr
        records = [line.split() for line in run.stdout.splitlines() if " IN A " in line]
        assert {record[-1] for record in records} == right[(service, client)]


@dataclass(frozen=True, slots=True)
class Answered:
    service: str
    client: str
    asked: float
    answer: frozenset[str]


def test_a_thousand_pods_are_rolled_and_no_answer_is_older_than_five_seconds(outside: Process, crowd: Place) -> None:
    with slice_history(crowd.cluster.lab, crowd.name) as history:
        eventually(lambda: history.spans("all"), "the first slices")
        crowd.patch("Deployment", "web", {"spec": {"template": {"metadata": {"annotations": {"rolled": "yes"}}}}})
        answered = list(ask_until_rolled(outside, crowd, history))
    assert told(outside, crowd) == expected(crowd)
    assert sizes(crowd)["all"] == PODS
    assert len({each.answer for each in answered if each.service == "all"}) > 3
    labels = node_labels(crowd.cluster)
    for (service, client), answers in by_client(answered).items():
        line = Timeline(history.spans(service), partial(chosen, keys=KEYS[service], client=client, labels=labels))
        late = {each.asked: line.distance(each.answer, each.asked) for each in answers}
        assert max(late.values()) < SECONDS, (service, client, late)


def by_client(answered: Iterable[Answered]) -> Mapping[tuple[str, str], list[Answered]]:
    found: dict[tuple[str, str], list[Answered]] = {}
    for each in answered:
        found.setdefault((each.service, each.client), []).append(each)
    return found


def ask_until_rolled(server: Process, place: Place, history: SliceHistory) -> Iterator[Answered]:
    """All the time, and on until what was said last must be in the answers."""
    deadline = time.monotonic() + 2 * PATIENCE
    while not rolled(place) or history.quiet_seconds() < SECONDS + 1:
        assert time.monotonic() < deadline, "not rolled"
        for client in CLIENTS[:3]:
            for service in KEYS:
                asked = time.monotonic()
                yield Answered(service, client, asked, ask(server, place.fqdn(service), node_identity(client)))


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
    after = expected(crowd, clients)
    assert all(before[("near", client)] != after[("near", client)] for client in moved[::10])
    becomes(lambda: told(outside, crowd, clients), after, SECONDS)


def test_fifty_nodes_deleted_at_once_take_their_clients_and_in_the_end_their_endpoints_along(
    outside: Process, cluster: Cluster, crowd: Place
) -> None:
    """Their pods are deleted by force, as Kubernetes itself does after about a minute."""
    gone = [node.name for node in FLEET if node.labels[ZONE] == "b"][:MOVED]
    clients = [*CLIENTS, *gone[::10]]
    at_once(gone, lambda name: cluster.delete("Node", "", name))
    becomes(lambda: told(outside, crowd, clients), expected(crowd, clients), SECONDS)
    assert all(told(outside, crowd, [client])[("near", client)] == frozenset() for client in gone[::10])
    lost = [pod["metadata"]["name"] for pod in cluster.list("Pod", crowd.name) if pod["spec"]["nodeName"] in gone]
    assert lost
    delete_by_force(crowd, lost)
    becomes(lambda: (nodes_behind(crowd) & set(gone), sizes(crowd)), (set(), SIZES))
    becomes(lambda: told(outside, crowd, clients), expected(crowd, clients), SECONDS)


def delete_by_force(place: Place, pods: Iterable[str]) -> None:
    at_once(pods, lambda name: place.delete("Pod", name, grace=0))


def at_once(names: Iterable[str], change: Callable[[str], None]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, names))
