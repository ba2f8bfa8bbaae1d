"""Our nftables table, managed through the program nft, and the keepalive datagrams that keep its redirect on."""

import errno
import secrets
import socket

from topodns.hostnet.commands import ErrorKind, HostNetworkError, ProgramResult, find_program, not_permitted, run
from topodns.hostnet.nftables_ruleset import (
    FAMILY,
    KEY_LENGTH,
    TABLE,
    FoundTable,
    KeepaliveAction,
    parse_table,
    payload,
    removal_text,
    switch_off_text,
    table_text,
    trial_text,
)
from topodns.hostnet.rules import HostNetwork
from topodns.netlink.route import IPAddress


class RuleKeepalive:
    """Sends keepalive datagrams to the listen addresses; they match rules of the table with this key. Never blocks.

    A matching rule drops the datagram, which `sendto` reports as EPERM: the proof that the rule exists.
    """

    def __init__(self, network: HostNetwork, key: bytes) -> None:
        self._destinations = {address: (str(address), network.port) for address in network.local_addresses}
        self._payloads = {action: payload(key, action) for action in KeepaliveAction}
        self._socks: dict[int, socket.socket] = {}

    def renew(self) -> bool:
        """Redirect all listen addresses for REDIRECT_SECONDS from now. Returns whether the rules exist for all."""
        return all([self._send(KeepaliveAction.RENEW, address) for address in self._destinations])

    def expire(self) -> bool:
        """Stop redirecting all listen addresses, within 20 ms. Returns whether the rules exist for all."""
        return all([self._send(KeepaliveAction.EXPIRE, address) for address in self._destinations])

    def rules_exist(self) -> bool:
        """Whether the rules exist, as shown by a keepalive to the first address that changes nothing."""
        return self._send(KeepaliveAction.CHECK, next(iter(self._destinations)))

    def close(self) -> None:
        while self._socks:
            self._socks.popitem()[1].close()

    def _send(self, action: KeepaliveAction, address: IPAddress) -> bool:
        try:
            self._sock(address.version).sendto(self._payloads[action], self._destinations[address])
        except OSError as refusal:
            return refusal.errno == errno.EPERM
        return False

    def _sock(self, version: int) -> socket.socket:
        sock = self._socks.get(version)
        if sock is None:
            sock = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
            sock.setblocking(False)
            self._socks[version] = sock
        return sock


_ABSENT = "No such file or directory"  # nft's message for a missing table
_REFUSED = "Operation not permitted"


def nftables_works(network: HostNetwork) -> bool:
    """Whether nft and the kernel support our table. Raises HostNetworkError if only the permission is missing."""
    program = find_program("nft")
    if program is None:
        return False
    tried = run((program, "-f", "-"), trial_text(network))
    if _REFUSED in tried.error:
        raise _error("nft -f", tried)
    return tried.status == 0 and run((program, "-j", "list", "tables")).status == 0  # nft may be built without JSON


def ensure_table(network: HostNetwork) -> tuple[bytes, bool]:
    """Bring the table to the desired state in one transaction. Returns its key, and whether it changed.

    The key of an existing table is kept: another instance may be sending keepalives with it. Raises HostNetworkError.
    """
    found = read_table()
    key = (found and found.key) or secrets.token_bytes(KEY_LENGTH)
    text = table_text(network, key, found)
    if text:
        _apply(text)
    return key, bool(text)


def switch_off() -> None:
    """Stop redirecting queries here, before this returns. Raises HostNetworkError, also if there is no table."""
    _apply(switch_off_text())


def remove_table() -> None:
    """Remove the table if it exists. Raises HostNetworkError."""
    _apply(removal_text())


def read_table() -> FoundTable | None:
    """The current table; None if there is none. Raises HostNetworkError."""
    listed = run((_nft(), "-j", "list", "table", FAMILY, TABLE))
    if listed.status == 0:
        try:
            return parse_table(listed.output)
        except (ValueError, KeyError, TypeError) as problem:
            raise HostNetworkError(ErrorKind.NFTABLES, f"nft -j list table: no listing: {problem!r}") from problem
    if _ABSENT in listed.error:
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


def _error(what: str, result: ProgramResult) -> HostNetworkError:
    if _REFUSED in result.error:
        return not_permitted(what)
    return HostNetworkError(ErrorKind.NFTABLES, f"{what}: {result.error}")
