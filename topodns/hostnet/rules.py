"""The desired state of a node's network, as values, and the choice between nftables, iptables and none. Pure.

The rules are those of NodeLocal DNSCache: twelve for each listen address. If kube-proxy serves the same address,
NOTRACK decides between the two: an untracked packet passes no NAT, so it is delivered here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from topodns.hostnet.commands import ErrorKind, HostNetworkError
from topodns.netlink.route import IPAddress


class Firewall(StrEnum):
    """The program that keeps packets out of conntrack; the values are those of `-firewall`."""

    AUTO = "auto"  # nftables where `nft` works, else iptables
    NFTABLES = "nftables"
    IPTABLES = "iptables"
    NONE = "none"  # also what -setupiptables=false means


def choose_firewall(
    requested: Firewall, nftables_works: Callable[[], bool], iptables_works: Callable[[], bool]
) -> Firewall:
    """The firewall to use for the value of `-firewall`: NFTABLES, IPTABLES or NONE.

    The checks are called only if the choice depends on them. Raises HostNetworkError if the requested firewall (of
    AUTO: either) does not work, and whatever the checks raise.
    """
    match requested:
        case Firewall.AUTO:
            if nftables_works():
                return Firewall.NFTABLES
            if iptables_works():
                return Firewall.IPTABLES
            problem = "neither nft nor iptables can set rules here (-firewall none does without)"
            raise HostNetworkError(ErrorKind.FIREWALL, problem)
        case Firewall.NFTABLES if not nftables_works():
            raise HostNetworkError(ErrorKind.NFTABLES, "-firewall nftables: nft cannot set rules here")
        case Firewall.IPTABLES if not iptables_works():
            raise HostNetworkError(ErrorKind.IPTABLES, "-firewall iptables: iptables cannot set rules here")
    return requested


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
