"""dnsperf in pods asks the server and the node cache, and CoreDNS on the same nodes: everything is answered. What it
costs is printed, side by side; longer than here by DNSPERF_ROUNDS, DNSPERF_SECONDS and DNSPERF_RATE.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from statistics import median
from typing import Final, NamedTuple

import pytest

from tests.kubelab.machine import Machine
from tests.kubelab.options import CLUSTER_DNS
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place, PodView, view
from tests.support.kube.coredns import KUBEADM_COREFILE, coredns_pod
from tests.support.kube.node_caches import processes
from tests.support.kube.objects import HOSTNAME, ZONE, headless, manual_slice
from tests.support.kube.operator_commands import Operator
from tests.support.kube.server_pods import cluster_dns_pods
from tests.support.kube.upstream import OUTSIDE
from tests.support.kube.waiting import becomes

# dnsperf in a pod of DNSTOOLS_IMAGE: what became of its questions, and what they cost those who answered.

_CLIENTS: Final = 20  # source ports, so that kube-proxy leads to every pod of a Service
_QUESTIONS: Final = "/tmp/questions"
_WRITE: Final = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
_TICKS: Final = 100  # USER_HZ, a second (proc(5))


class Run(NamedTuple):
    """One run: how many were answered, with which RCODEs; `cpu` is microseconds for each of them."""

    answered: int
    lost: int
    rcodes: frozenset[str]
    rate: float
    latency: float  # milliseconds, on average
    cpu: float


def hand_questions(place: Place, pod: PodView, questions: Iterable[str]) -> None:
    """`NAME TYPE` each; this pod asks them from now on, from the first to the last and again."""
    place.run(pod, "python3", "-c", _WRITE, _QUESTIONS, "".join(f"{each}\n" for each in questions))


def dnsperf(place: Place, pod: PodView, address: str, servers: Sequence[PodView], seconds: float, rate: int) -> Run:
    """Ask this address from that pod, so many a second (0: as fast as they are answered)."""
    limit = ["-Q", str(rate)] if rate else []
    before = _cpu_seconds(place.cluster, servers)
    said = place.run(pod, "dnsperf", "-s", address, "-d", _QUESTIONS, "-c", str(_CLIENTS), "-l", f"{seconds:g}", *limit)
    spent = _cpu_seconds(place.cluster, servers) - before
    answered = int(_number(said, "Queries completed"))
    return Run(
        answered=answered,
        lost=int(_number(said, "Queries lost")),
        rcodes=frozenset(re.findall(r"([A-Z]+) \d+ \(", said)),
        rate=_number(said, "Queries per second"),
        latency=_number(said, r"Average Latency \(s\)") * 1000,
        cpu=spent / max(answered, 1) * 1e6,
    )


def _number(said: str, what: str) -> float:
    found = re.search(rf"{what}: +([0-9.]+)", said)
    assert found is not None, said
    return float(found[1])


def _cpu_seconds(cluster: Cluster, pods: Iterable[PodView]) -> float:
    """User and kernel, of all processes of these pods, to a hundredth."""
    return sum(_of_pod(cluster.lab.machine(pod.node), pod) for pod in pods)


def _of_pod(machine: Machine, pod: PodView) -> float:
    stats = machine.run("cat", *(f"/proc/{pid}/stat" for pid in processes(machine, pod))).splitlines()
    fields = (line.rpartition(")")[2].split() for line in stats)
    return sum(int(each[11]) + int(each[12]) for each in fields) / _TICKS


pytestmark = pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)

ROUNDS = int(os.environ.get("DNSPERF_ROUNDS", "1"))
SECONDS = float(os.environ.get("DNSPERF_SECONDS", "3"))
RATE = int(os.environ.get("DNSPERF_RATE", "1000"))  # questions a second; 0: as fast as they are answered

SERVICES = 20  # of each sort
ENDPOINTS = 6
NODE_CACHE = "169.254.20.10"
# The blocks of NodeLocal DNSCache's template, in a pod of their own.
CACHING = """\
cluster.local:53 {
    errors
    cache {
        success 9984 30
        denial 9984 5
    }
    forward . UPSTREAM {
        force_tcp
    }
}
.:53 {
    errors
    ready
    cache 30
    forward . /etc/resolv.conf
}
"""


class Subject(NamedTuple):
    """The server, its clients, and the pods that answer."""

    title: str
    address: str
    client: PodView
    servers: list[PodView]


@pytest.fixture(scope="module")
def questions(cluster: Cluster) -> Iterator[list[str]]:
    """Half Services, with a ClusterIP and headless with keys, half what the search path makes of names, and outside."""
    with cluster.namespace() as place:
        nodes = [cluster.nodes[i % len(cluster.nodes)] for i in range(ENDPOINTS)]
        for number in range(SERVICES):
            name = f"headless{number}"
            addresses = [(f"198.51.{100 + number}.{i + 1}", node) for i, node in enumerate(nodes)]
            virtual = headless(f"web{number}", clusterIP="")
            keyed = headless(name, f"{HOSTNAME},{ZONE},*", app="")
            place.create(virtual, keyed, manual_slice(name, name, addresses))
        services = [place.fqdn(f"{sort}{number}") for number in range(SERVICES) for sort in ("web", "headless")]
        searched = [f"{OUTSIDE}.{place.name}.svc.cluster.local", f"{OUTSIDE}.svc.cluster.local", OUTSIDE]
        names = [name for service in services for name in (service, f"{service}.svc.cluster.local")]
        yield [f"{name} {rtype}" for name, rtype in product([*names, *searched * 5], ("A", "AAAA"))]


def service_address(cluster: Cluster, name: str) -> str:
    found = cluster.read("Service", "kube-system", name)
    assert found is not None
    return str(found["spec"]["clusterIP"])


def workload_pods(cluster: Cluster, label: str) -> list[PodView]:
    return [view(pod) for pod in cluster.list("Pod", "kube-system", f"k8s-app={label}")]


class Placed(NamedTuple):
    """Two pods that ask, and the server beside the first."""

    beside: PodView
    server: PodView
    elsewhere: PodView  # on a node without a server


@pytest.fixture(scope="module")
def placed(askers: Askers, clients: Place, cluster: Cluster, questions: list[str]) -> Placed:
    servers = cluster_dns_pods(cluster)
    free = next(node for node in cluster.nodes if node not in {pod.node for pod in servers})
    placed = Placed(askers[servers[0].node].pod, servers[0], askers[free].pod)
    for pod in (placed.beside, placed.elsewhere):
        hand_questions(clients, pod, questions)
    return placed


Compare = Callable[[list[Subject]], None]


@pytest.fixture(scope="module")
def compare(clients: Place, say: Callable[[str], None]) -> Compare:
    """Ask all of them in turn, as many rounds as there are to be: everything is answered."""

    def compare(subjects: list[Subject]) -> None:
        runs: dict[str, list[Run]] = {each.title: [] for each in subjects}
        for each in subjects * ROUNDS:
            run = dnsperf(clients, each.client, each.address, each.servers, SECONDS, RATE)
            assert run.lost == 0, (each, run)
            assert run.rcodes == {"NOERROR", "NXDOMAIN"}, (each, run)
            runs[each.title].append(run)
        for title, its in runs.items():
            rate, cpu, latency = (median(getattr(run, name) for run in its) for name in ("rate", "cpu", "latency"))
            say(f"dnsperf: {title}: {rate:.0f} queries/s, each {cpu:.0f} us of CPU, answered in {latency:.2f} ms")

    return compare


def test_everything_that_dnsperf_asks_the_server_is_answered(
    cluster: Cluster, placed: Placed, compare: Compare
) -> None:
    servers, near = cluster_dns_pods(cluster), placed.server
    with coredns_pod(cluster, "coredns", KUBEADM_COREFILE, near.node) as coredns:
        compare(
            [
                Subject("topodns, same node", near.ip, placed.beside, [near]),
                Subject("CoreDNS, same node", coredns.ip, placed.beside, [coredns]),
                Subject("topodns, by ClusterIP from another node", CLUSTER_DNS, placed.elsewhere, servers),
                Subject(
                    "CoreDNS, by ClusterIP from another node",
                    service_address(cluster, "coredns"),
                    placed.elsewhere,
                    [coredns],
                ),
            ]
        )


@pytest.fixture
def node_cache(cluster: Cluster, operator: Operator, placed: Placed) -> Iterator[PodView]:
    """The one on the node without a server, switched on as docs/operate/install.md says, and off again."""
    operator.follow("docs/operate/install.md", "node-cache")
    (own,) = (pod for pod in workload_pods(cluster, "node-local-dns") if pod.node == placed.elsewhere.node)
    yield own
    operator.follow("docs/operate/install.md", "node-cache-off")
    becomes(lambda: workload_pods(cluster, "node-local-dns"), [])


def test_everything_that_dnsperf_asks_the_node_cache_is_answered(
    node_cache: PodView, cluster: Cluster, placed: Placed, compare: Compare
) -> None:
    caching = CACHING.replace("UPSTREAM", service_address(cluster, "kube-dns-upstream"))
    with coredns_pod(cluster, "coredns", caching, node_cache.node) as coredns:
        compare(
            [
                Subject("node cache", NODE_CACHE, placed.elsewhere, [node_cache]),
                Subject("node cache, at the cluster DNS's address", CLUSTER_DNS, placed.elsewhere, [node_cache]),
                Subject("CoreDNS as a cache, same node", coredns.ip, placed.elsewhere, [coredns]),
            ]
        )
