"""A Deployment and a StatefulSet spread over zones, behind headless Services with every sort of topology keys: clients
on each node get exactly their own, whatever becomes of pods and nodes, also by the views `_near` and `_all`.

Placement, scaling, labels and the loss of a topodns pod are tried with kube-proxy in both modes. What takes long, and
does not depend on kube-proxy, is tried in nftables mode only: processes on the nodes' own network, pods killed and
deleted, a node lost, cordoned, drained.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import pytest

from tests.kubelab.options import CLUSTER_DNS, FIRST_SERVICES
from tests.support.kube.background_clients import asked_all_the_time
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place, PodView, view
from tests.support.kube.expected_nearest import answers
from tests.support.kube.first_lookups import logged_at_start
from tests.support.kube.objects import ZONE, pause_container, pod_spec, spread, workload
from tests.support.kube.operator_commands import Operator
from tests.support.kube.query_loads import Asked, load, outcome
from tests.support.kube.server_pods import cluster_dns_pods
from tests.support.kube.topology_key_services import RACK, expected, keys_by_service, members, seen, services
from tests.support.kube.waiting import becomes, eventually

NFTABLES_ONLY = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)
SIZES: Final = {"web": 6, "db": 4}
RACKS: Final = {"node1": "r1", "node3": "r1", "node2": "r2"}  # node4 is in none
ALONE: Final = "node3"  # in its topology zone
VIRTUAL: Final = [Asked("kubernetes.default.svc.cluster.local A", CLUSTER_DNS, FIRST_SERVICES[:1])]
ON_THEIR_WAY: Final = 2  # replies, when kube-proxy forgets the connections to an endpoint that no longer serves
RATE: Final = 100  # questions a second
NOTHING: Final = "[Errno -5] No address associated with hostname"

Watched = Callable[..., AbstractContextManager[None]]


@pytest.fixture(scope="module")
def shop(installed: str, cluster: Cluster, operator: Operator) -> Iterator[Place]:
    """`web` and `db`, so many as SIZES says, on all nodes; the nodes in racks."""
    for node, rack in RACKS.items():
        operator.run("kubectl", "label", "node", node, f"{RACK}={rack}")
    with cluster.namespace() as place:
        place.create(
            *services("web"),
            workload("Deployment", "web", {"replicas": SIZES["web"]}, pod_spec(pause_container(), **spread("web"))),
            *services("db"),
            workload(
                "StatefulSet",
                "db",
                {"replicas": SIZES["db"], "serviceName": "db", "podManagementPolicy": "Parallel"},
                pod_spec(pause_container(), **spread("db")),
            ),
        )
        yield place
    for node in RACKS:
        operator.run("kubectl", "label", "node", node, f"{RACK}-")


@pytest.fixture
def moving(shop: Place, clients: Place, askers: Askers) -> Watched:
    """While its block runs, pods of these nodes ask all the time; in the end every answer is right."""

    @contextmanager
    def watched(*nodes: str) -> Iterator[None]:
        asking = [pod for pod in clients.pods("client") if pod.node in (nodes or ("node1", ALONE))]
        with asked_all_the_time(shop, {**keys_by_service("web"), **keys_by_service("db")}, asking):
            yield
            settle(shop, askers)

    return watched


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[None]:
    """They take pods, and are labelled as before, in the end."""
    yield
    for node, topology_zone in cluster.topology_zones.items():
        labels = {ZONE: topology_zone, RACK: RACKS.get(node)}
        cluster.patch("Node", "", node, {"metadata": {"labels": labels}, "spec": {"unschedulable": None}})


def settle(place: Place, askers: Askers, **sizes: int) -> None:
    """Wait for so many pods, as SIZES says where nothing else is given; then all clients get exactly their own."""
    for app, number in (SIZES | sizes).items():
        place.pods_once_ready(app, number)
    compare(place, askers)


def compare(place: Place, askers: Askers) -> None:
    """All clients get exactly what follows from the pods that are ready now."""
    right = {app: expected(place, app) for app in SIZES}
    becomes(lambda: {app: seen(place, askers, app) for app in SIZES}, right)


def dns_pods(cluster: Cluster) -> list[PodView]:
    return [view(pod) for pod in cluster.list("Pod", "kube-system", "k8s-app=kube-dns")]


def two_answer(cluster: Cluster) -> bool:
    return [(pod.ready, pod.terminating) for pod in dns_pods(cluster)] == [(True, False)] * 2


@pytest.mark.short
def test_clients_of_each_node_get_exactly_their_own(shop: Place, askers: Askers) -> None:
    settle(shop, askers)
    assert {pod.node for app in SIZES for pod in shop.pods(app)} == set(shop.cluster.nodes)
    right = expected(shop, "web")
    assert {len(set(map(frozenset, got.values()))) for got in right.values()} == {1, 3, 4}


@pytest.mark.short
def test_srv_records_are_chosen_like_addresses_and_members_are_there_for_everybody(shop: Place, askers: Askers) -> None:
    settle(shop, askers)
    names = {pod.name: {pod.ip} for pod in shop.pods("db")}
    becomes(lambda: members(shop, askers, "db", SIZES["db"]), names)
    for service in ("db-near", "db-soft"):
        right = {node: srv(shop, service, ips) for node, ips in expected(shop, "db")[service].items()}
        assert answers(askers, f"_http._tcp.{shop.fqdn(service)}", "SRV") == right
        for (address,) in names.values():  # whoever asks has chosen
            target = f"{dashed(address)}.{shop.fqdn(service)}"
            assert answers(askers, target) == {node: {address} for node in askers}


def srv(place: Place, service: str, addresses: set[str]) -> set[str]:
    """The records of these endpoints, without names of their own under this Service."""
    return {f"0 {100 // len(addresses)} 80 {dashed(address)}.{place.fqdn(service)}." for address in addresses}


def dashed(address: str) -> str:
    return address.replace(".", "-")


@NFTABLES_ONLY
def test_processes_on_a_nodes_network_get_their_own_also_from_a_server_on_that_node(
    shop: Place, askers: Askers, host_askers: Askers, cluster: Cluster
) -> None:
    """To that one they show the gateway between its Pods.

    See docs/reference/topology.md#caches-and-network-plugins.
    """
    settle(shop, askers)
    right = expected(shop, "web")
    servers = cluster_dns_pods(cluster)
    for name in keys_by_service("web"):
        for server in servers:
            got = {node: asker.addresses(shop.fqdn(name), to=server.ip) for node, asker in host_askers.items()}
            assert got == right[name], (name, server)
        elsewhere = set(cluster.nodes) - {server.node for server in servers}
        got = {node: host_askers[node].addresses(shop.fqdn(name)) for node in elsewhere}
        assert got == {node: right[name][node] for node in elsewhere}


@pytest.mark.short
@NFTABLES_ONLY
@pytest.mark.parametrize("node", ["node1", "node2", ALONE])
def test_a_pod_behind_no_service_gets_its_own_at_its_first_question(shop: Place, askers: Askers, node: str) -> None:
    settle(shop, askers)
    right = {name: got[node] or {NOTHING} for name, got in expected(shop, "web").items()}
    assert logged_at_start(shop, node, right) == right


def scale(operator: Operator, place: Place, what: str, replicas: int) -> None:
    operator.run("kubectl", "-n", place.name, "scale", what, f"--replicas={replicas}")


def test_scaled_down_and_up(shop: Place, askers: Askers, operator: Operator, moving: Watched) -> None:
    settle(shop, askers)
    with moving():
        for web, db in ((1, 2), (SIZES["web"], SIZES["db"])):
            scale(operator, shop, "deployment/web", web)
            scale(operator, shop, "statefulset/db", db)
            settle(shop, askers, web=web, db=db)
            missing = {f"db-{i}": {"NXDOMAIN"} for i in range(db, SIZES["db"])}
            there = {pod.name: {pod.ip} for pod in shop.pods("db")}
            becomes(lambda: members(shop, askers, "db", SIZES["db"]), missing | there)


@pytest.mark.usefixtures("nodes")
def test_relabelled_nodes_move_with_their_clients_and_their_pods(
    shop: Place, askers: Askers, operator: Operator, cluster: Cluster, moving: Watched
) -> None:
    """One of them with a topodns pod on it."""
    settle(shop, askers)
    serves = cluster_dns_pods(cluster)[0].node
    other = next(node for node in cluster.nodes if node != serves)
    before = expected(shop, "web")

    def label(node: str, *labels: str) -> None:
        with moving(node):
            operator.run("kubectl", "label", "node", node, "--overwrite", *labels)

    label(serves, f"{ZONE}={'c' if cluster.topology_zones[serves] != 'c' else 'b'}", f"{RACK}=r9")
    label(other, f"{ZONE}-", f"{RACK}-")
    moved = expected(shop, "web")
    assert moved["web-near"][other] == moved["web-racked"][other] == set()
    assert moved["web-near"][serves] != before["web-near"][serves]
    for node in (serves, other):
        rack = RACKS.get(node)
        label(node, f"{ZONE}={cluster.topology_zones[node]}", f"{RACK}={rack}" if rack else f"{RACK}-")
    assert expected(shop, "web") == before


@NFTABLES_ONLY
def test_a_killed_container_comes_back_at_its_address(shop: Place, askers: Askers, moving: Watched) -> None:
    settle(shop, askers)
    killed = shop.pods("web")[0]
    with moving(killed.node):
        shop.cluster.lab.machine(killed.node).run("ctr", "task", "kill", "--signal", "SIGKILL", killed.container)
        eventually(
            lambda: killed.container not in {pod.container for pod in shop.ready_pods("web")}, "another container"
        )
    (again,) = (pod for pod in shop.pods("web") if pod.name == killed.name)
    assert (again.ip, again.container != killed.container) == (killed.ip, True)


@NFTABLES_ONLY
def test_pods_deleted_at_once_are_replaced_by_their_successors(
    shop: Place, askers: Askers, operator: Operator, moving: Watched
) -> None:
    settle(shop, askers)
    gone = [shop.pods("web")[0], next(pod for pod in shop.pods("db") if pod.name == "db-1")]
    names = [pod.name for pod in gone]
    with moving():
        operator.run("kubectl", "-n", shop.name, "delete", "pod", *names, "--grace-period=0", "--force")
    assert not {pod.ip for pod in gone} & {pod.ip for app in SIZES for pod in shop.pods(app)}
    becomes(lambda: members(shop, askers, "db", SIZES["db"]), {pod.name: {pod.ip} for pod in shop.pods("db")})


@NFTABLES_ONLY
def test_the_pods_of_a_lost_node_leave_the_answers_and_come_back_with_it(
    shop: Place, askers: Askers, clients: Place, cluster: Cluster, moving: Watched
) -> None:
    """Its kubelet is killed; its pods run on, and ask."""
    settle(shop, askers)
    lab = cluster.lab
    lost = {pod.name for app in SIZES for pod in shop.pods(app) if pod.node == ALONE}
    assert lost
    with moving():
        lab.machine(ALONE).stop("kubelet", "KILL")
        try:
            eventually(lambda: not lab.ready()[ALONE], f"{ALONE} is NotReady")
            eventually(lambda: not lost & {pod.name for app in SIZES for pod in shop.ready_pods(app)}, "not ready")
            compare(shop, askers)
            assert answers(askers, shop.fqdn("db-near"))[ALONE] == set()
            assert answers(askers, shop.fqdn("db-soft"))[ALONE] == askers["node1"].addresses(shop.fqdn("db"))
        finally:
            lab.machine(ALONE).start("kubelet")
        eventually(lab.all_ready, f"{ALONE} is Ready again")
    assert lost <= {pod.name for app in SIZES for pod in shop.pods(app)}


def test_a_topodns_pod_deleted_costs_no_more_than_replies_on_their_way(
    shop: Place, clients: Place, operator: Operator, cluster: Cluster, moving: Watched
) -> None:
    eventually(lambda: two_answer(cluster), "two topodns pods")
    gone, stays = cluster_dns_pods(cluster)
    asking = next(pod for pod in clients.pods("client") if pod.node not in (gone.node, stays.node))
    with moving(), load(cluster.lab, asking, VIRTUAL, RATE) as loaded, outcome(loaded) as became:
        operator.run("kubectl", "-n", "kube-system", "delete", "pod", gone.name)
        eventually(lambda: two_answer(cluster), "two topodns pods")
    assert gone.name not in {pod.name for pod in dns_pods(cluster)}
    assert became.lost <= ON_THEIR_WAY, became.problems
    assert (became.failed, became.wrong) == (0, 0), became.problems


@NFTABLES_ONLY
@pytest.mark.usefixtures("nodes")
def test_a_cordoned_node_keeps_its_pods_and_gets_no_new_ones(
    shop: Place, askers: Askers, operator: Operator, moving: Watched
) -> None:
    settle(shop, askers)
    there = {pod.name for pod in shop.pods("web") if pod.node == ALONE}
    with moving(ALONE):
        operator.run("kubectl", "cordon", ALONE)
        compare(shop, askers)
        scale(operator, shop, "deployment/web", SIZES["web"] + 3)
        settle(shop, askers, web=SIZES["web"] + 3)
        assert {pod.name for pod in shop.pods("web") if pod.node == ALONE} == there
        operator.run("kubectl", "uncordon", ALONE)
        scale(operator, shop, "deployment/web", SIZES["web"])


@NFTABLES_ONLY
@pytest.mark.usefixtures("nodes")
def test_a_node_drained_of_a_topodns_pod_costs_no_more_than_replies_on_their_way(
    shop: Place, askers: Askers, clients: Place, operator: Operator, cluster: Cluster, moving: Watched
) -> None:
    """Under the chart's PodDisruptionBudget."""
    budget = operator.run(
        "kubectl", "-n", "kube-system", "get", "poddisruptionbudget", "topodns", "-o", "jsonpath={.spec}"
    )
    assert '"maxUnavailable":1' in budget
    eventually(lambda: two_answer(cluster), "two topodns pods")
    settle(shop, askers)
    drained, other = (pod.node for pod in cluster_dns_pods(cluster))
    assert {drained} <= {pod.node for pod in shop.pods("web")}
    asking = next(pod for pod in clients.pods("client") if pod.node not in (drained, other))
    with moving(drained, asking.node), load(cluster.lab, asking, VIRTUAL, RATE) as loaded, outcome(loaded) as became:
        operator.run("kubectl", "drain", drained, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
        eventually(lambda: two_answer(cluster), "two topodns pods")
        settle(shop, askers)
        assert drained not in {pod.node for pod in (*dns_pods(cluster), *shop.pods("web"), *shop.pods("db"))}
    assert became.lost <= ON_THEIR_WAY, became.problems
    assert (became.failed, became.wrong) == (0, 0), became.problems
    assert answers(askers, shop.fqdn("web-local"))[drained] == set()
    operator.run("kubectl", "uncordon", drained)
