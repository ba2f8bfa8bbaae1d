"""Warnings to an operator about the node (N19)."""

import json

import pytest

from topodns.hostnet import node_checks
from topodns.hostnet.commands import ProgramResult
from topodns.hostnet.node_checks import check_node, dropping_chains, notices


def test_n19_an_ordinary_node_is_not_worth_a_word() -> None:
    assert notices(["lo", "eth0", "nodelocaldns"], []) == ()


def test_n19_ipvs_holds_the_cluster_dns_address() -> None:
    (line,) = notices(["lo", "kube-ipvs0"], [])
    assert "IPVS" in line
    assert "--cluster-dns" in line


def test_n19_cilium_needs_a_redirect_policy() -> None:
    (line,) = notices(["cilium_net", "cilium_host"], [])
    assert "cilium_host" in line
    assert "CiliumLocalRedirectPolicy" in line


def chain(family: str, table: str, name: str, hook: str, policy: str) -> dict[str, object]:
    return {"chain": {"family": family, "table": table, "name": name, "hook": hook, "policy": policy}}


def test_n19_a_table_that_drops_by_default_is_named() -> None:
    chains = [
        chain("inet", "host", "incoming", "input", "drop"),
        chain("inet", "host", "through", "forward", "drop"),
        chain("inet", "other", "incoming", "input", "accept"),
        chain("ip", "filter", "INPUT", "input", "drop"),  # iptables: there we accept
        {"chain": {"family": "inet", "table": "host", "name": "plain"}},
    ]
    found = dropping_chains(json.dumps({"nftables": [{"metainfo": {}}, *chains]}))
    assert found == ("chain incoming of the nftables table inet host",)
    assert "cannot overrule" in notices([], found)[0]


@pytest.mark.parametrize("printed", ["", "{", "[]", "1", "{}"])
def test_output_of_nft_that_is_no_listing_is_no_warning(monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    monkeypatch.setattr(node_checks, "find_program", lambda _: "nft")
    monkeypatch.setattr(node_checks, "run", lambda _: ProgramResult(0, printed, ""))
    assert not [line for line in check_node() if "nftables table" in line]
