"""node-cache's DaemonSet as it ships, on nodes with kube-proxy in either mode: who answers pods, and what a node is
like before, meanwhile and afterwards.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import count, product
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.conftest import COREFILE
from tests.kubelab.lab import Lab
from tests.kubelab.options import CLUSTER_DNS, CLUSTER_DNS_IPV6, Options, node_list
from tests.support.kube.askers import Asker, Unanswered
from tests.support.kube.clients import Askers, askers_of, client_pods
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.labs import lab_of
from tests.support.kube.loads import Load, load
from tests.support.kube.nearness import of_zone
from tests.support.kube.node_caches import (
    CAPABILITIES,
    ClusterDns,
    NodeCaches,
    firewall_key,
    forget_tracked,
    link_index,
    processes,
    tracked,
)
from tests.support.kube.objects import ZONE
from tests.support.kube.servers import grant, permissions
from tests.support.kube.waiting import becomes, eventually
from tests.support.kube.whereabouts import NAME, node_told, whereabouts
from tests.support.messages import query

OWN: Final = ["169.254.20.10", "fd00:169:254::10"]  # of the node cache alone
SHARED: Final = [CLUSTER_DNS, CLUSTER_DNS_IPV6]  # and of the Service of the cluster DNS
LISTENING: Final = [*SHARED, *OWN]
ASKED: Final = "kubernetes.default.svc.cluster.local A"
RATE: Final = 50  # questions a second
TAKEOVER: Final = 2.0  # seconds until kube-proxy's rules count again, once nobody renews ours
MARGIN: Final = 0.5  # seconds, on a machine that has other work to do

UNDISTURBED: Final = {
    "topodns_nodecache_switched_on": 1,
    "topodns_nodecache_repairs_total": 0,
    "coredns_nodecache_setup_errors_total": 0,
}

# Prints for the query of the first argument where the replies come from, asked at the others. An unconnected socket
# takes them from anybody.
SOURCES: Final = """
import socket, sys
for to in sys.argv[2:]:
    with socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(bytes.fromhex(sys.argv[1]), (to, 53))
        print(sock.recvfrom(65535)[1][0])
"""

numbers = count(1)


@pytest.fixture(scope="module", params=["nftables", "iptables"])
def lab(request: pytest.FixtureRequest, topodns_image: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three nodes in zones a, a, b, with kube-proxy in this mode."""
    options = Options(node_list("a,a,b"), dual_stack=True, proxy_mode=request.param)
    with lab_of(options, tmp_path_factory.mktemp(request.param) / "lab", topodns_image) as lab:
        yield lab


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Cluster:
    cluster = Cluster(lab)
    grant(cluster, permissions("rbac.yaml"))
    return cluster


@pytest.fixture(scope="module")
def dns(cluster: Cluster) -> ClusterDns:
    return ClusterDns(cluster, COREFILE, SHARED)


@pytest.fixture(scope="module")
def clients(cluster: Cluster) -> Iterator[Place]:
    with client_pods(cluster, ZONE) as place:
        place.create(*whereabouts(cluster.nodes))
        yield place


@pytest.fixture(scope="module")
def askers(cluster: Cluster, clients: Place) -> Iterator[Askers]:
    yield from askers_of(cluster, clients, "client")


@pytest.fixture(scope="module")
def host_askers(cluster: Cluster, clients: Place) -> Iterator[Askers]:
    yield from askers_of(cluster, clients, "host-client")


@pytest.fixture(scope="module")
def everybody(askers: Askers, host_askers: Askers) -> Mapping[tuple[str, str], Asker]:
    """By kind and node."""
    kinds = {"pod": askers, "process": host_askers}
    return {(kind, node): asker for kind, its in kinds.items() for node, asker in its.items()}


@pytest.fixture(scope="module")
def before_caches(cluster: Cluster, dns: ClusterDns, tmp_path_factory: pytest.TempPathFactory) -> NodeCaches:
    return NodeCaches(cluster, tmp_path_factory.mktemp("overlay"))


@pytest.fixture
def caches(before_caches: NodeCaches) -> NodeCaches:
    """On every node, whatever the test before has done to them."""
    if not before_caches.settled():
        before_caches.install()
    return before_caches


