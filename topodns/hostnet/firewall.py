"""The firewall of a node: nftables, iptables or none, and the choice between them. Pure: the checks are arguments."""

from collections.abc import Callable
from enum import StrEnum

from topodns.hostnet.commands import ErrorKind, HostNetworkError


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
