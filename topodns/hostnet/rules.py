"""The desired state of a node's network, as values. Pure.

The rules are those of NodeLocal DNSCache: twelve for each listen address. If kube-proxy serves the same address,
NOTRACK decides between the two: an untracked packet passes no NAT, so it is delivered here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from topodns.hostnet.firewall import Firewall
from topodns.netlink.route import IPAddress

REDIRECT_SECONDS: Final = 1.8  # lifetime of the redirect without renewal, so that a Pod gets its reply within 2 seconds
RENEWAL_INTERVAL: Final = 0.5  # seconds between renewals, one after each successful self-probe

# The comments of NodeLocal DNSCache, which dashboards and runbooks look for.
SKIP_CONNTRACK: Final = "NodeLocal DNS Cache: skip conntrack"
ALLOW_DNS: Final = "NodeLocal DNS Cache: allow DNS traffic"


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """The settings of the node's network. The addresses may be of both families; `port` is for DNS over UDP and TCP."""

    local_addresses: tuple[IPAddress, ...]
    port: int = 53
    health_port: int = 8080
    interface: str = "nodelocaldns"
    setup_interface: bool = True
    firewall: Firewall = Firewall.AUTO
    sync_interval: float = 60.0  # seconds between two full comparisons; capped at `reconciler.MAX_SYNC_INTERVAL`


class IptablesTable(StrEnum):
    """An iptables table. RAW redirects queries here; FILTER only matters if the node drops packets by default."""

    RAW = "raw"
    FILTER = "filter"


class Hook(StrEnum):
    PREROUTING = "PREROUTING"
    INPUT = "INPUT"
    OUTPUT = "OUTPUT"


class FirewallRule(NamedTuple):
    """One rule for one protocol: for packets to this address and port, or if not `to`, from them."""

    table: IptablesTable
    hook: Hook
    protocol: str  # "udp" or "tcp"
    to: bool
    address: IPAddress
    port: int


def rules(network: HostNetwork) -> tuple[FirewallRule, ...]:
    """All rules: for each address the twelve of NodeLocal DNSCache, in its order."""
    return tuple(rule for address in network.local_addresses for rule in _rules_of(address, network))


def _rules_of(address: IPAddress, network: HostNetwork) -> Iterator[FirewallRule]:
    port = network.port
    for table, hook, to in (
        (IptablesTable.RAW, Hook.PREROUTING, True),
        (IptablesTable.FILTER, Hook.INPUT, True),
        (IptablesTable.RAW, Hook.OUTPUT, False),
        (IptablesTable.FILTER, Hook.OUTPUT, False),
        (IptablesTable.RAW, Hook.OUTPUT, True),  # clients in the node's own network
    ):
        for protocol in ("tcp", "udp"):
            yield FirewallRule(table, hook, protocol, to, address, port)
    for to in (True, False):  # kubelet's probes
        yield FirewallRule(IptablesTable.RAW, Hook.OUTPUT, "tcp", to, address, network.health_port)
