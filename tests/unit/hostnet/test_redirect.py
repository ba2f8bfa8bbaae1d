"""The firewall of a machine with missing or incomplete programs, and the order of a release with a watchdog."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.host_network_builder import host_network
from topodns.hostnet import commands as programs
from topodns.hostnet import iptables
from topodns.hostnet.commands import ErrorKind, HostNetworkError
from topodns.hostnet.nftables import read_table
from topodns.hostnet.redirect import IptablesRedirect, find_firewall
from topodns.hostnet.rules import Firewall
from topodns.hostnet.watchdog import LEAVE


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(programs, "DIRECTORIES", ("/nonexistent",))
    programs.find_program.cache_clear()
    yield
    programs.find_program.cache_clear()


def choose(firewall: Firewall) -> Firewall:
    return find_firewall(host_network("169.254.20.10", firewall=firewall))


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize(
    ("firewall", "kind", "complaint"),
    [
        (Firewall.AUTO, ErrorKind.FIREWALL, "neither nft nor iptables"),
        (Firewall.NFTABLES, ErrorKind.NFTABLES, "-firewall nftables"),
        (Firewall.IPTABLES, ErrorKind.IPTABLES, "-firewall iptables"),
    ],
)
def test_a_machine_without_a_firewall_is_refused_with_the_reason(
    firewall: Firewall, kind: ErrorKind, complaint: str
) -> None:
    with pytest.raises(HostNetworkError, match=complaint) as refused:
        choose(firewall)
    assert refused.value.kind is kind


@pytest.mark.usefixtures("no_programs")
def test_none_needs_nothing() -> None:
    assert choose(Firewall.NONE) is Firewall.NONE


@pytest.fixture
def nft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program `nft` of the test, which has to be written; there is no other."""
    monkeypatch.setattr(programs, "DIRECTORIES", (str(tmp_path),))
    programs.find_program.cache_clear()
    path = tmp_path / "nft"
    path.touch(0o755)
    yield path
    programs.find_program.cache_clear()


@pytest.mark.parametrize("printed", ["", "{", "[]", '{"nftables": [{"rule": {}}]}', '{"nftables": 1}'])
def test_output_that_is_no_listing_is_a_fault_of_nft(nft: Path, printed: str) -> None:
    nft.write_text(f"#!/bin/sh\ncat >/dev/null\nprintf '%s' '{printed}'\n")
    with pytest.raises(HostNetworkError, match="no listing") as refused:
        read_table()
    assert refused.value.kind is ErrorKind.NFTABLES


def test_an_nft_that_was_built_without_json_does_not_work(nft: Path) -> None:
    nft.write_text('#!/bin/sh\ncase "$1" in -j) exit 1;; esac\ncat >/dev/null\n')
    with pytest.raises(HostNetworkError, match="neither nft nor iptables"):
        choose(Firewall.AUTO)


def test_the_watchdog_gets_leave_only_after_the_rules_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this process ended before, the watchdog would have to switch off."""
    received, heartbeat = os.pipe()
    os.set_blocking(received, False)
    received_before: list[bytes] = []

    def switch_off(*_: object) -> list[str]:
        with pytest.raises(BlockingIOError):
            received_before.append(os.read(received, 1))
        return []

    monkeypatch.setattr(iptables, "find_all_tools", lambda network: ())
    monkeypatch.setattr(iptables, "switch_off", switch_off)
    redirect = IptablesRedirect(host_network("169.254.20.10"), heartbeat, already_on=False)
    assert redirect.release() == []
    assert (received_before, os.read(received, 1)) == ([], LEAVE)
    for end in (received, heartbeat):
        os.close(end)
