"""A node cache's desired network, from addresses as text."""

from ipaddress import ip_address

from topodns.hostnet.rules import Firewall, HostNetwork


def host_network(addresses: str, firewall: Firewall = Firewall.AUTO) -> HostNetwork:
    """The addresses have commas between them."""
    return HostNetwork(tuple(map(ip_address, addresses.split(","))), firewall=firewall)
