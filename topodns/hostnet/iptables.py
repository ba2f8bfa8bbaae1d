"""Our chains of iptables and ip6tables, through iptables-save and iptables-restore.

A machine may have two kinds of them, whose rules do not know each other: the one that Kubernetes uses here is ours
too (the chains by which KEP-3178 lets others tell).
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from topodns.edge.host_network.errors import ErrorKind, HostNetworkError
from topodns.edge.host_network.iptables_text import (
    SavedTable,
    is_open,
    parse_save,
    removal_text,
    repair_text,
    switch_text,
)
from topodns.edge.host_network.plan import HostNetwork, Table
from topodns.edge.host_network.programs import Finished, find_program, run

LOCK_PATIENCE: Final = 1  # seconds that somebody else may hold the lock, and whole ones, as old versions want them
# The lock is a file that writers agree on. Where it is held for too long while we stop, a rule of ours that stays would
# cut this node off from DNS (kubernetes/dns#453), so the table raw is written without it; few others write that table.
PAST_THE_LOCK: Final = {"XTABLES_LOCKFILE": "/dev/null"}

_LOCKED: Final = ("xtables lock", "xtables.lock")  # in the complaint of either kind
_KUBERNETES_CHAINS: Final = ("KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY")
_LEGACY_TABLES: Final = {4: Path("/proc/net/ip_tables_names"), 6: Path("/proc/net/ip6_tables_names")}


class Tools(NamedTuple):
    """The programs for one IP version, by absolute path."""

    version: int
    save: str
    restore: str


def find_tools(version: int) -> Tools | None:
    """The programs by which Kubernetes sets its rules here, the newer ones in doubt; None: this machine has none."""
    name = "iptables" if version == 4 else "ip6tables"
    legacy = _tools(version, f"{name}-legacy")
    if legacy is not None and _legacy_tables(version) and _is_of_kubernetes(legacy):
        return legacy
    return _tools(version, f"{name}-nft") or _tools(version, name)


def find_all_tools(network: HostNetwork) -> tuple[Tools, ...]:
    """Those for each IP version of the listen addresses. Raises HostNetworkError where one has none."""
    found: list[Tools] = []
    for version in sorted({address.version for address in network.local_addresses}):
        tools = find_tools(version)
        if tools is None:
            raise HostNetworkError(ErrorKind.IPTABLES, f"no iptables for IPv{version} on this machine")
        found.append(tools)
    return tuple(found)


def iptables_works(network: HostNetwork) -> bool:
    """Whether rules can be set with iptables here, for each IP version that is needed.

    Raises HostNetworkError where only the permission is missing.
    """
    try:
        for tools in find_all_tools(network):
            read_table(tools, Table.RAW)
    except HostNetworkError as problem:
        if problem.kind is ErrorKind.PERMISSION:
            raise
        return False
    return True


def ensure_switch(network: HostNetwork, all_tools: Sequence[Tools], on: bool) -> bool:
    """Make the table raw what is wished, in one transaction for each IP version. Returns whether that was needed.

    Raises HostNetworkError.
    """
    return any([_ensure(network, tools, Table.RAW, on) for tools in all_tools])


def switch_off(network: HostNetwork, all_tools: Sequence[Tools]) -> list[str]:
    """Lead nothing here any more, whoever holds the lock of iptables. Returns what failed, one line for each."""
    failed: list[str] = []
    for tools in all_tools:
        text = switch_text(network, tools.version, False)
        try:
            _restore_in_any_case(tools, text)
        except HostNetworkError as problem:
            failed.append(f"table {Table.RAW} of IPv{tools.version}: {problem.text}")
    return failed


def _restore_in_any_case(tools: Tools, text: str) -> None:
    try:
        _restore(tools, text)
    except HostNetworkError as problem:
        if problem.kind is not ErrorKind.IPTABLES_LOCK:
            raise
        _restore(tools, text, PAST_THE_LOCK)


def ensure_accepted(network: HostNetwork, all_tools: Sequence[Tools]) -> bool:
    """Have DNS accepted where somebody else's filter table may drop it. Returns whether anything had to be done.

    Raises HostNetworkError.
    """
    return any([_ensure(network, tools, Table.FILTER, True) for tools in all_tools])


def _ensure(network: HostNetwork, tools: Tools, table: Table, on: bool) -> bool:
    saved = read_table(tools, table)
    if table is Table.FILTER and is_open(saved):
        return False
    text = repair_text(network, tools.version, saved, table, on)
    if text:
        _restore(tools, text)
    return bool(text)


def empty_raw(network: HostNetwork, all_tools: Sequence[Tools]) -> None:
    """Take away all of ours, and what a NodeLocal DNSCache left behind, from the table raw. Raises HostNetworkError."""
    for tools in all_tools:
        if text := removal_text(network, read_table(tools, Table.RAW), Table.RAW):
            _restore(tools, text)


def remove_chains(network: HostNetwork, all_tools: Sequence[Tools], deadline: float) -> list[str]:
    """Take away all of ours, the switch first and that in any case; give up at `deadline` (time.monotonic).

    Returns what was left behind, one line for each.
    """
    left: list[str] = []
    locked = False
    for table in Table:
        for tools in all_tools:
            try:
                locked = _remove_table(network, tools, table, locked, deadline) or locked
            except HostNetworkError as problem:
                left.append(f"table {table} of IPv{tools.version}: {problem.text}")
    return left


def _remove_table(network: HostNetwork, tools: Tools, table: Table, locked: bool, deadline: float) -> bool:
    """Returns whether somebody else holds the lock. Raises HostNetworkError for what stays."""
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
    if table is not Table.RAW:
        raise HostNetworkError(ErrorKind.IPTABLES_LOCK, "somebody else holds the lock of iptables")
    _restore(tools, text, PAST_THE_LOCK)
    return True


def read_table(tools: Tools, table: Table) -> SavedTable | None:
    """The table as it is now; None where the kernel has none. Raises HostNetworkError."""
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
    """Whether the kernel has tables of the older kind now; asking the program would make them."""
    with suppress(OSError):
        return bool(_LEGACY_TABLES[version].read_text().strip())
    return False


def _is_of_kubernetes(tools: Tools) -> bool:
    saved = run((tools.save, "-t", "mangle")).output
    return any(f":{chain} " in saved for chain in _KUBERNETES_CHAINS)


def _error(program: str, finished: Finished) -> HostNetworkError:
    name = program.rpartition("/")[2]
    if any(sign in finished.complaint for sign in _LOCKED):
        return HostNetworkError(ErrorKind.IPTABLES_LOCK, f"{name}: somebody else holds the lock of iptables")
    if "Permission denied" in finished.complaint or "Operation not permitted" in finished.complaint:
        return HostNetworkError(ErrorKind.PERMISSION, f"{name}: CAP_NET_ADMIN is missing")
    return HostNetworkError(ErrorKind.IPTABLES, f"{name}: {finished.complaint}")