Everybody = Mapping[tuple[str, str], Asker]


def how_asked(dns: ClusterDns, everybody: Everybody, addresses: list[str]) -> dict[tuple[str, str, str], str]:
    """By kind, node and address: how a question to this address reaches the cluster DNS; not there: unanswered."""
    names = {}
    for (kind, node), address in product(everybody, addresses):
        name = f"probe-{next(numbers)}.cluster.local"
        with suppress(Unanswered):
            everybody[kind, node].ask(f"{name} A", address)
            names[kind, node, address] = name
    eventually(lambda: set(names.values()) <= dns.protocols().keys(), "everything that was answered is logged")
    logged = dns.protocols()
    return {client: logged[name] for client, name in names.items()}


def by_cache(everybody: Everybody, addresses: list[str]) -> dict[tuple[str, str, str], str]:
    return dict.fromkeys(((*client, address) for client, address in product(everybody, addresses)), "tcp")


def by_kube_proxy(everybody: Everybody, addresses: list[str]) -> dict[tuple[str, str, str], str]:
    return dict.fromkeys(by_cache(everybody, addresses), "udp")


def test_every_question_of_a_node_goes_through_its_cache(
    caches: NodeCaches, dns: ClusterDns, everybody: Everybody
) -> None:
    becomes(lambda: how_asked(dns, everybody, LISTENING), by_cache(everybody, LISTENING))


def test_nobody_on_the_node_undoes_what_it_does_there(caches: NodeCaches, cluster: Cluster) -> None:
    """Neither the kubelet nor kube-proxy, which set rules of their own."""
    for node in cluster.nodes:
        told = {name: caches.metric(node, name) for name in UNDISTURBED}
        assert told == UNDISTURBED, node


def test_pods_of_each_node_get_their_own_endpoints_of_the_same_name(
    caches: NodeCaches, cluster: Cluster, clients: Place, askers: Askers
) -> None:
    zonal, nodal = clients.fqdn("client"), clients.fqdn(NAME)
    near = of_zone(cluster, [asker.pod for asker in askers.values()])
    assert near["node1"] == near["node2"] != near["node3"]
    becomes(lambda: {node: each.addresses(zonal) for node, each in askers.items()}, near)
    for address in LISTENING:
        assert {node: each.addresses(zonal, to=address) for node, each in askers.items()} == near
        told = {node: node_told(each.addresses(nodal, to=address), cluster.nodes) for node, each in askers.items()}
        assert told == {node: node for node in cluster.nodes}


def test_replies_come_from_the_address_that_was_asked(caches: NodeCaches, clients: Place, everybody: Everybody) -> None:
    for asker in everybody.values():
        told = clients.run(asker.pod, "python3", "-c", SOURCES, query(ASKED).hex(), *LISTENING)
        assert told.split() == LISTENING


def test_conntrack_knows_of_no_question_of_the_node(caches: NodeCaches, cluster: Cluster, everybody: Everybody) -> None:
    machines = [cluster.lab.machine(node) for node in cluster.nodes]
    for machine in machines:
        forget_tracked(machine, LISTENING)
    for asker, address, tcp in product(everybody.values(), LISTENING, (False, True)):
        assert asker.ask(ASKED, address, tcp=tcp).rcode == "NOERROR"
    assert [tracked(machine, LISTENING) for machine in machines] == [[]] * len(machines)


