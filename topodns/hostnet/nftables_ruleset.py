"""The wished rules in nftables' language, what `nft -j list table` says of them, and what differs. Pure.

One table of the family inet holds both families, so that one transaction sets all and nobody else's flush meets it. Its
rules match the addresses of two sets, and the elements of these live for SWITCH_SECONDS. They are never written by
`nft`: a datagram of this process that carries the table's key meets a rule which renews the element of its destination,
and drops it. So a renewal is one system call of some microseconds. A transaction would wait for that of a kube-proxy,
and count up the ruleset's generation, at which whoever lists or replaces a large ruleset has to begin again.

The table has no ACCEPT rules, since an accept in one table does not overrule a drop in another (nft(8), verdicts).
"""

import json
import re
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address
from typing import Any, Final
from zlib import crc32

from topodns.edge.host_network.plan import SKIP_CONNTRACK, SWITCH_SECONDS, Hook, HostNetwork, Rule, Table, rules

FAMILY: Final = "inet"
TABLE: Final = "topodns"
KEY_LENGTH: Final = 7  # octets; with one for the order a datagram is as long as nft compares at once

_RAW_PRIORITY: Final = -300  # NF_IP_PRI_RAW of linux/netfilter_ipv4.h: before conntrack, at -200
_SETS: Final = {"listen4": "ipv4_addr", "listen6": "ipv6_addr"}
_CHAINS: Final = {"prerouting": Hook.PREROUTING, "output": Hook.OUTPUT}
_KEY_COMMENT: Final = re.compile(rf"^topodns: order \d+ of ([0-9a-f]{{{2 * KEY_LENGTH}}}) ")


class Order(IntEnum):
    """What a datagram of ours orders: the last octet of its payload."""

    RENEW = 1
    EXPIRE = 2  # in _MOMENT, a time that is more than nothing at every clock rate of a kernel
    KNOCK = 3  # nothing; only the rule is met


_MOMENT: Final = "20ms"
_WHILE: Final = f"{round(1000 * SWITCH_SECONDS)}ms"


def payload(key: bytes, order: Order) -> bytes:
    """What a datagram carries to be understood by the table with this key."""
    return key + bytes((order,))


@dataclass(frozen=True, slots=True)
class FoundTable:
    """What `nft` lists: each rule as (chain, comment) in its order; chains as name, type, hook, priority and policy."""

    rules: tuple[tuple[str, str], ...]
    chains: frozenset[tuple[str, str, str, int, str]]
    sets: frozenset[tuple[str, str]]
    key: bytes | None

    @property
    def usable(self) -> bool:
        """Whether its chains and sets are as ours: then its rules can be replaced, and what is switched on stays on."""
        wished = {(name, "filter", name, _RAW_PRIORITY, "accept") for name in _CHAINS}
        return self.chains == wished and self.sets >= set(_SETS.items())


def wished_rules(network: HostNetwork, key: bytes) -> tuple[tuple[str, str, str], ...]:
    """Each rule as (chain, text, comment), in order. The comment names the text, so that comparing it is enough."""
    orders = [("output", text, f"topodns: order {order} of {key.hex()}") for order, text in _order_rules(network, key)]
    matches = [(rule.hook.lower(), _match(rule), SKIP_CONNTRACK) for rule in rules(network) if rule.table is Table.RAW]
    return tuple(
        (chain, text, f"{comment} [{crc32(text.encode()):08x}]")
        for chain, text, comment in dict.fromkeys(orders + matches)
    )


def table_text(network: HostNetwork, key: bytes, found: FoundTable | None) -> str:
    """The input of `nft -f -` that makes the table what is wished, in one transaction; "" where it is that already.

    What is switched on stays on, except where a table is found that cannot have been ours.
    """
    wished = wished_rules(network, key)
    if found is not None and found.usable and found.rules == _in_listed_order(wished):
        return ""
    lines = [] if found is None or found.usable else _removal()
    lines += [f"add table {FAMILY} {TABLE}"]
    for name, kind in _SETS.items():
        settings = f"type {kind}; size 256; flags dynamic,timeout; timeout {_WHILE};"
        lines.append(f"add set {FAMILY} {TABLE} {name} {{ {settings} }}")
    for name in _CHAINS:
        hook = f"type filter hook {name} priority {_RAW_PRIORITY}; policy accept;"
        lines.append(f"add chain {FAMILY} {TABLE} {name} {{ {hook} }}")
        lines.append(f"flush chain {FAMILY} {TABLE} {name}")
    lines += [f'add rule {FAMILY} {TABLE} {chain} {text} comment "{comment}"' for chain, text, comment in wished]
    return "\n".join(lines) + "\n"


