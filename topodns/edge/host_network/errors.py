"""Why the node's network could not be set up."""

from enum import StrEnum


class ErrorKind(StrEnum):
    """The label `errortype` of coredns_nodecache_setup_errors_total. The first four are node-cache's own values."""

    IPTABLES = "iptables"
    IPTABLES_LOCK = "iptables_lock"  # somebody else held the lock of iptables for too long
    INTERFACE_ADD = "interface_add"
    INTERFACE_CHECK = "interface_check"
    NFTABLES = "nftables"
    FIREWALL = "firewall"  # neither nftables nor iptables can be had
    PERMISSION = "permission"  # CAP_NET_ADMIN is missing


class HostNetworkError(Exception):
    """What failed (`kind`), and one line for the log (`text`): what was tried, and what the system said."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
