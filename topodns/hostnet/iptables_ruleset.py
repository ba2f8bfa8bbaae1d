"""The desired rules as iptables-restore input, the parsed output of iptables-save, and the minimal repair. Pure.

The rules are in chains of our own, and the built-in chains jump to them. Replacing the contents of a chain is one
transaction that succeeds whatever the chain had before, so the watchdog can switch the redirect without reading it
first. On: our chains of the raw table have all rules. Off: only those that match replies (why: see
`nftables_ruleset._match`). A rule with our comment in a built-in chain is a leftover of a NodeLocal DNSCache; it would
keep the traffic of our addresses for ever, so it is removed.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from topodns.hostnet.rules import ALLOW_DNS, SKIP_CONNTRACK, FirewallRule, Hook, HostNetwork, IptablesTable, rules
from topodns.netlink.route import IPAddress

JUMP: Final = "topodns"  # the comment of the rules that jump to our chains
HOOKS: Final = {IptablesTable.RAW: (Hook.PREROUTING, Hook.OUTPUT), IptablesTable.FILTER: (Hook.INPUT, Hook.OUTPUT)}

_COMMENTS: Final = frozenset((SKIP_CONNTRACK, ALLOW_DNS))
_BUILT_IN: Final = frozenset(map(str, Hook))
_TARGETS: Final = {IptablesTable.RAW: ("NOTRACK", SKIP_CONNTRACK), IptablesTable.FILTER: ("ACCEPT", ALLOW_DNS)}


def chain_of(hook: Hook) -> str:
    """The name of our chain for a built-in one, the same in both tables."""
    return f"TOPODNS-{hook}"


@dataclass(frozen=True, slots=True)
class SavedTable:
    """One table as iptables-save prints it: chains with their policy ("-" if not built in), and rules."""

    policies: dict[str, str]
    rules: tuple[str, ...]  # as "-A CHAIN ..."

    def rules_of(self, chain: str) -> tuple[str, ...]:
        return tuple(rule for rule in self.rules if rule.startswith(f"-A {chain} "))


def parse_save(text: str) -> dict[str, SavedTable]:
    """Parse the output of iptables-save into tables by name. Comments and counters are skipped."""
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


def redirect_text(network: HostNetwork, version: int, on: bool) -> str:
    """Input of iptables-restore --noflush that switches the redirect on or off, whatever our chains contain now."""
    return _restore_text(IptablesTable.RAW, _contents(network, version, IptablesTable.RAW, on))


def repair_text(network: HostNetwork, version: int, found: SavedTable | None, table: IptablesTable, on: bool) -> str:
    """Input of iptables-restore --noflush that brings the table to the desired state; "" if it is there already."""
    found = found or SavedTable({}, ())
    desired = _contents(network, version, table, on)
    lines = [] if _same_contents(desired, found, table) else desired
    for hook in HOOKS[table]:
        lines += _repair_jump(found, table, hook)
    lines += [_deletion(rule) for rule in found.rules if _is_left_behind(rule, network)]
    return _restore_text(table, lines) if lines else ""


def removal_text(network: HostNetwork, found: SavedTable | None, table: IptablesTable) -> str:
    """Input of iptables-restore --noflush that removes our chains and jumps, and leftovers of a NodeLocal DNSCache.

    "" if there are none.
    """
    if found is None:
        return ""
    ours = [chain_of(hook) for hook in HOOKS[table] if chain_of(hook) in found.policies]
    lines = [_deletion(rule) for rule in found.rules if _is_jump(rule, table) or _is_left_behind(rule, network)]
    lines += [f"-F {chain}" for chain in ours] + [f"-X {chain}" for chain in ours]
    return _restore_text(table, lines) if lines else ""


def is_open(found: SavedTable | None) -> bool:
    """Whether the chains INPUT and OUTPUT of a filter table (None: absent) accept everything and have no rules, so that
    we need none either.
    """
    if found is None:
        return True
    return all(
        found.policies.get(hook, "ACCEPT") == "ACCEPT" and not found.rules_of(hook)
        for hook in HOOKS[IptablesTable.FILTER]
    )


def _repair_jump(found: SavedTable, table: IptablesTable, hook: Hook) -> Iterator[str]:
    """The lines after which the hook has exactly one jump to our chain; none if it has one already.

    With a second one every packet would traverse our chain twice (kubernetes/dns#568).
    """
    jumps = [rule for rule in found.rules_of(hook) if _is_jump(rule, table)]
    if len(jumps) == 1:
        return
    yield from map(_deletion, jumps)
    yield f"-I {hook} -m comment --comment {JUMP} -j {chain_of(hook)}"


def _contents(network: HostNetwork, version: int, table: IptablesTable, on: bool) -> list[str]:
    """The lines that declare our chains of a table, which flushes them, and then add their rules; without `on`, only
    the rules that match replies.
    """
    desired = [rule for rule in rules(network) if rule.table is table and rule.address.version == version]
    return [
        *(f":{chain_of(hook)} - [0:0]" for hook in HOOKS[table]),
        *(_rule_line(rule) for rule in desired if on or not rule.to),
    ]


def _rule_line(rule: FirewallRule) -> str:
    target, comment = _TARGETS[rule.table]
    end, port = ("-d", "--dport") if rule.to else ("-s", "--sport")
    match = f"{end} {_as_saved(rule.address)} -p {rule.protocol} -m {rule.protocol} {port} {rule.port}"
    return f'-A {chain_of(rule.hook)} {match} -m comment --comment "{comment}" -j {target}'


def _restore_text(table: IptablesTable, lines: Sequence[str]) -> str:
    return "\n".join((f"*{table}", *lines, "COMMIT")) + "\n"


def _same_contents(desired: Sequence[str], found: SavedTable, table: IptablesTable) -> bool:
    chains = [chain_of(hook) for hook in HOOKS[table]]
    if any(chain not in found.policies for chain in chains):
        return False
    actual = [_canonical(rule) for chain in chains for rule in found.rules_of(chain)]
    return sorted(actual) == sorted(_canonical(line) for line in desired if line.startswith("-A "))


def _canonical(rule: str) -> tuple[str, ...]:
    """A rule in canonical form: without the order and spelling that differ between versions of iptables-save."""
    words = shlex.split(rule)
    if words[-2:] == ["CT", "--notrack"]:
        words[-2:] = ["NOTRACK"]
    pairs = (" ".join(pair) for pair in zip(words[::2], words[1::2], strict=False))
    return tuple(sorted(pair for pair in pairs if not pair.startswith("-m ")))


def _is_jump(rule: str, table: IptablesTable) -> bool:
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
