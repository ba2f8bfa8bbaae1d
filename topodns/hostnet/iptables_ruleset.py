"""The wished rules as iptables-restore reads them, what iptables-save says of them, and the least that mends it. Pure.

The rules stand in chains of our own, to which the built-in ones jump. Replacing the contents of a chain is one
transaction that succeeds whatever was there, so the switch can be thrown by a program that compares nothing: those of
the table raw are all there, or only the ones that answers meet (why: `nftables_text`). A rule of ours in a built-in
chain is what a NodeLocal DNSCache left behind; it would hold the traffic of our addresses for ever, and is taken away.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from topodns.edge.host_network.plan import ALLOW_DNS, SKIP_CONNTRACK, Hook, HostNetwork, Rule, Table, rules
from topodns.settings.node_cache import IPAddress

JUMP: Final = "topodns"  # the comment of the rules that lead to our chains
HOOKS: Final = {Table.RAW: (Hook.PREROUTING, Hook.OUTPUT), Table.FILTER: (Hook.INPUT, Hook.OUTPUT)}

_COMMENTS: Final = frozenset((SKIP_CONNTRACK, ALLOW_DNS))
_BUILT_IN: Final = frozenset(map(str, Hook))
_TARGETS: Final = {Table.RAW: ("NOTRACK", SKIP_CONNTRACK), Table.FILTER: ("ACCEPT", ALLOW_DNS)}


def chain_of(hook: Hook) -> str:
    """Our chain for a built-in one, in whichever table."""
    return f"TOPODNS-{hook}"


@dataclass(frozen=True, slots=True)
class SavedTable:
    """One table as iptables-save prints it: chains with their policy ("-" for one that is no built-in), and rules."""

    policies: dict[str, str]
    rules: tuple[str, ...]  # as "-A CHAIN ..."

    def rules_of(self, chain: str) -> tuple[str, ...]:
        return tuple(rule for rule in self.rules if rule.startswith(f"-A {chain} "))


def parse_save(text: str) -> dict[str, SavedTable]:
    """The tables by name. Comments and counters are left out."""
    policies: dict[str, dict[str, str]] = {}
    found: dict[str, list[str]] = {}
    table = ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = line[1:].strip()
            policies[table], found[table] = {}, []
        elif line.startswith(":") and table:
            name, policy, *_ = line[1:].split()
            policies[table][name] = policy
        elif line.startswith("-A ") and table:
            found[table].append(line.strip())
    return {name: SavedTable(policies[name], tuple(found[name])) for name in policies}


def switch_text(network: HostNetwork, version: int, on: bool) -> str:
    """Input of iptables-restore --noflush (of this IP version) that throws the switch, whatever stands there now."""
    return _restore_text(Table.RAW, _contents(network, version, Table.RAW, on))


def repair_text(network: HostNetwork, version: int, found: SavedTable | None, table: Table, on: bool) -> str:
    """Input of iptables-restore --noflush that makes this table what is wished; "" where it is that already."""
    found = found or SavedTable({}, ())
    wished = _contents(network, version, table, on)
    lines = [] if _same_contents(wished, found, table) else wished
    for hook in HOOKS[table]:
        lines += _repair_jump(found, table, hook)
    lines += [_deletion(rule) for rule in found.rules if _is_left_behind(rule, network)]
    return _restore_text(table, lines) if lines else ""


def removal_text(network: HostNetwork, found: SavedTable | None, table: Table) -> str:
    """Input of iptables-restore --noflush after which nothing of ours is in the table; "" where nothing is."""
    if found is None:
        return ""
    ours = [chain_of(hook) for hook in HOOKS[table] if chain_of(hook) in found.policies]
    lines = [_deletion(rule) for rule in found.rules if _is_jump(rule, table) or _is_left_behind(rule, network)]
    lines += [f"-F {chain}" for chain in ours] + [f"-X {chain}" for chain in ours]
    return _restore_text(table, lines) if lines else ""


def is_open(found: SavedTable | None) -> bool:
    """Whether a filter table lets everything in and out, and is as if we had never been there."""
    if found is None:
        return True
    return all(
        found.policies.get(hook, "ACCEPT") == "ACCEPT" and not found.rules_of(hook) for hook in HOOKS[Table.FILTER]
    )


def _repair_jump(found: SavedTable, table: Table, hook: Hook) -> Iterator[str]:
    """One jump, counted: a second one would let every packet pass our chain twice (kubernetes/dns#568)."""
    jumps = [rule for rule in found.rules_of(hook) if _is_jump(rule, table)]
    if len(jumps) == 1:
        return
    yield from map(_deletion, jumps)
    yield f"-I {hook} -m comment --comment {JUMP} -j {chain_of(hook)}"


def _contents(network: HostNetwork, version: int, table: Table, on: bool) -> list[str]:
    """The lines that declare our chains of a table, which empties them, and fill them again."""
    wished = [rule for rule in rules(network) if rule.table is table and rule.address.version == version]
    return [
        *(f":{chain_of(hook)} - [0:0]" for hook in HOOKS[table]),
        *(_rule_line(rule) for rule in wished if on or not rule.to),
    ]


def _rule_line(rule: Rule) -> str:
    target, comment = _TARGETS[rule.table]
    end, port = ("-d", "--dport") if rule.to else ("-s", "--sport")
    match = f"{end} {_as_saved(rule.address)} -p {rule.protocol} -m {rule.protocol} {port} {rule.port}"
    return f'-A {chain_of(rule.hook)} {match} -m comment --comment "{comment}" -j {target}'


def _restore_text(table: Table, lines: Sequence[str]) -> str:
    return "\n".join((f"*{table}", *lines, "COMMIT")) + "\n"


def _same_contents(wished: Sequence[str], found: SavedTable, table: Table) -> bool:
    chains = [chain_of(hook) for hook in HOOKS[table]]
    if any(chain not in found.policies for chain in chains):
        return False
    there = [_meaning(rule) for chain in chains for rule in found.rules_of(chain)]
    return sorted(there) == sorted(_meaning(line) for line in wished if line.startswith("-A "))


def _meaning(rule: str) -> tuple[str, ...]:
    """A rule's words without the order and the spelling that differ between versions of iptables-save."""
    words = shlex.split(rule)
    if words[-2:] == ["CT", "--notrack"]:
        words[-2:] = ["NOTRACK"]
    pairs = (" ".join(pair) for pair in zip(words[::2], words[1::2], strict=False))
    return tuple(sorted(pair for pair in pairs if not pair.startswith("-m ")))


def _is_jump(rule: str, table: Table) -> bool:
    return any(rule.endswith(f"-j {chain_of(hook)}") for hook in HOOKS[table])


def _is_left_behind(rule: str, network: HostNetwork) -> bool:
    words = shlex.split(rule)
    if words[1] not in _BUILT_IN or _COMMENTS.isdisjoint(words):
        return False
    named = {value for option, value in pairwise(words) if option in {"-d", "-s"}}
    return not named.isdisjoint(map(_as_saved, network.local_addresses))


def _as_saved(address: IPAddress) -> str:
    return f"{address}/{address.max_prefixlen}"


def _deletion(rule: str) -> str:
    return f"-D{rule[2:]}"
