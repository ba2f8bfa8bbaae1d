"""The redirect of DNS traffic to this process, for nftables, iptables or no firewall.

The redirect expires unless it is renewed: with nftables REDIRECT_SECONDS after the last renewal, with iptables after
KEEPALIVE_TIMEOUT (see `IptablesRedirect`). Clients then reach the cluster DNS behind the same address.

`ensure_*`, `release` and `remove` run programs and block; all other methods never block.
"""

import errno
import logging
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from topodns.hostnet import iptables, nftables
from topodns.hostnet.commands import HostNetworkError, find_program
from topodns.hostnet.nftables import RuleKeepalive
from topodns.hostnet.rules import Firewall, HostNetwork, choose_firewall
from topodns.hostnet.watchdog import EXPIRE, KEEPALIVE_TIMEOUT, LEAVE, RENEW

log = logging.getLogger(__name__)


class Redirect(Protocol):
    """The redirect rules of one firewall."""

    def renew(self) -> bool:
        """Redirect all listen addresses until that expires. Returns whether the rules are in place, as `present`."""

    def expire(self) -> bool:
        """Stop redirecting all listen addresses now. Returns whether the rules are in place, as `present`."""

    def present(self) -> bool:
        """Whether the rules are in place, as far as is known without running a program; else `ensure_rules` is due.

        iptables without a watchdog: also False while the redirect is to be switched on or off by `ensure_rules`.
        """

    def ensure_rules(self) -> bool:
        """Bring the rules to the desired state. Returns whether they were missing or changed by another program.

        Switching on or off is no such change. Raises HostNetworkError.
        """

    def ensure_accept_rules(self) -> bool:
        """Make sure that the filter table accepts DNS, and remove leftovers of firewalls that are not in use.

        Returns whether rules of the filter table changed. Raises HostNetworkError.
        """

    def hand_over(self) -> None:
        """Leave the redirect to another instance, which renews it from now on; it stays on when this process ends."""

    def close(self) -> None:
        """Close sockets. Only `remove` may follow."""

    def release(self) -> list[str]:
        """Stop the redirect for good; replies in flight still leave. Call `remove` next.

        Returns failures, a line each.
        """

    def remove(self, deadline: float) -> list[str]:
        """Remove all rules, the redirect first; iptables rules not removed by `deadline` (time.monotonic) may stay.

        Returns leftovers, a line each.
        """


def find_firewall(network: HostNetwork) -> Firewall:
    """The firewall to use on this node, by `choose_firewall`, with its errors. Runs programs."""
    return choose_firewall(
        network.firewall,
        nftables_works=partial(nftables.nftables_works, network),
        iptables_works=partial(iptables.iptables_works, network),
    )


def make_redirect(
    network: HostNetwork, firewall: Firewall, heartbeat: int | None, already_on: bool = False
) -> Redirect:
    """The redirect for a chosen firewall; may run programs. Raises HostNetworkError.

    `heartbeat`: pipe to the watchdog, which only iptables needs. `already_on`: another instance keeps the redirect on.
    """
    if firewall is Firewall.NFTABLES:
        return NftablesRedirect(network)
    if firewall is Firewall.IPTABLES:
        return IptablesRedirect(network, heartbeat, already_on)
    return NoRedirect()


class NftablesRedirect:
    """Redirect by nftables: the kernel lets the set elements expire unless keepalive datagrams renew them."""

    def __init__(self, network: HostNetwork) -> None:
        self._network = network
        self._key = b""
        self._keepalive: RuleKeepalive | None = None
        self._tools: Sequence[iptables.Tools] = ()  # none if iptables is not installed
        with suppress(HostNetworkError):
            self._tools = iptables.find_all_tools(network)

    def renew(self) -> bool:
        return self._keepalive is not None and self._keepalive.renew()

    def expire(self) -> bool:
        return self._keepalive is not None and self._keepalive.expire()

    def present(self) -> bool:
        return self._keepalive is not None and self._keepalive.rules_exist()

    def ensure_rules(self) -> bool:
        key, changed = nftables.ensure_table(self._network)
        if key != self._key:
            self.close()
            self._key, self._keepalive = key, RuleKeepalive(self._network, key)
        return changed

    def ensure_accept_rules(self) -> bool:
        iptables.clear_raw_table(self._network, self._tools)
        return iptables.ensure_accepted(self._network, self._tools)

    def hand_over(self) -> None:
        """Do nothing: the other instance has the key from the table."""

    def close(self) -> None:
        if self._keepalive is not None:
            self._keepalive.close()
            self._keepalive, self._key = None, b""

    def release(self) -> list[str]:
        if not self.expire():
            return []  # the rules do not exist, so nothing is redirected
        try:
            nftables.switch_off()  # elements take 20 ms to expire, and sockets may be closed before
        except HostNetworkError as problem:
            return [problem.text]
        return []

    def remove(self, deadline: float) -> list[str]:
        self.close()
        left: list[str] = []
        try:
            nftables.remove_table()
        except HostNetworkError as problem:  # nothing renews the elements any more, so they expire all the same
            left.append(problem.text)
        return left + iptables.remove_chains(self._network, self._tools, deadline)