def trial_text(network: HostNetwork) -> str:
    """The input of `nft -f -` that fails where the kernel lacks something of all this, and changes nothing."""
    text = table_text(network, bytes(KEY_LENGTH), None) + f"delete table {FAMILY} {TABLE}\n"
    return text.replace(f" {FAMILY} {TABLE}", f" {FAMILY} {TABLE}-trial")


def switch_off_text() -> str:
    """The input of `nft -f -` after which nothing is on. It fails where there is no table."""
    return "".join(f"flush set {FAMILY} {TABLE} {name}\n" for name in _SETS)


def removal_text() -> str:
    """The input of `nft -f -` after which no table is there, whether one was or not."""
    return "\n".join(_removal()) + "\n"


def _removal() -> list[str]:
    return [f"add table {FAMILY} {TABLE}", f"delete table {FAMILY} {TABLE}"]


def parse_table(listing: str) -> FoundTable:
    """Read the output of `nft -j list table`. Raises ValueError for what is none."""
    parts = json.loads(listing)["nftables"]
    found = tuple((rule["chain"], rule.get("comment", "")) for rule in _of_kind(parts, "rule"))
    return FoundTable(
        tuple(sorted(found, key=lambda rule: rule[0])),
        frozenset(
            (
                chain["name"],
                chain.get("type", ""),
                chain.get("hook", ""),
                chain.get("prio", 0),
                chain.get("policy", "accept"),
            )
            for chain in _of_kind(parts, "chain")
        ),
        frozenset((each["name"], str(each["type"])) for each in _of_kind(parts, "set")),
        _key_of(found),
    )


def _of_kind(parts: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [part[kind] for part in parts if kind in part]


def _key_of(found: tuple[tuple[str, str], ...]) -> bytes | None:
    for _, comment in found:
        if matched := _KEY_COMMENT.match(comment):
            return bytes.fromhex(matched[1])
    return None


def _in_listed_order(wished: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(((chain, comment) for chain, _, comment in wished), key=lambda rule: rule[0]))


def _match(rule: Rule) -> str:
    """What leads here, for all addresses of its family that are on, or what an answer meets, on or off.

    What is not local (any more) stays with whoever else serves it. An answer to what came before the switch was thrown
    would make an entry of conntrack the wrong way round, which for half a minute leads to us whoever asks from that
    port.
    """
    family, listen = ("ip", "@listen4") if isinstance(rule.address, IPv4Address) else ("ip6", "@listen6")
    if rule.to:
        return f"{family} daddr {listen} {rule.protocol} dport {rule.port} fib daddr type local notrack"
    return f"{family} saddr {rule.address} {rule.protocol} sport {rule.port} notrack"


def _order_rules(network: HostNetwork, key: bytes) -> list[tuple[int, str]]:
    """What our own datagrams meet. A drop in the output hook is EPERM to the sender: the receipt."""

    def order_match(order: Order) -> str:
        return f"udp dport {network.port} udp length 16 @th,64,64 0x{payload(key, order).hex()}"

    found = [(int(Order.KNOCK), f"{order_match(Order.KNOCK)} drop")]
    for family, listen, version in (("ip", "@listen4", 4), ("ip6", "@listen6", 6)):
        addresses = ", ".join(str(address) for address in network.local_addresses if address.version == version)
        if not addresses:
            continue
        for order, time in ((Order.RENEW, _WHILE), (Order.EXPIRE, _MOMENT)):
            target = f"{family} daddr {{ {addresses} }} {order_match(order)} fib daddr type local"
            found.append((int(order), f"{target} update {listen} {{ {family} daddr timeout {time} }} drop"))
    return found
