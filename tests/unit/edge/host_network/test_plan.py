"""What is wished: the twelve rules of NodeLocal DNSCache for each address, and the flags that say which."""

from ipaddress import ip_address

import pytest

from topodns.edge.host_network.errors import ErrorKind, HostNetworkError
from topodns.edge.host_network.plan import (
    HostNetwork,
    Rule,
    Table,
    parse_interface_name,
    parse_local_addresses,
    rules,
)

IPV4, IPV6 = ip_address("169.254.20.10"), ip_address("fd00::10")


def shown(rule: Rule) -> str:
    end = "to" if rule.to else "from"
    return f"{rule.table} {rule.hook} {rule.protocol} {end} {rule.address} {rule.port}"


def test_an_address_has_the_twelve_rules_of_nodelocal_dnscache_in_its_order() -> None:
    assert [shown(rule) for rule in rules(HostNetwork((IPV4,)))] == [
        "raw PREROUTING tcp to 169.254.20.10 53",
        "raw PREROUTING udp to 169.254.20.10 53",
        "filter INPUT tcp to 169.254.20.10 53",
        "filter INPUT udp to 169.254.20.10 53",
        "raw OUTPUT tcp from 169.254.20.10 53",
        "raw OUTPUT udp from 169.254.20.10 53",
        "filter OUTPUT tcp from 169.254.20.10 53",
        "filter OUTPUT udp from 169.254.20.10 53",
        "raw OUTPUT tcp to 169.254.20.10 53",
        "raw OUTPUT udp to 169.254.20.10 53",
        "raw OUTPUT tcp to 169.254.20.10 8080",
        "raw OUTPUT tcp from 169.254.20.10 8080",
    ]


def test_both_families_stand_side_by_side_and_ports_follow_the_flags() -> None:
    found = rules(HostNetwork((IPV4, IPV6), port=5353, health_port=8081))
    assert len(found) == 24
    assert {rule.address.version for rule in found} == {4, 6}
    assert {rule.port for rule in found} == {5353, 8081}
    assert all(rule.table is Table.RAW for rule in found if rule.port == 8081)


def test_local_addresses_are_a_list_between_commas_each_once() -> None:
    assert parse_local_addresses("169.254.20.10, fd00::10,169.254.20.10,") == (IPV4, IPV6)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "-localip is empty"),
        (" , ", "-localip is empty"),
        ("169.254.20.300", "'169.254.20.300' is not an IP address"),
        ("169.254.20.10/32", "is not an IP address"),
        ("kube-dns", "'kube-dns' is not an IP address"),
        ("169.254.20.10 10.96.0.10", "is not an IP address"),
        ("0.0.0.0", "0.0.0.0 is no address that a link can have"),
        ("224.0.0.251", "224.0.0.251 is no address that a link can have"),
        ("fe80::1%eth0", "fe80::1%eth0 is no address that a link can have"),
    ],
)
def test_what_is_no_address_to_listen_on_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(HostNetworkError, match=complaint) as refused:
        parse_local_addresses(text)
    assert refused.value.kind is ErrorKind.ADDRESS


@pytest.mark.parametrize("text", ["", ".", "a name", "eth0/1", "sixteen-letters-"])
def test_what_the_kernel_takes_as_no_name_of_a_link_is_refused(text: str) -> None:
    with pytest.raises(HostNetworkError, match="no name of a link"):
        parse_interface_name(text)


def test_a_name_of_fifteen_octets_is_taken() -> None:
    assert parse_interface_name("nodelocaldns-v6") == "nodelocaldns-v6"


def test_kinds_of_errors_hold_the_values_that_node_cache_publishes() -> None:
    assert {"iptables", "iptables_lock", "interface_add", "interface_check"} <= set(map(str, ErrorKind))
