"""What a node cache wishes of its node's network, as values. Pure.

The rules are those of NodeLocal DNSCache: twelve for each listen address. Where kube-proxy stands behind an address
too, NOTRACK is what decides between the two: an untracked packet meets no NAT, and is delivered here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from topodns.settings.node_cache import Firewall, IPAddress

SWITCH_SECONDS: Final = 1.8  # a switch that is not renewed for so long is off: a pod has its answer within 2
RENEWAL_INTERVAL: Final = 0.5  # seconds; how often whoever asks itself is expected to renew

# The comments of NodeLocal DNSCache, which dashboards and runbooks look for.
SKIP_CONNTRACK: Final = "NodeLocal DNS Cache: skip conntrack"
ALLOW_DNS: Final = "NodeLocal DNS Cache: allow DNS traffic"


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """What is asked for. The addresses may be of both families; `port` is that of DNS, over UDP and TCP."""

    local_addresses: tuple[IPAddress, ...]
    port: int = 53
    health_port: int = 8080
    interface: str = "nodelocaldns"
    setup_interface: bool = True
    firewall: Firewall = Firewall.AUTO
    sync_interval: float = 60.0  # seconds between two looks at everything; longer than a few is as a few


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
    address: IPAddress
    port: int


def rules(network: HostNetwork) -> tuple[Rule, ...]:
    """All rules: for each address the twelve of NodeLocal DNSCache, in its order."""
    return tuple(rule for address in network.local_addresses for rule in _rules_of(address, network))


def _rules_of(address: IPAddress, network: HostNetwork) -> Iterator[Rule]:
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
