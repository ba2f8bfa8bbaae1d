"""The table of nftables: the rules written, the rules read back, and when these are equal."""

import json
from typing import Any

import pytest

from tests.support.host_network_builder import host_network
from topodns.hostnet.nftables_ruleset import (
    KeepaliveAction,
    desired_rules,
    parse_table,
    payload,
    removal_text,
    table_text,
    trial_text,
)
from topodns.hostnet.rules import HostNetwork

KEY = bytes.fromhex("00112233445566")
OTHER_KEY = bytes.fromhex("ffeeddccbbaa99")
BOTH = host_network("169.254.20.10,10.96.0.10,fd00::10")
IPV4 = host_network("169.254.20.10")


def listing(network: HostNetwork, key: bytes = KEY, newer: bool = False) -> list[dict[str, Any]]:
    """The listing of nft 1.0.6 when the table is as desired: chain by chain. `newer`: of nft 1.1.3."""
    chains = [
        {"chain": {"name": name, "type": "filter", "hook": name, "prio": -300, "policy": "accept"}}
        for name in ("prerouting", "output")
    ]
    sets = [
        {"set": {"name": name, "type": typeof(protocol) if newer else kind, "flags": ["timeout", "dynamic"]}}
        for name, protocol, kind in (("listen4", "ip", "ipv4_addr"), ("listen6", "ip6", "ipv6_addr"))
    ]
    rules = [
        {"rule": {"chain": chain, "comment": comment, "expr": []}} for chain, _, comment in desired_rules(network, key)
    ]
    return [{"metainfo": {}}, {"table": {"name": "topodns"}}, *sets, *chains, *rules]


def typeof(protocol: str) -> dict[str, Any]:
    return {"typeof": {"payload": {"protocol": protocol, "field": "daddr"}}}


def repair(parts: list[dict[str, Any]], network: HostNetwork = BOTH, key: bytes = KEY) -> str:
    return table_text(network, key, parse_table(json.dumps({"nftables": parts})))


def rule_texts(network: HostNetwork, chain: str) -> list[str]:
    return [text for where, text, _ in desired_rules(network, KEY) if where == chain]


def test_packets_to_a_switched_on_local_address_are_not_tracked() -> None:
    assert rule_texts(BOTH, "prerouting") == [
        "ip daddr @listen4 tcp dport 53 fib daddr type local notrack",
        "ip daddr @listen4 udp dport 53 fib daddr type local notrack",
        "ip6 daddr @listen6 tcp dport 53 fib daddr type local notrack",
        "ip6 daddr @listen6 udp dport 53 fib daddr type local notrack",
    ]


def test_nor_are_replies_clients_on_the_node_and_probes() -> None:
    assert [text for text in rule_texts(IPV4, "output") if text.endswith("notrack")] == [
        "ip saddr 169.254.20.10 tcp sport 53 notrack",
        "ip saddr 169.254.20.10 udp sport 53 notrack",
        "ip daddr @listen4 tcp dport 53 fib daddr type local notrack",
        "ip daddr @listen4 udp dport 53 fib daddr type local notrack",
        "ip daddr @listen4 tcp dport 8080 fib daddr type local notrack",
        "ip saddr 169.254.20.10 tcp sport 8080 notrack",
    ]


def test_our_orders_are_met_before_anything_else_and_dropped() -> None:
    assert rule_texts(IPV4, "output")[:3] == [
        "udp dport 53 udp length 16 @th,64,64 0x0011223344556603 drop",
        "ip daddr { 169.254.20.10 } udp dport 53 udp length 16 @th,64,64 0x0011223344556601 fib daddr type local"
        " update @listen4 { ip daddr timeout 1800ms } drop",
        "ip daddr { 169.254.20.10 } udp dport 53 udp length 16 @th,64,64 0x0011223344556602 fib daddr type local"
        " update @listen4 { ip daddr timeout 20ms } drop",
    ]


def test_an_order_is_eight_octets_long() -> None:
    assert payload(KEY, KeepaliveAction.RENEW) == bytes.fromhex("0011223344556601")


@pytest.mark.parametrize("newer", [False, True])
def test_nothing_is_done_where_all_is_as_wished(newer: bool) -> None:
    assert repair(listing(BOTH, newer=newer)) == ""


def test_no_set_is_made_by_type_which_crashes_older_programs() -> None:
    made = [line for line in table_text(BOTH, KEY, None).splitlines() if line.startswith("add set")]
    assert [line.partition(" { ")[2].partition(";")[0] for line in made] == ["typeof ip daddr", "typeof ip6 daddr"]


def test_the_order_of_chains_in_a_listing_does_not_matter() -> None:
    assert repair(sorted(listing(BOTH), key=lambda part: part.get("rule", {}).get("chain", ""))) == ""


def without(parts: list[dict[str, Any]], index: int) -> list[dict[str, Any]]:
    return parts[:index] + parts[index + 1 :]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(without(listing(BOTH), -1), id="a rule is missing"),
        pytest.param([*listing(BOTH), listing(BOTH)[-1]], id="a rule is there twice"),
        pytest.param([*listing(BOTH), {"rule": {"chain": "output", "expr": []}}], id="somebody else's rule"),
        pytest.param([*listing(BOTH)[:-2], *reversed(listing(BOTH)[-2:])], id="another order"),
        pytest.param(listing(IPV4), id="other addresses"),
        pytest.param(listing(BOTH, OTHER_KEY), id="another key"),
    ],
)
def test_other_rules_are_replaced_in_one_transaction_and_the_switch_stays_on(found: list[dict[str, Any]]) -> None:
    text = repair(found)
    assert "delete table" not in text
    assert text.index("flush chain inet topodns output") < text.index("add rule")
    assert text.count("add rule") == len(desired_rules(BOTH, KEY))


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(without(listing(BOTH), 2), id="a set is missing"),
        pytest.param(
            [*without(listing(BOTH), 2), {"set": {"name": "listen4", "type": typeof("ip6")}}],
            id="a set of another type",
        ),
        pytest.param(without(listing(BOTH), 4), id="a chain is missing"),
        pytest.param([*listing(BOTH), {"chain": {"name": "more"}}], id="a chain too many"),
        pytest.param([], id="nothing in it"),
    ],
)
def test_a_table_that_cannot_have_been_ours_is_made_anew(found: list[dict[str, Any]]) -> None:
    assert repair(found).startswith("add table inet topodns\ndelete table inet topodns\nadd table inet topodns\n")


def test_the_key_is_found_in_the_table() -> None:
    assert parse_table(json.dumps({"nftables": listing(BOTH, OTHER_KEY)})).key == OTHER_KEY
    assert parse_table(json.dumps({"nftables": []})).key is None


def test_a_comment_is_not_longer_than_nftables_takes() -> None:
    assert max(len(comment) for _, _, comment in desired_rules(BOTH, KEY)) < 128


def test_a_removal_succeeds_whether_the_table_is_there_or_not() -> None:
    assert removal_text() == "add table inet topodns\ndelete table inet topodns\n"


def test_a_trial_names_only_a_table_of_its_own_and_takes_it_away() -> None:
    text = trial_text(BOTH)
    assert text.endswith("delete table inet topodns-trial\n")
    assert " topodns " not in text.replace('"topodns: order', "")