def test_it_has_two_capabilities_and_no_token(caches: NodeCaches, cluster: Cluster) -> None:
    machine, pod = cluster.lab.machine("node1"), caches.pod("node1")
    for pid in processes(machine, pod):
        status = dict(line.split(":\t", 1) for line in machine.run("cat", f"/proc/{pid}/status").splitlines())
        told = {name: int(status[name], 16) for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")}
        assert told == {"CapEff": CAPABILITIES, "CapBnd": CAPABILITIES, "NoNewPrivs": 1, "Seccomp": 2}
        mounts = [line.split() for line in machine.run("cat", f"/proc/{pid}/mounts").splitlines()]
        assert next(mount[3] for mount in mounts if mount[1] == "/").startswith("ro,")
        assert not [mount for mount in mounts if "serviceaccount" in mount[1]]


def node_to_kill_on(cluster: Cluster, dns: ClusterDns) -> str:
    """One without a cluster DNS, whose log only the kubelet of its node can tell."""
    return next(node for node in cluster.nodes if node not in dns.nodes())


def killed(caches: NodeCaches, dns: ClusterDns, asker: Asker, victim: int) -> Load:
    """What pods notice of it. `victim` counts the container's processes from its first; the kubelet looks away."""
    node = asker.pod.node
    machine, own = caches.cluster.lab.machine(node), {("pod", node): asker}
    pid = processes(machine, caches.pod(node))[victim]
    machine.stop("kubelet")
    try:
        with load(caches.cluster.lab, asker.pod, ASKED, SHARED, RATE) as asked:
            machine.run("kill", "-KILL", str(pid))
            becomes(lambda: how_asked(dns, own, SHARED), by_kube_proxy(own, SHARED))
    finally:
        machine.start("kubelet")
    return asked


def test_n09_killed_kube_proxy_takes_over_within_two_seconds_and_the_next_one_adopts(
    caches: NodeCaches, cluster: Cluster, dns: ClusterDns, askers: Askers
) -> None:
    node = node_to_kill_on(cluster, dns)
    machine, before = cluster.lab.machine(node), caches.restarts(node)
    found = firewall_key(machine), link_index(machine)
    asked = killed(caches, dns, askers[node], victim=0)
    assert asked.silence < TAKEOVER + MARGIN, asked
    assert asked.failed == 0, asked
    eventually(lambda: caches.restarts(node) == before + 1 and caches.pod(node).ready, "it is started anew")
    own = {("pod", node): askers[node]}
    becomes(lambda: how_asked(dns, own, LISTENING), by_cache(own, LISTENING))
    assert (firewall_key(machine), link_index(machine)) == found


def test_n10_rolled_no_question_is_lost(caches: NodeCaches, cluster: Cluster, askers: Askers) -> None:
    before = {node: caches.pod(node).name for node in cluster.nodes}
    with ExitStack() as stack:
        loads = [stack.enter_context(load(cluster.lab, each.pod, ASKED, LISTENING, RATE)) for each in askers.values()]
        caches.roll()
    assert not {caches.pod(node).name for node in cluster.nodes} & set(before.values())
    assert all(each.asked > RATE for each in loads), loads
    assert [(each.lost, each.failed) for each in loads] == [(0, 0)] * len(loads), loads


def test_removed_it_leaves_nothing_on_any_node_and_kube_proxy_answers(
    caches: NodeCaches, cluster: Cluster, dns: ClusterDns, everybody: Everybody, askers: Askers
) -> None:
    assert caches.leftovers().keys() == set(cluster.nodes)
    caches.remove()
    assert caches.leftovers() == {}
    assert how_asked(dns, everybody, SHARED) == by_kube_proxy(everybody, SHARED)
    assert all(tracked(cluster.lab.machine(node), [to]) for node, to in product(cluster.nodes, SHARED))


def test_with_iptables_it_is_the_same(
    before_caches: NodeCaches, cluster: Cluster, dns: ClusterDns, askers: Askers, everybody: Everybody, tmp_path: Path
) -> None:
    """Beyond the supervisor, which is the container's first process, nobody would throw the switch."""
    caches = NodeCaches(cluster, tmp_path, "-firewall=iptables")
    caches.install()
    becomes(lambda: how_asked(dns, everybody, LISTENING), by_cache(everybody, LISTENING))
    for node in cluster.nodes:
        forget_tracked(cluster.lab.machine(node), LISTENING)
    assert how_asked(dns, everybody, LISTENING) == by_cache(everybody, LISTENING)
    assert not any(tracked(cluster.lab.machine(node), LISTENING) for node in cluster.nodes)
    node = node_to_kill_on(cluster, dns)
    before = caches.restarts(node)
    asked = killed(caches, dns, askers[node], victim=1)
    assert asked.silence < TAKEOVER + MARGIN, asked
    eventually(lambda: caches.restarts(node) == before + 1 and caches.pod(node).ready, "it is started anew")
    caches.remove()
    assert before_caches.leftovers() == {}
