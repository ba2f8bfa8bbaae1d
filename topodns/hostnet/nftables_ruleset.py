"""The desired rules in nftables syntax, the parsed output of `nft -j list table`, and the difference. Pure.

One table of the family inet holds both address families, so one transaction sets everything and no other program's
flush affects it. Its rules match the addresses of two sets, whose elements expire after REDIRECT_SECONDS. `nft` never
writes the elements: a keepalive datagram of this process with the table's key matches a rule that renews the set
element of its destination and drops the datagram. A renewal is thus one system call of some microseconds. A transaction
would wait for one of kube-proxy and increment the ruleset's generation, which makes every program that is listing or
replacing a large ruleset start again.

The sets are made by `typeof`, never by `type`: nft from version 1.1.2 on stores an expression for that, too, by which
nft up to 1.1.1 crashes whatever it is asked, and so does kube-proxy (kubernetes/kubernetes#136786).

The table has no ACCEPT rules, since an accept in one table does not overrule a drop in another (nft(8), verdicts).
"""

import json
import re
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address
from typing import Any, Final
from zlib import crc32

from topodns.hostnet.rules import (
    REDIRECT_SECONDS,
    SKIP_CONNTRACK,
    FirewallRule,
    Hook,
    HostNetwork,
    IptablesTable,
    rules,
)

FAMILY: Final = "inet"
TABLE: Final = "topodns"
KEY_LENGTH: Final = 7  # octets; with one for the action, the 8 octets that nft compares at once

_RAW_PRIORITY: Final = -300  # NF_IP_PRI_RAW of linux/netfilter_ipv4.h: before conntrack, at -200
_SETS: Final = {"listen4": "ip daddr", "listen6": "ip6 daddr"}
_TYPES: Final = {"ipv4_addr": "ip daddr", "ipv6_addr": "ip6 daddr"}  # as nft 1.0.6 lists these
_CHAINS: Final = {"prerouting": Hook.PREROUTING, "output": Hook.OUTPUT}
_KEY_COMMENT: Final = re.compile(rf"^topodns: order \d+ of ([0-9a-f]{{{2 * KEY_LENGTH}}}) ")


class KeepaliveAction(IntEnum):
    """The effect of a keepalive datagram: the last octet of its payload."""

    RENEW = 1
    EXPIRE = 2  # lets the element expire in _EXPIRY, which is more than 0 ticks at every kernel clock rate (CONFIG_HZ)
    CHECK = 3  # no effect: shows the sender that the rule exists


_EXPIRY: Final = "20ms"
_LIFETIME: Final = f"{round(1000 * REDIRECT_SECONDS)}ms"


def payload(key: bytes, action: KeepaliveAction) -> bytes:
    """The payload of a keepalive datagram, which the rules of the table with this key match."""
    return key + bytes((action,))


@dataclass(frozen=True, slots=True)
class FoundTable:
    """The table as nft lists it.

    `rules`: (chain, comment), in order within a chain; `chains`: (name, type, hook, priority, policy); `sets`: (name,
    expression); `key`: from the rules' comments, None if there is none.
    """

    rules: tuple[tuple[str, str], ...]
    chains: frozenset[tuple[str, str, str, int, str]]
    sets: frozenset[tuple[str, str]]
    key: bytes | None

    @property
    def usable(self) -> bool:
        """Whether the chains are exactly ours and our sets exist, so that the sets can stay when rules are replaced."""
        desired = {(name, "filter", name, _RAW_PRIORITY, "accept") for name in _CHAINS}
        return self.chains == desired and self.sets >= set(_SETS.items())


def desired_rules(network: HostNetwork, key: bytes) -> tuple[tuple[str, str, str], ...]:
    """Each rule as (chain, text, comment), in order. The comment ends in a CRC of the text: only comments are compared.

    (nft lists rule texts in another form than it reads.)
    """
    keepalives = [
        ("output", text, f"topodns: order {action} of {key.hex()}") for action, text in _keepalive_rules(network, key)
    ]
    matches = [
        (rule.hook.lower(), _match(rule), SKIP_CONNTRACK) for rule in rules(network) if rule.table is IptablesTable.RAW
    ]
    return tuple(
        (chain, text, f"{comment} [{crc32(text.encode()):08x}]")
        for chain, text, comment in dict.fromkeys(keepalives + matches)
    )


