"""What a node cache wishes of its node's network, as values. Pure.

The rules are those of NodeLocal DNSCache: twelve for each listen address. Where kube-proxy stands behind an address
too, NOTRACK is what decides between the two: an untracked packet meets no NAT, and is delivered here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

from topodns.edge.host_network.errors import ErrorKind, HostNetworkError

IpAddress = IPv4Address | IPv6Address

SWITCH_SECONDS: Final = 2  # a switch that is not renewed for so long is off
RENEWAL_INTERVAL: Final = 0.5  # seconds; how often whoever asks itself is expected to renew

# The comments of NodeLocal DNSCache, which dashboards and runbooks look for.
SKIP_CONNTRACK: Final = "NodeLocal DNS Cache: skip conntrack"
ALLOW_DNS: Final = "NodeLocal DNS Cache: allow DNS traffic"

_MAX_INTERFACE_NAME: Final = 15  # octets; IFNAMSIZ of linux/if.h less the final zero


class Firewall(StrEnum):
    """The values of `-firewall`."""

    AUTO = "auto"  # nftables where it works, else iptables
    NFTABLES = "nftables"
    IPTABLES = "iptables"
    NONE = "none"  # no rules at all


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """What is asked for. The addresses may be of both families; `port` is that of DNS, over UDP and TCP."""

    local_addresses: tuple[IpAddress, ...]
    port: int = 53
    health_port: int = 8080
    interface: str = "nodelocaldns"
    setup_interface: bool = True
    firewall: Firewall = Firewall.AUTO


class Table(StrEnum):
    """A table of iptables. RAW is the switch; FILTER only matters where the node drops what nobody accepts."""

    RAW = "raw"
    FILTER = "filter"


class Hook(StrEnum):
    PREROUTING = "PREROUTING"
    INPUT = "INPUT"
    OUTPUT = "OUTPUT"


class Rule(NamedTuple):
    """One rule: packets `to` this address and port, or from them."""

    table: Table
    hook: Hook
    protocol: str  # "udp" or "tcp"
    to: bool
    address: IpAddress
    port: int


def rules(network: HostNetwork) -> tuple[Rule, ...]:
    """All rules: for each address the twelve of NodeLocal DNSCache, in its order."""
    return tuple(rule for address in network.local_addresses for rule in _rules_of(address, network))


def _rules_of(address: IpAddress, network: HostNetwork) -> Iterator[Rule]:
    port = network.port
    for table, hook, to in (
        (Table.RAW, Hook.PREROUTING, True),
        (Table.FILTER, Hook.INPUT, True),
        (Table.RAW, Hook.OUTPUT, False),
        (Table.FILTER, Hook.OUTPUT, False),
        (Table.RAW, Hook.OUTPUT, True),  # clients in the node's own network
    ):
        for protocol in ("tcp", "udp"):
            yield Rule(table, hook, protocol, to, address, port)
    for to in (True, False):  # kubelet's probes
        yield Rule(Table.RAW, Hook.OUTPUT, "tcp", to, address, network.health_port)


def parse_local_addresses(text: str) -> tuple[IpAddress, ...]:
    """The value of `-localip`: addresses between commas, of both families if need be, each once.

    Raises HostNetworkError for what is no address, or none that a link can carry for clients.
    """
    addresses = tuple(dict.fromkeys(_parse_address(part.strip()) for part in text.split(",") if part.strip()))
    if not addresses:
        raise HostNetworkError(ErrorKind.ADDRESS, "no address to listen on: -localip is empty")
    return addresses


def _parse_address(text: str) -> IpAddress:
    try:
        address = ip_address(text)
    except ValueError:
        raise HostNetworkError(ErrorKind.ADDRESS, f"-localip: {text!r} is not an IP address") from None
    if address.is_unspecified or address.is_multicast or _has_scope(address):
        raise HostNetworkError(ErrorKind.ADDRESS, f"-localip: {text} is no address that a link can have for clients")
    return address


def _has_scope(address: IpAddress) -> bool:
    return isinstance(address, IPv6Address) and address.scope_id is not None


def parse_interface_name(text: str) -> str:
    """The value of `-interfacename`. Raises HostNetworkError for what the kernel takes as no name."""
    unusable = text in {"", ".", ".."} or any(letter in "/:" or letter.isspace() for letter in text)
    if unusable or len(text.encode()) > _MAX_INTERFACE_NAME:
        problem = (
            f"-interfacename: {text!r} is no name of a link: 1 to {_MAX_INTERFACE_NAME} octets without / : or space"
        )
        raise HostNetworkError(ErrorKind.INTERFACE_ADD, problem)
    return text
