"""A small cluster in network namespaces: nodes with a kube-proxy and Pods, and a place where the cluster DNS runs.

    pod (10.244.1.2) --- node (10.60.1.1) --- cluster (10.50.0.11, 10.50.0.12: two servers of the cluster DNS)

Everything is there in both families. The node is the Pods' gateway, and leads all other packets to the
cluster, which leads answers back. Needs root.
"""

import hashlib
from base64 import b32encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from subprocess import CalledProcessError
from typing import Final, NamedTuple

from tests.support.namespaced_node import CLUSTER_DNS, LINK_LOCAL, Namespace, namespace, set_sysctl

# kube-proxy in iptables mode on a node: Services whose endpoints are chosen for each connection, by chance. Chains,
# comments and their order are those of kube-proxy's own `iptables-save`; the names of chains are hashed as it hashes
# them.

PORTS: Final = (("dns", "udp"), ("dns-tcp", "tcp"))

_NAT_HOOKS: Final = (
    '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    '-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    '-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
)
_FILTER_HOOKS: Final = tuple(
    f'-A {hook} -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES'
    for hook in ("INPUT", "FORWARD", "OUTPUT")
)
_OWN_CHAINS: Final = (
    "-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000",
    "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
    "-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000",
    '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
)


class Service(NamedTuple):
    """A Service for DNS, with port 53 over UDP and TCP, and one address of each IP version."""

    name: str  # kube-system/kube-dns
    addresses: Mapping[int, str]  # by IP version


class KubeProxy:
    """Rules of these Services, which all have the same endpoints: addresses of both families. None at first."""

    def __init__(self, node: Namespace, services: Sequence[Service], pods: Mapping[int, str]) -> None:
        """`pods` are the prefixes that Pods are in: clients elsewhere are hidden behind the node's address."""
        self._node, self._services, self._pods = node, services, pods
        self._begun: set[int] = set()
        self._endpoints: Sequence[str] = ()
        self.follow(())

    def follow(self, endpoints: Sequence[str]) -> None:
        """From now on these are the endpoints; entries of UDP that lead to others are forgotten, as kube-proxy does."""
        for version, program in ((4, "iptables-restore"), (6, "ip6tables-restore")):
            mine = [each for each in endpoints if ip_address(each).version == version]
            self._node.run(program, "--noflush -w 5", "\n".join(self._text(version, mine)) + "\n")
            self._begun.add(version)
        gone, self._endpoints = set(self._endpoints) - set(endpoints), endpoints
        for each in gone:
            family = "ipv6" if ":" in each else "ipv4"
            with suppress(CalledProcessError):  # there were none
                self._node.run("conntrack", f"-D -f {family} -p udp --reply-src {each}")

    def _text(self, version: int, endpoints: Sequence[str]) -> Iterator[str]:
        nat = [rule for service in self._services for rule in self._service_rules(service, version, endpoints)]
        refused = [] if endpoints else [rule for service in self._services for rule in _refusals(service, version)]
        first = version not in self._begun
        chains = dict.fromkeys(rule.split()[1] for rule in (*_OWN_CHAINS, *nat))
        yield from ("*nat", *(f":{chain} - [0:0]" for chain in chains), ":KUBE-SERVICES - [0:0]")
        yield from (*(_NAT_HOOKS if first else ()), *_OWN_CHAINS, *nat)
        yield from (
            "COMMIT",
            "*filter",
            ":KUBE-SERVICES - [0:0]",
            *(_FILTER_HOOKS if first else ()),
            *refused,
            "COMMIT",
        )

    def _service_rules(self, service: Service, version: int, endpoints: Sequence[str]) -> Iterator[str]:
        for port, protocol in PORTS if endpoints else ():
            name = f"{service.name}:{port}"
            chain = chain_name("SVC", name, protocol)
            asked = (
                f'-d {service.addresses[version]} -p {protocol} -m comment --comment "{name} cluster IP"'
                f" -m {protocol} --dport 53"
            )
            yield f"-A KUBE-SERVICES {asked} -j {chain}"
            yield f"-A {chain} ! -s {self._pods[version]} {asked} -j KUBE-MARK-MASQ"
            for number, endpoint in enumerate(endpoints):
                yield from _endpoint_rules(name, protocol, chain, endpoint, len(endpoints) - number)


def _refusals(service: Service, version: int) -> Iterator[str]:
    for port, protocol in PORTS:
        comment = f'"{service.name}:{port} has no endpoints"'
        to = f"-d {service.addresses[version]} -p {protocol} -m comment --comment {comment} -m {protocol} --dport 53"
        yield f"-A KUBE-SERVICES {to} -j REJECT"


def _endpoint_rules(name: str, protocol: str, chain: str, endpoint: str, left: int) -> Iterator[str]:
    """`left` endpoints share the connections of the first of them: the last one takes all that are left."""
    to = _with_port(endpoint)
    own = chain_name("SEP", name, protocol, to)
    chance = f" -m statistic --mode random --probability {1 / left:.11f}" if left > 1 else ""
    yield f'-A {chain} -m comment --comment "{name} -> {to}"{chance} -j {own}'
    yield f'-A {own} -s {endpoint} -m comment --comment "{name}" -j KUBE-MARK-MASQ'
    yield f'-A {own} -p {protocol} -m comment --comment "{name}" -m {protocol} -j DNAT --to-destination {to}'


def _with_port(endpoint: str) -> str:
    return f"[{endpoint}]:53" if ":" in endpoint else f"{endpoint}:53"


def chain_name(sort: str, port_name: str, protocol: str, endpoint: str = "") -> str:
    """`sort` is SVC or SEP; the chain of kube-dns's dns over UDP is KUBE-SVC-TCOU7JCQXEZGVUNU in every cluster."""
    digest = hashlib.sha256(f"{port_name}{protocol}{endpoint}".encode()).digest()
    return f"KUBE-{sort}-{b32encode(digest).decode()[:16]}"


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
