"""Our table of nftables, through the program nft."""

import secrets

from topodns.edge.host_network.errors import ErrorKind, HostNetworkError
from topodns.edge.host_network.nftables_text import (
    FAMILY,
    KEY_LENGTH,
    TABLE,
    FoundTable,
    parse_table,
    removal_text,
    switch_off_text,
    table_text,
    trial_text,
)
from topodns.edge.host_network.plan import HostNetwork
from topodns.edge.host_network.programs import Finished, find_program, run

_ABSENT = "No such file or directory"  # what nft says of a table that is not there
_REFUSED = "Operation not permitted"


def nftables_works(network: HostNetwork) -> bool:
    """Whether the table can be had here. Raises HostNetworkError where only the permission is missing."""
    program = find_program("nft")
    if program is None:
        return False
    tried = run((program, "-f", "-"), trial_text(network))
    if _REFUSED in tried.complaint:
        raise _error("nft -f", tried)
    return tried.status == 0 and run((program, "-j", "list", "tables")).status == 0  # JSON may be left out


def ensure_table(network: HostNetwork) -> tuple[bytes, bool]:
    """Make the table what is wished, in one transaction. Returns its key, and whether anything had to be done.

    The key of a table that is there stays: another instance may be renewing with it. Raises HostNetworkError.
    """
    found = read_table()
    key = (found and found.key) or secrets.token_bytes(KEY_LENGTH)
    text = table_text(network, key, found)
    if text:
        _apply(text)
    return key, bool(text)


def switch_off() -> None:
    """Nothing leads here any more when this returns. Raises HostNetworkError, also where there is no table."""
    _apply(switch_off_text())


def remove_table() -> None:
    """Take the table away, if it is there. Raises HostNetworkError."""
    _apply(removal_text())


def read_table() -> FoundTable | None:
    """The table as it is now; None where there is none. Raises HostNetworkError."""
    listed = run((_nft(), "-j", "list", "table", FAMILY, TABLE))
    if listed.status == 0:
        try:
            return parse_table(listed.output)
        except (ValueError, KeyError, TypeError) as problem:
            raise HostNetworkError(ErrorKind.NFTABLES, f"nft -j list table: no listing: {problem!r}") from problem
    if _ABSENT in listed.complaint:
        return None
    raise _error("nft list table", listed)


def _apply(text: str) -> None:
    done = run((_nft(), "-f", "-"), text)
    if done.status != 0:
        raise _error("nft -f", done)


def _nft() -> str:
    program = find_program("nft")
    if program is None:
        raise HostNetworkError(ErrorKind.NFTABLES, "no program nft on this machine")
    return program


def _error(what: str, finished: Finished) -> HostNetworkError:
    if _REFUSED in finished.complaint:
        return HostNetworkError(ErrorKind.PERMISSION, f"{what}: CAP_NET_ADMIN is missing")
    return HostNetworkError(ErrorKind.NFTABLES, f"{what}: {finished.complaint}")
