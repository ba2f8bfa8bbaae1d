"""The choice of the firewall, by -firewall and by which programs work."""

import pytest

from topodns.hostnet.commands import ErrorKind, HostNetworkError
from topodns.hostnet.firewall import Firewall, choose_firewall


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
