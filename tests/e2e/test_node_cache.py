"""The cache on every node, from the day that an operator switches it on until it is off again: which server answers,
which answers pods get, and the state of a node before, meanwhile and afterwards.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, product
from pathlib import Path
from typing import Final

import pytest

from tests.kubelab.options import CLUSTER_DNS, CLUSTER_DNS_IPV6, FIRST_SERVICES
from tests.support.dns_messages import Reply, query
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Cluster, Place
from tests.support.kube.node_caches import (
    CAPABILITIES,
    NodeCaches,
    firewall_key,
    forget_tracked,
    link_index,
    processes,
    tracked,
    write_overlay,
)
from tests.support.kube.objects import HOSTNAME, ZONE, Object, headless, manual_slice
from tests.support.kube.operator_commands import Operator
from tests.support.kube.query_loads import Asked, Load, Outcome, load, outcome, outcome_since
from tests.support.kube.query_pods import Asker, Unanswered
from tests.support.kube.upstream import OUTSIDE
from tests.support.kube.waiting import becomes, eventually

OWN: Final = ["169.254.20.10", "fd00:169:254::10"]  # of the node cache alone
SHARED: Final = [CLUSTER_DNS, CLUSTER_DNS_IPV6]  # and of the Service of the cluster DNS
LISTENING: Final = [*SHARED, *OWN]
ASKED: Final = "kubernetes.default.svc.cluster.local A"
RATE: Final = 50  # questions a second and pod
TAKEOVER: Final = 2.0  # seconds until kube-proxy's rules count again, once ours are not renewed
MARGIN: Final = 0.5  # seconds, on a machine that has other work to do

# Only a node cache knows this name: a server that denies it is the cluster DNS.
WHO: Final = "who.node-cache.test TXT"
KNOWN_TO_CACHES: Final = """\
who.node-cache.test:53 {
    errors
    bind __PILLAR__LOCAL__DNS__
    template IN TXT {
        answer "{{ .Name }} 0 IN TXT {$NODE_NAME}"
    }
}
"""

UNDISTURBED: Final = {
    "topodns_nodecache_switched_on": 1,
    "topodns_nodecache_repairs_total": 0,
    "coredns_nodecache_setup_errors_total": 0,
}

# Prints for the query of the first argument where the replies come from, asked at the others. An unconnected socket
# takes them from any client.
SOURCES: Final = """
import socket, sys
for to in sys.argv[2:]:
    with socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(bytes.fromhex(sys.argv[1]), (to, 53))
        print(sock.recvfrom(65535)[1][0])
