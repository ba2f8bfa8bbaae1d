"""The desired rules: the twelve rules of NodeLocal DNSCache for each address, and the flags that decide them."""

from ipaddress import ip_address

import pytest

from topodns.hostnet.commands import ErrorKind, HostNetworkError
from topodns.hostnet.rules import Firewall, FirewallRule, HostNetwork, IptablesTable, choose_firewall, rules

IPV4, IPV6 = ip_address("169.254.20.10"), ip_address("fd00::10")


def shown(rule: FirewallRule) -> str:
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


def test_both_families_have_rules_and_ports_follow_the_flags() -> None:
    found = rules(HostNetwork((IPV4, IPV6), port=5353, health_port=8081))
    assert len(found) == 24
    assert {rule.address.version for rule in found} == {4, 6}
    assert {rule.port for rule in found} == {5353, 8081}
    assert all(rule.table is IptablesTable.RAW for rule in found if rule.port == 8081)


def test_kinds_of_errors_hold_the_values_that_node_cache_publishes() -> None:
    assert {"iptables", "iptables_lock", "interface_add", "interface_check"} <= set(map(str, ErrorKind))


def choose(requested: Firewall, nftables: bool, iptables: bool) -> tuple[Firewall, list[str]]:
    """The chosen firewall, and the checks that were made."""
    checks: list[str] = []

    def check(name: str, works: bool) -> bool:
        checks.append(name)
        return works

    chosen = choose_firewall(requested, lambda: check("nftables", nftables), lambda: check("iptables", iptables))
    return chosen, checks


@pytest.mark.parametrize(
    ("requested", "nftables", "iptables", "chosen", "checks"),
    [
        (Firewall.AUTO, True, True, Firewall.NFTABLES, ["nftables"]),
        (Firewall.AUTO, False, True, Firewall.IPTABLES, ["nftables", "iptables"]),
        (Firewall.NFTABLES, True, True, Firewall.NFTABLES, ["nftables"]),
        (Firewall.IPTABLES, True, True, Firewall.IPTABLES, ["iptables"]),
        (Firewall.NONE, False, False, Firewall.NONE, []),
    ],
)
def test_auto_prefers_nftables_and_only_the_checks_that_matter_are_made(
    requested: Firewall, nftables: bool, iptables: bool, chosen: Firewall, checks: list[str]
) -> None:
    assert choose(requested, nftables, iptables) == (chosen, checks)


@pytest.mark.parametrize(
    ("requested", "nftables", "iptables", "kind"),
    [
        (Firewall.AUTO, False, False, ErrorKind.FIREWALL),
        (Firewall.NFTABLES, False, True, ErrorKind.NFTABLES),
        (Firewall.IPTABLES, True, False, ErrorKind.IPTABLES),
    ],
)
def test_no_other_firewall_replaces_a_requested_one_that_does_not_work(
    requested: Firewall, nftables: bool, iptables: bool, kind: ErrorKind
) -> None:
    with pytest.raises(HostNetworkError) as refused:
        choose(requested, nftables, iptables)
    assert refused.value.kind is kind
