"""Messages of nftables, and which of them mean that a rule of ours may be gone."""

import struct

import pytest

from topodns.hostnet.monitor import Removed, may_concern, read_removed, removes_rule
from topodns.hostnet.rules import Firewall
from topodns.netlink.messages import Message, read_messages

NEW_RULE, DELETE_TABLE, DELETE_CHAIN, DELETE_RULE = 0xA06, 0xA02, 0xA05, 0xA08


def attribute(kind: int, text: str) -> bytes:
    value = text.encode() + b"\0"
    return struct.pack("=HH", 4 + len(value), kind) + value.ljust((len(value) + 3) // 4 * 4, b"\0")


def event(kind: int, **names: str) -> bytes:
    """A message as the kernel sends it: `table`, and `chain` where there is one."""
    at = {"table": 1, "chain": 3 if kind == DELETE_CHAIN else 2}
    body = bytes(4) + b"".join(attribute(at[what], name) for what, name in names.items())
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def removed(data: bytes) -> Removed | None:
    (message,) = read_messages(data)
    return read_removed(message)


def test_a_removed_rule_is_named_by_table_and_chain() -> None:
    assert removed(event(DELETE_RULE, table="raw", chain="OUTPUT")) == ("raw", "OUTPUT")
    assert removed(event(DELETE_CHAIN, table="raw", chain="TOPODNS-OUTPUT")) == ("raw", "TOPODNS-OUTPUT")
    assert removed(event(DELETE_TABLE, table="topodns")) == ("topodns", "")


def test_a_new_rule_is_no_removal() -> None:
    assert removed(event(NEW_RULE, table="raw", chain="OUTPUT")) is None


@pytest.mark.parametrize("body", [b"", b"\0", bytes(4), bytes(4) + b"\xff\xff\1\0"])
def test_a_message_that_is_cut_off_names_nothing(body: bytes) -> None:
    assert read_removed(Message(DELETE_RULE, body)) == ("", "")


def test_a_datagram_without_the_name_of_the_table_is_not_taken_apart() -> None:
    data = event(DELETE_RULE, table="kube-proxy", chain="services")
    assert not may_concern(data, ["topodns"])
    assert may_concern(data + event(DELETE_RULE, table="topodns", chain="output"), ["topodns"])


CONCERNS = {
    "a rule of our table": (Firewall.NFTABLES, event(DELETE_RULE, table="topodns", chain="output"), True),
    "our table": (Firewall.NFTABLES, event(DELETE_TABLE, table="topodns"), True),
    "a rule of somebody else": (Firewall.NFTABLES, event(DELETE_RULE, table="raw", chain="OUTPUT"), False),
    "a new rule of ours": (Firewall.NFTABLES, event(NEW_RULE, table="topodns", chain="output"), False),
    "a rule of our chain": (Firewall.IPTABLES, event(DELETE_RULE, table="raw", chain="TOPODNS-OUTPUT"), True),
    "perhaps a jump to it": (Firewall.IPTABLES, event(DELETE_RULE, table="filter", chain="INPUT"), True),
    "a table of iptables": (Firewall.IPTABLES, event(DELETE_TABLE, table="raw"), True),
    "a chain of kube-proxy": (Firewall.IPTABLES, event(DELETE_RULE, table="filter", chain="KUBE-FORWARD"), False),
    "another table": (Firewall.IPTABLES, event(DELETE_RULE, table="nat", chain="OUTPUT"), False),
    "among others": (
        Firewall.IPTABLES,
        event(NEW_RULE, table="nat", chain="OUTPUT") + event(DELETE_RULE, table="raw", chain="OUTPUT"),
        True,
    ),
}


@pytest.mark.parametrize(("firewall", "data", "concerned"), CONCERNS.values(), ids=CONCERNS)
def test_events_that_may_concern_our_rules_are_read(firewall: Firewall, data: bytes, concerned: bool) -> None:
    assert removes_rule(firewall, data) is concerned