"""

Client = tuple[str, str]  # kind and node
Everybody = Mapping[Client, Asker]
Answering = dict[tuple[str, str, str], str]  # by kind, node and address: the node whose cache answers, "" for none


@pytest.fixture(scope="module")
def dual_stack(installed: str, operator: Operator) -> None:
    operator.follow("docs/operate/install.md", "dual-stack")


@pytest.fixture(scope="module")
def everybody(dual_stack: None, askers: Askers, host_askers: Askers) -> Everybody:
    kinds = {"pod": askers, "process": host_askers}
    return {(kind, node): asker for kind, its in kinds.items() for node, asker in its.items()}


@pytest.fixture(scope="module")
def services(cluster: Cluster) -> Iterator[Place]:
    """Headless, with an endpoint of either family on each node: `zonal` for its topology zone, `nodal` for its node."""
    with cluster.namespace("cached") as place:
        for name, key in {"zonal": ZONE, "nodal": HOSTNAME}.items():
            place.create(headless(name, key, app=""), *endpoints_of(name, cluster.nodes))
        yield place


def endpoints_of(service: str, nodes: Sequence[str]) -> list[Object]:
    made = [
        manual_slice(service, f"{service}-{family}".lower(), [(f"{prefix}{node[-1]}", node) for node in nodes], family)
        for family, prefix in {"IPv4": "198.51.100.", "IPv6": "2001:db8::"}.items()
    ]
    for endpoint in chain.from_iterable(each["endpoints"] for each in made):
        endpoint["hostname"] = f"at-{endpoint['nodeName']}"
    return made


@pytest.fixture(scope="module")
def questions(services: Place) -> list[str]:
    zonal, nodal = services.fqdn("zonal"), services.fqdn("nodal")
    names = [
        "kubernetes.default.svc.cluster.local",
        "kube-dns.kube-system.svc.cluster.local",
        zonal,
        nodal,
        f"at-node1.{zonal}",
        f"no-such.{zonal}",
        "no-such.default.svc.cluster.local",
        OUTSIDE,
        "no-such.example.org",
    ]
    others = [
        "_https._tcp.kubernetes.default.svc.cluster.local SRV",
        f"_http._tcp.{zonal} SRV",
        f"_http._tcp.{nodal} SRV",
        "1.0.96.10.in-addr.arpa PTR",
        "1.100.51.198.in-addr.arpa PTR",
        f"2.{'0.' * 23}8.b.d.0.1.0.0.2.ip6.arpa PTR",
        "99.100.51.198.in-addr.arpa PTR",
    ]
    return [*(f"{name} {qtype}" for name, qtype in product(names, ("A", "AAAA"))), *others]


def essence(reply: Reply) -> str:
    """Without parts that change by the moment: TTLs, AA, the order of records, the serial number of a SOA."""
    authority = [line.split()[0] for line in reply.authority]
    return f"{reply.rcode} {reply.data} {authority}"


def got(askers: Askers, questions: Sequence[str], to: str) -> dict[tuple[str, str], str]:
    """By node and question."""
    asked = product(askers.items(), questions)
    return {(node, question): essence(asker.ask(question, to)) for (node, asker), question in asked}


def asked_of(addresses: Sequence[str]) -> list[Asked]:
    return [Asked(ASKED, to, FIRST_SERVICES[:1]) for to in addresses]


@dataclass
class Life:
    """A load on each node from before the node caches come until they have gone, and what became of it by phase."""

    loads: Mapping[str, Load]
    say: Callable[[str], None]
    phases: dict[str, Outcome] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)

    @contextmanager
    def phase(self, what: str, *nodes: str) -> Iterator[Outcome]:
        """Of the questions on these nodes, or on all."""
        with outcome(*(self.loads[node] for node in nodes or self.loads)) as result:
            yield result
        self.phases[what] = result
        self.say(f"{what}: {result}")


@pytest.fixture(scope="module")
def before_caches(
    dual_stack: None, cluster: Cluster, operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeCaches]:
    """Set up and not switched on."""
    caches = NodeCaches(cluster, operator)
    known = tmp_path_factory.mktemp("values") / "known"
    known.write_text(KNOWN_TO_CACHES)
    own = f"nodeCache.localDns={{{','.join(OWN)}}}"
    caches.configure("--set", own, "--set-file", f"nodeCache.extraServerBlocks={known}")
    yield caches
    operator.follow("docs/operate/install.md", "dual-stack")
    caches.await_gone()


@pytest.fixture(scope="module")
def without_caches(
    before_caches: NodeCaches, askers: Askers, services: Place, questions: list[str]
) -> Mapping[tuple[str, str], str]:
    """The answers that pods get from the cluster DNS, which knows the Services."""
    eventually(lambda: known_everywhere(askers, services), "endpoints of either family are known to both servers")
    return got(askers, questions, CLUSTER_DNS)


def known_everywhere(askers: Askers, services: Place) -> bool:
    names, types = [services.fqdn(name) for name in ("zonal", "nodal")], ("A", "AAAA")
    asked = product(askers.values(), names, types, range(5))
    return all(asker.addresses(name, qtype) for asker, name, qtype, _ in asked)


@pytest.fixture(scope="module")
def life(
    without_caches: object, cluster: Cluster, askers: Askers, proxy_mode: str, say: Callable[[str], None]
) -> Iterator[Life]:
    with ExitStack() as stack:
        loads = {
            node: stack.enter_context(load(cluster.lab, asker.pod, asked_of(SHARED), RATE))
            for node, asker in askers.items()
        }
        yield Life(loads, lambda line: say(f"node cache, kube-proxy with {proxy_mode}, {line}"))


@pytest.fixture
def caches(life: Life, before_caches: NodeCaches) -> NodeCaches:
    """On every node, whatever the test before has done to them."""
    if not before_caches.settled():
        before_caches.switch_on("docs/operate/install.md", "node-cache")
    return before_caches


def answering(everybody: Everybody, addresses: Sequence[str]) -> Answering:
    """Clients without an answer are left out."""
    found = {}
    for (client, asker), address in product(everybody.items(), addresses):
        with suppress(Unanswered):
            found[(*client, address)] = "".join(asker.ask(WHO, address).data).strip('"')
    return found


def by_caches(everybody: Everybody, addresses: Sequence[str]) -> Answering:
    return {(*client, address): client[1] for client, address in product(everybody, addresses)}


def by_cluster_dns(everybody: Everybody, addresses: Sequence[str]) -> Answering:
    return dict.fromkeys(by_caches(everybody, addresses), "")


@pytest.mark.short
def test_switched_on_under_load_no_question_is_lost(
    life: Life, before_caches: NodeCaches, everybody: Everybody
) -> None:
    assert answering(everybody, SHARED) == by_cluster_dns(everybody, SHARED)
    with life.phase("switched on") as asked:
        before_caches.switch_on("docs/operate/install.md", "node-cache")
    assert (asked.lost, asked.failed) == (0, 0)


@pytest.mark.short
def test_every_question_of_a_node_is_answered_by_its_cache(caches: NodeCaches, everybody: Everybody) -> None:
    becomes(lambda: answering(everybody, LISTENING), by_caches(everybody, LISTENING))


@pytest.mark.parametrize("to", LISTENING)
def test_pods_get_the_same_answers_as_without_the_node_cache(
    caches: NodeCaches, without_caches: Mapping[tuple[str, str], str], askers: Askers, questions: list[str], to: str
) -> None:
    assert got(askers, questions, to) == without_caches


@pytest.mark.short
def test_pods_of_each_node_get_their_own_endpoints_of_the_same_name(
    caches: NodeCaches, cluster: Cluster, services: Place, everybody: Everybody
) -> None:
    zones = cluster.topology_zones
    for ((_, node), asker), to in product(everybody.items(), LISTENING):
        zone = {other[-1] for other in zones if zones[other] == zones[node]}
        assert asker.addresses(services.fqdn("zonal"), to=to) == {f"198.51.100.{number}" for number in zone}
        assert asker.addresses(services.fqdn("nodal"), "AAAA", to=to) == {f"2001:db8::{node[-1]}"}


@pytest.mark.short
def test_replies_come_from_the_address_that_was_asked(caches: NodeCaches, clients: Place, everybody: Everybody) -> None:
    for asker in everybody.values():
        sources = clients.run(asker.pod, "python3", "-c", SOURCES, query(ASKED).hex(), *LISTENING)
        assert sources.split() == LISTENING


@pytest.mark.short
def test_conntrack_knows_of_no_question_of_the_node(caches: NodeCaches, cluster: Cluster, everybody: Everybody) -> None:
    machines = [cluster.lab.machine(node) for node in cluster.nodes]
    for machine in machines:
        forget_tracked(machine, LISTENING)
    for asker, address, tcp in product(everybody.values(), LISTENING, (False, True)):
        assert asker.ask(ASKED, address, tcp=tcp).rcode == "NOERROR"
    assert [tracked(machine, LISTENING) for machine in machines] == [[]] * len(machines)


def test_the_node_cache_keeps_its_rules_and_addresses_on_a_real_node(caches: NodeCaches, cluster: Cluster) -> None:
    """Neither the kubelet nor kube-proxy, which set rules of their own."""
    for node in cluster.nodes:
        found = {name: caches.metric(node, name) for name in UNDISTURBED}
        assert found == UNDISTURBED, node


def test_it_has_two_capabilities_and_no_token(caches: NodeCaches, cluster: Cluster) -> None:
    machine, pod = cluster.lab.machine("node1"), caches.pod("node1")
    for pid in processes(machine, pod):
        status = dict(line.split(":\t", 1) for line in machine.run("cat", f"/proc/{pid}/status").splitlines())
        got = {name: int(status[name], 16) for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")}
        assert got == {"CapEff": CAPABILITIES, "CapBnd": CAPABILITIES, "NoNewPrivs": 1, "Seccomp": 2}
        mounts = [line.split() for line in machine.run("cat", f"/proc/{pid}/mounts").splitlines()]
        assert next(mount[3] for mount in mounts if mount[1] == "/").startswith("ro,")
        assert not [mount for mount in mounts if "serviceaccount" in mount[1]]


def kill(caches: NodeCaches, life: Life, asker: Asker, what: str, victim: int) -> Outcome:
    """The effect on pods of its node. `victim` counts the container's processes from its first; the kubelet looks away
    until kube-proxy has taken over.
    """
    node = asker.pod.node
    machine, own, before = caches.cluster.lab.machine(node), {("pod", node): asker}, caches.restarts(node)
    pid = processes(machine, caches.pod(node))[victim]
    machine.stop("kubelet")
    try:
        with life.phase(f"{what}killed", node) as asked:
            machine.run("kill", "-KILL", str(pid))
            becomes(lambda: answering(own, SHARED), by_cluster_dns(own, SHARED))
    finally:
        machine.start("kubelet")
    with life.phase(f"{what}started anew", node) as anew:
        eventually(lambda: caches.restarts(node) == before + 1 and caches.pod(node).ready, "it is started anew")
        becomes(lambda: answering(own, LISTENING), by_caches(own, LISTENING))
    assert (anew.lost, anew.failed) == (0, 0)
    return asked


@pytest.mark.short
def test_n09_killed_kube_proxy_takes_over_within_two_seconds_and_the_next_one_adopts(
    caches: NodeCaches, life: Life, cluster: Cluster, askers: Askers
) -> None:
    machine = cluster.lab.machine("node2")
    found = firewall_key(machine), link_index(machine)
    asked = kill(caches, life, askers["node2"], "", victim=0)
    assert asked.gap < TAKEOVER + MARGIN
    assert asked.failed == 0
    assert asked.lost < (asked.gap + MARGIN) * RATE
    assert (firewall_key(machine), link_index(machine)) == found


def test_n10_rolled_no_question_is_lost(caches: NodeCaches, life: Life, cluster: Cluster, askers: Askers) -> None:
    before = {node: caches.pod(node).name for node in cluster.nodes}
    with ExitStack() as stack:
        loads = [stack.enter_context(load(cluster.lab, each.pod, asked_of(OWN), RATE)) for each in askers.values()]
        with outcome(*loads) as own, life.phase("rolled") as asked:
            caches.roll()
    assert not {caches.pod(node).name for node in cluster.nodes} & set(before.values())
    life.say(f"rolled, at its own addresses: {own}")
    assert [(each.lost, each.failed) for each in (asked, own)] == [(0, 0)] * 2


@pytest.mark.short
def test_switched_off_it_leaves_nothing_on_any_node_and_the_cluster_dns_answers(
    caches: NodeCaches, life: Life, cluster: Cluster, everybody: Everybody
) -> None:
    assert caches.leftovers().keys() == set(cluster.nodes)
    with life.phase("switched off") as asked:
        caches.switch_off()
    assert (asked.lost, asked.failed) == (0, 0)
    assert caches.leftovers() == {}
    assert answering(everybody, SHARED) == by_cluster_dns(everybody, SHARED)
    assert all(tracked(cluster.lab.machine(node), [to]) for node, to in product(cluster.nodes, SHARED))


@pytest.mark.parametrize("proxy_mode", ["iptables"], indirect=True)
def test_with_the_other_firewall_it_is_the_same(
    life: Life, before_caches: NodeCaches, cluster: Cluster, askers: Askers, everybody: Everybody
) -> None:
    """With iptables. Without the supervisor, which is the container's first process, nothing would throw the switch."""
    caches, firewall = before_caches, "-firewall=iptables"
    caches.configure("--set", f"nodeCache.extraArgs={{{firewall}}}")
    with life.phase(f"{firewall}, switched on") as on:
        caches.switch_on("docs/operate/install.md", "node-cache-dual-stack")
    becomes(lambda: answering(everybody, LISTENING), by_caches(everybody, LISTENING))
    for node in cluster.nodes:
        forget_tracked(cluster.lab.machine(node), LISTENING)
    assert answering(everybody, LISTENING) == by_caches(everybody, LISTENING)
    assert not any(tracked(cluster.lab.machine(node), LISTENING) for node in cluster.nodes)
    asked = kill(caches, life, askers["node2"], f"{firewall}, ", victim=1)
    assert asked.gap < TAKEOVER + MARGIN
    with life.phase(f"{firewall}, switched off") as off:
        caches.switch_off()
    assert [(each.lost, each.failed) for each in (on, off)] == [(0, 0)] * 2
    assert caches.leftovers() == {}


def test_in_its_whole_life_only_being_killed_costs_anything(life: Life) -> None:
    whole = outcome_since(life.begun, *life.loads.values())
    killed = [each for what, each in life.phases.items() if what.endswith("killed")]
    assert (whole.lost, whole.failed) == (sum(each.lost for each in killed), 0)


@pytest.mark.parametrize("proxy_mode", ["nftables"], indirect=True)
def test_the_plain_manifests_bring_it_and_take_it_away(
    before_caches: NodeCaches, operator: Operator, askers: Askers, tmp_path: Path
) -> None:
    """With the overlay and the commands of docs/operate/node-cache.md."""
    write_overlay(tmp_path)
    operator.run("kubectl", "apply", "-k", str(tmp_path))
    operator.run("kubectl", "-n", "kube-system", "rollout", "status", "daemonset", "node-local-dns")
    assert {asker.ask(ASKED, to).rcode for asker, to in product(askers.values(), OWN)} == {"NOERROR"}
    operator.run("kubectl", "delete", "-k", str(tmp_path))
    before_caches.await_gone()
    assert before_caches.leftovers() == {}