class IptablesRedirect:
    """Redirect by iptables: the watchdog switches it off KEEPALIVE_TIMEOUT seconds after the last keepalive.

    Without a watchdog the next `ensure_rules` after that time does so, and it stays on when this process dies.
    """

    def __init__(self, network: HostNetwork, heartbeat: int | None, already_on: bool) -> None:
        self._network, self._heartbeat = network, heartbeat
        self._tools = iptables.find_all_tools(network)
        # A redirect that another instance keeps on stays on until our first renewal is due.
        self._renewed: float | None = time.monotonic() if already_on else None
        self._on = False  # on or off, as set last by this process
        if heartbeat is not None:
            os.set_blocking(heartbeat, False)
            os.set_inheritable(heartbeat, False)

    def renew(self) -> bool:
        self._renewed = time.monotonic()
        self._send(RENEW)
        return self.present()

    def expire(self) -> bool:
        self._renewed = None
        self._send(EXPIRE)
        return self.present()

    def present(self) -> bool:
        return self._heartbeat is not None or self._desired() == self._on

    def ensure_rules(self) -> bool:
        before, self._on = self._on, self._desired()
        changed = iptables.ensure_redirect(self._network, self._tools, self._on)
        return changed and before == self._on  # switching on or off is no repair

    def ensure_accept_rules(self) -> bool:
        _remove_unused_table()
        return iptables.ensure_accepted(self._network, self._tools)

    def hand_over(self) -> None:
        self._send(LEAVE)

    def close(self) -> None:
        """Do nothing: the watchdog notices the end of this process."""

    def release(self) -> list[str]:
        failed = iptables.switch_off(self._network, self._tools)
        self._send(LEAVE)  # only now: if this process had died before, the watchdog would have had to switch off
        return failed

    def remove(self, deadline: float) -> list[str]:
        self._send(LEAVE)
        left = iptables.remove_chains(self._network, self._tools, deadline)
        _remove_unused_table()
        return left

    def _desired(self) -> bool:
        return self._renewed is not None and time.monotonic() - self._renewed < KEEPALIVE_TIMEOUT

    def _send(self, octet: bytes) -> None:
        if self._heartbeat is None:
            return
        try:
            os.write(self._heartbeat, octet)
        except OSError as problem:
            if problem.errno != errno.EAGAIN:  # EAGAIN: the pipe is full, so the watchdog has unread keepalives
                self._heartbeat = None
                log.error("the watchdog is gone: when this process dies, its rules stay until it is started again")


def _remove_unused_table() -> None:
    """Remove the nftables table of an earlier process that used nftables; its redirect has expired long ago."""
    if find_program("nft") is not None:
        with suppress(HostNetworkError):
            if nftables.read_table() is not None:
                nftables.remove_table()


class NoRedirect:
    """No redirect (`-firewall none`): the rules, if any, are managed outside this program."""

    def renew(self) -> bool:
        return True

    def expire(self) -> bool:
        return True

    def present(self) -> bool:
        return True

    def ensure_rules(self) -> bool:
        return False

    def ensure_accept_rules(self) -> bool:
        return False

    def hand_over(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing: no socket is open."""

    def release(self) -> list[str]:
        return []

    def remove(self, deadline: float) -> list[str]:
        return []
