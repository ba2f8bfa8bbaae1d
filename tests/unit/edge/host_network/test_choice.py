"""Which firewall is used, where the machine has none."""

from collections.abc import Iterator

import pytest

from tests.support.host_networks import host_network
from topodns.edge.host_network import programs
from topodns.edge.host_network.errors import ErrorKind, HostNetworkError
from topodns.edge.host_network.switch import choose_firewall
from topodns.settings.node_cache import Firewall


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(programs, "DIRECTORIES", ("/nonexistent",))
    programs.find_program.cache_clear()
    yield
    programs.find_program.cache_clear()


def choose(firewall: Firewall) -> Firewall:
    return choose_firewall(host_network("169.254.20.10", firewall=firewall))


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize(
    ("firewall", "kind", "complaint"),
    [
        (Firewall.AUTO, ErrorKind.FIREWALL, "neither nft nor iptables"),
        (Firewall.NFTABLES, ErrorKind.NFTABLES, "-firewall nftables"),
        (Firewall.IPTABLES, ErrorKind.IPTABLES, "-firewall iptables"),
    ],
)
def test_a_machine_without_a_firewall_is_told_so(firewall: Firewall, kind: ErrorKind, complaint: str) -> None:
    with pytest.raises(HostNetworkError, match=complaint) as refused:
        choose(firewall)
    assert refused.value.kind is kind


@pytest.mark.usefixtures("no_programs")
def test_none_needs_nothing() -> None:
    assert choose(Firewall.NONE) is Firewall.NONE
