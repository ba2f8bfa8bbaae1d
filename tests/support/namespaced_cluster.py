"""A small cluster in network namespaces: nodes with a kube-proxy and Pods, and a place where the cluster DNS runs.

    pod (10.244.1.2) --- node (10.60.1.1) --- cluster (10.50.0.11, 10.50.0.12: two servers of the cluster DNS)

Everything is there in both families. The node is the Pods' gateway, and leads all other packets to the
cluster, which leads answers back. Needs root.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from subprocess import CalledProcessError
from typing import Final

from tests.support.kube_proxy import KubeProxy, Service
from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Namespace, namespace, set_sysctl

UPSTREAM_SERVICE: Final = {4: "10.96.0.11", 6: "fd00:96::b"}  # by which the node cache reaches the cluster DNS
SERVICES: Final = (
    Service("kube-system/kube-dns", CLUSTER_DNS),
    Service("kube-system/kube-dns-upstream", UPSTREAM_SERVICE),
)
SERVERS: Final = ({4: "10.50.0.11", 6: "fd00:50::11"}, {4: "10.50.0.12", 6: "fd00:50::12"})
OUTSIDE: Final = "10.50.0.53"  # a resolver for names outside the cluster; only some tests start one
NODES: Final = "10.60.0.0/16", "fd00:60::/32"  # what a node asks from
PODS: Final = {4: "10.244.0.0/16", 6: "fd00:244::/32"}
LISTENED: Final = (*LINK_LOCAL.values(), *CLUSTER_DNS.values())


@dataclass(frozen=True, slots=True)
class Node:
    name: str  # one of config/demo/cluster
    namespace: Namespace
    pods: tuple[Namespace, ...]
    kube_proxy: KubeProxy

    def is_tracked(self, address: str) -> bool:
        """Whether conntrack has an entry for a question to this address."""
        return bool(self.namespace.run("conntrack", f"-L -f {_family(address)} --orig-dst {address}").strip())

    def forget_tracked(self) -> None:
        """Forget the tracked queries to the listen addresses; the node cache's own connections stay as they are."""
        for address in LISTENED:
            with suppress(CalledProcessError):  # there was nothing to forget
                self.namespace.run("conntrack", f"-D -f {_family(address)} --orig-dst {address}")

    def leftovers(self) -> list[str]:
        """Things that a node cache made here and did not take away: tables, chains, rules, links, addresses."""
        where = self.namespace
        found = [line for line in where.run("nft", "list ruleset").splitlines() if "topodns" in line.lower()]
        for program in ("iptables-save", "ip6tables-save"):
            saved = where.run(program, "").splitlines()
            found += [line for line in saved if "TOPODNS" in line or "NodeLocal DNS Cache" in line]
        links = where.run("ip", "-o addr").splitlines() + where.run("ip", "-o link").splitlines()
        return found + [line for line in links if "nodelocaldns" in line]


@dataclass(frozen=True, slots=True)
class NodeScene:
    nodes: tuple[Node, ...]
    cluster: Namespace

    @property
    def node(self) -> Node:
        return self.nodes[0]

    @property
    def pod(self) -> Namespace:
        return self.nodes[0].pods[0]

    def follow(self, servers: Sequence[int]) -> None:
        """Every node's kube-proxy has these servers, by number, as the endpoints of both Services."""
        for node in self.nodes:
            node.kube_proxy.follow([address for each in servers for address in SERVERS[each].values()])

    def take_address(self, server: int) -> None:
        """The server's machine is gone: a query sent there gets no answer."""
        for version, address in SERVERS[server].items():
            self.cluster.run("ip", f"-{version} addr del {address}/{_ALONE[version]} dev lo")
            self.cluster.run("ip", f"-{version} route add blackhole {address}/{_ALONE[version]}")

    def give_address(self, server: int) -> None:
        """The opposite."""
        for version, address in SERVERS[server].items():
            self.cluster.run("ip", f"-{version} route del blackhole {address}/{_ALONE[version]}")
            self.cluster.run("ip", f"-{version} addr add {address}/{_ALONE[version]} dev lo {_NODAD[version]}")


def _family(address: str) -> str:
    return "ipv6" if ":" in address else "ipv4"


_ALONE: Final = {4: 32, 6: 128}
_NODAD: Final = {4: "", 6: "nodad"}


@contextmanager
def node_scene(*names: str, pods: int = 1) -> Iterator[NodeScene]:
    """Nodes of these names with so many Pods each, and both servers as endpoints; no process runs yet."""
    with ExitStack() as stack:
        cluster = stack.enter_context(namespace("cluster"))
        _forward(cluster)
        cluster.run("ip", f"addr add {OUTSIDE}/32 dev lo")
        for server in SERVERS:
            for version, address in server.items():
                cluster.run("ip", f"addr add {address}/{_ALONE[version]} dev lo {_NODAD[version]}")
        nodes = tuple(_node(stack, cluster, name, number, pods) for number, name in enumerate(names, 1))
        scene = NodeScene(nodes, cluster)
        scene.follow((0, 1))
        yield scene


def _node(stack: ExitStack, cluster: Namespace, name: str, number: int, pods: int) -> Node:
    node = stack.enter_context(namespace(name))
    _forward(node)
    link = {
        4: (f"10.60.{number}.1/24", f"10.60.{number}.2/24"),
        6: (f"fd00:60:{number}::1/64", f"fd00:60:{number}::2/64"),
    }
    _join(node, "out0", cluster, f"node{number}", link)
    _route(node, {version: ("default", there) for version, (_, there) in link.items()})
    _route(cluster, {4: (f"10.244.{number}.0/24", link[4][0]), 6: (f"fd00:244:{number}::/48", link[6][0])})
    made: list[Namespace] = []
    for pod in range(pods):
        inside = stack.enter_context(namespace(f"{name}-pod{pod}"))
        _forward(inside)
        pair = {
            4: (f"10.244.{number}.{4 * pod + 1}/30", f"10.244.{number}.{4 * pod + 2}/30"),
            6: (f"fd00:244:{number}:{pod}::1/64", f"fd00:244:{number}:{pod}::2/64"),
        }
        _join(node, f"pod{pod}", inside, "eth0", pair)
        _route(inside, {version: ("default", gateway) for version, (gateway, _) in pair.items()})
        made.append(inside)
    return Node(name, node, tuple(made), KubeProxy(node, SERVICES, PODS))


def _join(one: Namespace, link: str, other: Namespace, peer: str, addresses: dict[int, tuple[str, str]]) -> None:
    one.run("ip", f"link add {link} type veth peer name {peer} netns {other.name}")
    for version, pair in addresses.items():
        for where, device, address in zip((one, other), (link, peer), pair, strict=True):
            where.run("ip", f"addr add {address} dev {device} {_NODAD[version]}")
            where.run("ip", f"link set {device} up")


def _route(where: Namespace, routes: dict[int, tuple[str, str]]) -> None:
    for version, (destination, via) in routes.items():
        where.run("ip", f"-{version} route add {destination} via {via.partition('/')[0]}")


def _forward(where: Namespace) -> None:
    set_sysctl(where, "net/ipv6/conf/default/accept_dad", "0")  # else the first second has no neighbours
    set_sysctl(where, "net/ipv4/ip_forward", "1")
    set_sysctl(where, "net/ipv6/conf/all/forwarding", "1")
