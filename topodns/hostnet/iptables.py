"""Our chains in iptables and ip6tables, managed through iptables-save and iptables-restore.

A machine may have both the legacy and the nft variant, whose rules are separate. We use the variant that Kubernetes
uses on this node, detected by the chains that KEP-3178 defines for this.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from topodns.hostnet.commands import ErrorKind, HostNetworkError, ProgramResult, find_program, not_permitted, run
from topodns.hostnet.iptables_ruleset import (
    HOOKS,
    SavedTable,
    chain_of,
    is_open,
    parse_save,
    redirect_text,
    removal_text,
    repair_text,
)
from topodns.hostnet.rules import HostNetwork, IptablesTable

LOCK_PATIENCE: Final = 1  # seconds to wait for the xtables lock; an integer, since old versions accept no fraction
# The xtables lock is an advisory file lock. If it is held for too long at shutdown, a leftover rule of ours would cut
# this node off from DNS (kubernetes/dns#453), so the raw table is written without it; few other programs write to it.
WITHOUT_LOCK: Final = {"XTABLES_LOCKFILE": "/dev/null"}

_LOCKED: Final = ("xtables lock", "xtables.lock")  # in the error messages of the two variants
_KUBERNETES_CHAINS: Final = ("KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY")
_LEGACY_TABLES: Final = {4: Path("/proc/net/ip_tables_names"), 6: Path("/proc/net/ip6_tables_names")}


class Tools(NamedTuple):
    """The iptables programs for one IP version (4 or 6), by absolute path."""

    version: int
    save: str
    restore: str


def find_tools(version: int) -> Tools | None:
    """The variant that Kubernetes uses on this node: the legacy one if that has Kubernetes's chains, else the nft one.

    Without the nft one, the programs without a suffix; None if those are not installed either.
    """
    name = "iptables" if version == 4 else "ip6tables"
    legacy = _tools(version, f"{name}-legacy")
    if legacy is not None and _legacy_tables(version) and _is_of_kubernetes(legacy):
        return legacy
    return _tools(version, f"{name}-nft") or _tools(version, name)


def find_all_tools(network: HostNetwork) -> tuple[Tools, ...]:
    """The programs for each IP version of the listen addresses. Raises HostNetworkError if one is missing."""
    found: list[Tools] = []
    for version in sorted({address.version for address in network.local_addresses}):
        tools = find_tools(version)
        if tools is None:
            raise HostNetworkError(ErrorKind.IPTABLES, f"no iptables for IPv{version} on this machine")
        found.append(tools)
    return tuple(found)


def iptables_works(network: HostNetwork) -> bool:
    """Whether iptables works here for each IP version of the listen addresses.

    Raises HostNetworkError if only the permission is missing.
    """
    try:
        for tools in find_all_tools(network):
            read_table(tools, IptablesTable.RAW)
    except HostNetworkError as problem:
        if problem.kind is ErrorKind.PERMISSION:
            raise
        return False
    return True


def ensure_redirect(network: HostNetwork, all_tools: Sequence[Tools], on: bool) -> bool:
    """Bring the raw table to the desired state, in one transaction per IP version. Returns whether it changed.

    `all_tools`: by `find_all_tools`. `on`: with the rules that send queries here; else only those for replies. Raises
    HostNetworkError.
    """
    return any([_ensure(network, tools, IptablesTable.RAW, on) for tools in all_tools])


def switch_off(network: HostNetwork, all_tools: Sequence[Tools]) -> list[str]:
    """Stop redirecting queries here, even if another process holds the xtables lock. Returns failures, a line each."""
    failed: list[str] = []
    for tools in all_tools:
        text = redirect_text(network, tools.version, False)
        try:
            _restore_in_any_case(tools, text)
        except HostNetworkError as problem:
            failed.append(f"table {IptablesTable.RAW} of IPv{tools.version}: {problem.text}")
    return failed


def _restore_in_any_case(tools: Tools, text: str) -> None:
    try:
        _restore(tools, text)
    except HostNetworkError as problem:
        if problem.kind is not ErrorKind.IPTABLES_LOCK:
            raise
        _restore(tools, text, WITHOUT_LOCK)


def ensure_accepted(network: HostNetwork, all_tools: Sequence[Tools]) -> bool:
    """Add ACCEPT rules for DNS if the filter table has rules or a policy that may drop it. Returns whether it changed.

    `all_tools`: by `find_all_tools`. Raises HostNetworkError.
    """
    return any([_ensure(network, tools, IptablesTable.FILTER, True) for tools in all_tools])


def _ensure(network: HostNetwork, tools: Tools, table: IptablesTable, on: bool) -> bool:
    saved = read_table(tools, table)
    if table is IptablesTable.FILTER and is_open(saved):
        return False
    text = repair_text(network, tools.version, saved, table, on)
    if text:
        _restore(tools, text)
    return bool(text)


def clear_raw_table(network: HostNetwork, all_tools: Sequence[Tools]) -> None:
    """Remove our chains and the leftovers of a NodeLocal DNSCache from the raw table. Raises HostNetworkError."""
    for tools in all_tools:
        if text := removal_text(network, read_table(tools, IptablesTable.RAW), IptablesTable.RAW):
            _restore(tools, text)


def remove_chains(network: HostNetwork, all_tools: Sequence[Tools], deadline: float) -> list[str]:
    """Remove our chains from all tables; a table not begun by `deadline` (time.monotonic) is left behind.

    The raw table, which redirects queries, comes first and is written even without the xtables lock. Returns one line
    for each table that was left behind.
    """
    left: list[str] = []
    locked = False
    for table in IptablesTable:
        for tools in all_tools:
            try:
                locked = _remove_table(network, tools, table, locked, deadline) or locked
            except HostNetworkError as problem:
                left.append(f"table {table} of IPv{tools.version}: {problem.text}")
    return left


def _remove_table(network: HostNetwork, tools: Tools, table: IptablesTable, locked: bool, deadline: float) -> bool:
    """Remove our chains from one table. `locked` and the result: another process holds the xtables lock.

    Raises HostNetworkError if the table was left as it was.
    """
    text = removal_text(network, read_table(tools, table), table)
    if not text:
        return locked
    if time.monotonic() > deadline:
        raise HostNetworkError(ErrorKind.IPTABLES, "no time left")
    if not locked:
        try:
            _restore(tools, text)
        except HostNetworkError as problem:
            if problem.kind is not ErrorKind.IPTABLES_LOCK:
                raise
        else:
            return False
    if table is not IptablesTable.RAW:
        raise HostNetworkError(ErrorKind.IPTABLES_LOCK, "another process holds the lock of iptables")
    _restore(tools, text, WITHOUT_LOCK)
    return True


def has_chains(tools: Tools) -> bool:
    """Whether the raw table has chains of ours; True if it cannot be read."""
    try:
        saved = read_table(tools, IptablesTable.RAW)
    except HostNetworkError:
        return True
    return saved is not None and any(chain_of(hook) in saved.policies for hook in HOOKS[IptablesTable.RAW])


def read_table(tools: Tools, table: IptablesTable) -> SavedTable | None:
    """The current contents of a table; None if iptables-save prints none, e.g. before its first rule.

    Raises HostNetworkError.
    """
    saved = run((tools.save, "-t", table))
    if saved.status != 0:
        raise _error(tools.save, saved)
    return parse_save(saved.output).get(table)


def _restore(tools: Tools, text: str, extra: dict[str, str] | None = None) -> None:
    done = run((tools.restore, "--noflush", "-w", str(LOCK_PATIENCE)), text, extra=extra)
    if done.status != 0:
        raise _error(tools.restore, done)


def _tools(version: int, name: str) -> Tools | None:
    save, restore = find_program(f"{name}-save"), find_program(f"{name}-restore")
    return Tools(version, save, restore) if save and restore else None


def _legacy_tables(version: int) -> bool:
    """Whether the kernel has legacy tables now. Read from /proc, since running iptables-legacy would create them."""
    with suppress(OSError):
        return bool(_LEGACY_TABLES[version].read_text().strip())
    return False


def _is_of_kubernetes(tools: Tools) -> bool:
    saved = run((tools.save, "-t", "mangle")).output
    return any(f":{chain} " in saved for chain in _KUBERNETES_CHAINS)


def _error(program: str, result: ProgramResult) -> HostNetworkError:
    name = program.rpartition("/")[2]
    if any(sign in result.error for sign in _LOCKED):
        return HostNetworkError(ErrorKind.IPTABLES_LOCK, f"{name}: another process holds the lock of iptables")
    if "Permission denied" in result.error or "Operation not permitted" in result.error:
        return not_permitted(name)
    return HostNetworkError(ErrorKind.IPTABLES, f"{name}: {result.error}")
