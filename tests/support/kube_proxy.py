"""kube-proxy in iptables mode on a node: Services whose endpoints are chosen for each connection, by chance.

Chains, comments and their order are those of kube-proxy's own `iptables-save`; the names of chains are hashed as it
hashes them.
"""

import hashlib
from base64 import b32encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from subprocess import CalledProcessError
from typing import Final, NamedTuple

from tests.support.namespaced_node import Namespace

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