def table_text(network: HostNetwork, key: bytes, found: FoundTable | None) -> str:
    """Input of `nft -f -` that brings the table to the desired state in one transaction; "" if it is there already.

    Addresses that are switched on stay on, unless the table found has other chains than ours, or lacks a set.
    """
    desired = desired_rules(network, key)
    if found is not None and found.usable and found.rules == _in_listed_order(desired):
        return ""
    lines = [] if found is None or found.usable else _removal()
    lines += [f"add table {FAMILY} {TABLE}"]
    for name, kind in _SETS.items():
        settings = f"typeof {kind}; size 256; flags dynamic,timeout; timeout {_LIFETIME};"
        lines.append(f"add set {FAMILY} {TABLE} {name} {{ {settings} }}")
    for name in _CHAINS:
        hook = f"type filter hook {name} priority {_RAW_PRIORITY}; policy accept;"
        lines.append(f"add chain {FAMILY} {TABLE} {name} {{ {hook} }}")
        lines.append(f"flush chain {FAMILY} {TABLE} {name}")
    lines += [f'add rule {FAMILY} {TABLE} {chain} {text} comment "{comment}"' for chain, text, comment in desired]
    return "\n".join(lines) + "\n"


def trial_text(network: HostNetwork) -> str:
    """Input of `nft -f -` that fails if nft or the kernel lacks a feature we need; it changes nothing."""
    text = table_text(network, bytes(KEY_LENGTH), None) + f"delete table {FAMILY} {TABLE}\n"
    return text.replace(f" {FAMILY} {TABLE}", f" {FAMILY} {TABLE}-trial")


def switch_off_text() -> str:
    """Input of `nft -f -` that switches all addresses off. It fails if there is no table."""
    return "".join(f"flush set {FAMILY} {TABLE} {name}\n" for name in _SETS)


def removal_text() -> str:
    """Input of `nft -f -` that removes the table; it succeeds also if there is none."""
    return "\n".join(_removal()) + "\n"


def _removal() -> list[str]:
    return [f"add table {FAMILY} {TABLE}", f"delete table {FAMILY} {TABLE}"]


def parse_table(listing: str) -> FoundTable:
    """Parse the output of `nft -j list table`. Raises ValueError, KeyError or TypeError if it is malformed."""
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
        frozenset((each["name"], _expression(each["type"])) for each in _of_kind(parts, "set")),
        _key_of(found),
    )


def _expression(listed: Any) -> str:
    """The expression whose values a set has, of its type in a listing."""
    match listed:
        case {"typeof": {"payload": {"protocol": protocol, "field": field}}}:
            return f"{protocol} {field}"
    return _TYPES.get(str(listed), str(listed))


def _of_kind(parts: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [part[kind] for part in parts if kind in part]


def _key_of(found: tuple[tuple[str, str], ...]) -> bytes | None:
    for _, comment in found:
        if matched := _KEY_COMMENT.match(comment):
            return bytes.fromhex(matched[1])
    return None


def _in_listed_order(desired: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(((chain, comment) for chain, _, comment in desired), key=lambda rule: rule[0]))


def _match(rule: FirewallRule) -> str:
    """The text of a NOTRACK rule: for queries to any address of its family that is on, or for replies, on or off.

    Queries to an address that is not (or no longer) local are left to kube-proxy. Replies are untracked even while the
    redirect is off: a tracked reply to an untracked query would create a conntrack entry in the wrong direction, which
    for 30 seconds would send queries from that client port to us.
    """
    family, listen = ("ip", "@listen4") if isinstance(rule.address, IPv4Address) else ("ip6", "@listen6")
    if rule.to:
        return f"{family} daddr {listen} {rule.protocol} dport {rule.port} fib daddr type local notrack"
    return f"{family} saddr {rule.address} {rule.protocol} sport {rule.port} notrack"


def _keepalive_rules(network: HostNetwork, key: bytes) -> list[tuple[int, str]]:
    """The rules for our keepalive datagrams: (action, text) pairs.

    A drop in the output hook is EPERM for the sender, which is the acknowledgement.
    """

    def match_action(action: KeepaliveAction) -> str:
        return f"udp dport {network.port} udp length 16 @th,64,64 0x{payload(key, action).hex()}"

    found = [(int(KeepaliveAction.CHECK), f"{match_action(KeepaliveAction.CHECK)} drop")]
    for family, listen, version in (("ip", "@listen4", 4), ("ip6", "@listen6", 6)):
        addresses = ", ".join(str(address) for address in network.local_addresses if address.version == version)
        if not addresses:
            continue
        for action, time in ((KeepaliveAction.RENEW, _LIFETIME), (KeepaliveAction.EXPIRE, _EXPIRY)):
            target = f"{family} daddr {{ {addresses} }} {match_action(action)} fib daddr type local"
            found.append((int(action), f"{target} update {listen} {{ {family} daddr timeout {time} }} drop"))
    return found
