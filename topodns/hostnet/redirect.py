"""The rules that pull DNS to us, in the firewall that is used, and the switch that they are.

A switch that is not renewed for SWITCH_SECONDS is off, and the cluster DNS behind the same address is asked instead.
What is named `ensure_` or `remove` runs programs and waits for them; everything else never waits.
"""

import errno
import logging
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from topodns.edge.host_network import iptables, nftables
from topodns.edge.host_network.beat import Beat
from topodns.edge.host_network.errors import ErrorKind, HostNetworkError
from topodns.edge.host_network.plan import HostNetwork
from topodns.edge.host_network.programs import find_program
from topodns.edge.host_network.supervisor import EXPIRE, LEAVE, RENEW, SILENCE
from topodns.settings.node_cache import Firewall

log = logging.getLogger(__name__)


class Switch(Protocol):
    """The rules of one firewall."""

    def renew(self) -> bool:
        """On for all listen addresses, for a while. Returns whether the rules are there, as far as can be told."""

    def expire(self) -> bool:
        """Off for all, now."""

    def present(self) -> bool:
        """Whether the rules are there, as far as can be told at once."""

    def ensure_rules(self) -> bool:
        """Make the rules what is wished. Returns whether anything had to be done. Raises HostNetworkError."""

    def ensure_beside(self) -> bool:
        """The same for what is no part of the switch: that DNS is accepted, and nothing old is left behind."""

    def hand_over(self) -> None:
        """Another instance renews from now on: nothing is switched off when this one ends."""

    def close(self) -> None:
        """No more calls will come."""

    def release(self) -> list[str]:
        """Off for good, while answers are still on their way; `remove` comes next. Returns what failed."""

    def remove(self, deadline: float) -> list[str]:
        """Take everything away, the switch first, until `deadline` (time.monotonic). Returns what was left behind."""


def choose_firewall(network: HostNetwork) -> Firewall:
    """What `network.firewall` comes to on this machine; runs programs. Raises HostNetworkError where it has none."""
    match network.firewall:
        case Firewall.AUTO:
            if nftables.nftables_works(network):
                return Firewall.NFTABLES
            if iptables.iptables_works(network):
                return Firewall.IPTABLES
            problem = "neither nft nor iptables can set rules here (-firewall none does without)"
            raise HostNetworkError(ErrorKind.FIREWALL, problem)
        case Firewall.NFTABLES if not nftables.nftables_works(network):
            raise HostNetworkError(ErrorKind.NFTABLES, "-firewall nftables: nft cannot set rules here")
        case Firewall.IPTABLES if not iptables.iptables_works(network):
            raise HostNetworkError(ErrorKind.IPTABLES, "-firewall iptables: iptables cannot set rules here")
    return network.firewall


def make_switch(network: HostNetwork, firewall: Firewall, heartbeat: int | None, beside: bool = False) -> Switch:
    """The switch of a chosen firewall; may run programs. Raises HostNetworkError.

    `heartbeat` is the pipe to a supervisor, which only iptables needs. `beside`: another instance holds it on now.
    """
    if firewall is Firewall.NFTABLES:
        return NftablesSwitch(network)
    if firewall is Firewall.IPTABLES:
        return IptablesSwitch(network, heartbeat, beside)
    return NoSwitch()


class NftablesSwitch:
    """The kernel forgets what is not renewed."""

    def __init__(self, network: HostNetwork) -> None:
        self._network = network
        self._key = b""
        self._beat: Beat | None = None
        self._tools: Sequence[iptables.Tools] = ()  # none where this machine does without
        with suppress(HostNetworkError):
            self._tools = iptables.find_all_tools(network)

    def renew(self) -> bool:
        return self._beat is not None and self._beat.renew()

    def expire(self) -> bool:
        return self._beat is not None and self._beat.expire()

    def present(self) -> bool:
        return self._beat is not None and self._beat.knock()

    def ensure_rules(self) -> bool:
        key, changed = nftables.ensure_table(self._network)
        if key != self._key:
            self.close()
            self._key, self._beat = key, Beat(self._network, key)
        return changed

    def ensure_beside(self) -> bool:
        iptables.empty_raw(self._network, self._tools)
        return iptables.ensure_accepted(self._network, self._tools)

    def hand_over(self) -> None:
        """The other one found the key in the table."""

    def close(self) -> None:
        if self._beat is not None:
            self._beat.close()
            self._beat, self._key = None, b""

    def release(self) -> list[str]:
        if not self.expire():
            return []  # the rules are not there, so nothing leads here
        try:
            nftables.switch_off()  # what expires does so in a moment, and sockets may be closed before
        except HostNetworkError as problem:
            return [problem.text]
        return []

    def remove(self, deadline: float) -> list[str]:
        self.close()
        left: list[str] = []
        try:
            nftables.remove_table()
        except HostNetworkError as problem:  # nothing renews it any more, so it lets go of the traffic all the same
            left.append(problem.text)
        return left + iptables.remove_chains(self._network, self._tools, deadline)


class IptablesSwitch:
    """A supervisor throws it when nothing is heard, where there is one; without, nobody does when this process dies."""

    def __init__(self, network: HostNetwork, heartbeat: int | None, beside: bool) -> None:
        self._network, self._heartbeat = network, heartbeat
        self._tools = iptables.find_all_tools(network)
        # What the other one holds on stays on until it is ours to renew.
        self._renewed: float | None = time.monotonic() if beside else None
        self._position = False  # as it was set last by ourselves
        if heartbeat is not None:
            os.set_blocking(heartbeat, False)
            os.set_inheritable(heartbeat, False)

    def renew(self) -> bool:
        self._renewed = time.monotonic()
        self._say(RENEW)
        return self.present()

    def expire(self) -> bool:
        self._renewed = None
        self._say(EXPIRE)
        return self.present()

    def present(self) -> bool:
        return self._heartbeat is not None or self._wished() == self._position

    def ensure_rules(self) -> bool:
        before, self._position = self._position, self._wished()
        changed = iptables.ensure_switch(self._network, self._tools, self._position)
        return changed and before == self._position  # throwing the switch is no repair

    def ensure_beside(self) -> bool:
        if find_program("nft") is not None:
            with suppress(HostNetworkError):  # it was not used last time either, or it expired long ago
                if nftables.read_table() is not None:
                    nftables.remove_table()
        return iptables.ensure_accepted(self._network, self._tools)

    def hand_over(self) -> None:
        self._say(LEAVE)

    def close(self) -> None:
        """The supervisor hears the end of this process."""

    def release(self) -> list[str]:
        failed = iptables.switch_off(self._network, self._tools)
        self._say(LEAVE)  # only now: until then a supervisor has to do it where this process cannot any more
        return failed

    def remove(self, deadline: float) -> list[str]:
        self._say(LEAVE)
        return iptables.remove_chains(self._network, self._tools, deadline)

    def _wished(self) -> bool:
        return self._renewed is not None and time.monotonic() - self._renewed < SILENCE

    def _say(self, octet: bytes) -> None:
        if self._heartbeat is None:
            return
        try:
            os.write(self._heartbeat, octet)
        except OSError as problem:
            if problem.errno != errno.EAGAIN:  # a full pipe is a supervisor that has enough to read
                self._heartbeat = None
                log.error(
                    "the supervisor is gone: when this process dies, its rules will stay until it is started anew"
                )


class NoSwitch:
    """`-firewall none`: whoever set the rules answers for them."""

    def renew(self) -> bool:
        return True

    def expire(self) -> bool:
        return True

    def present(self) -> bool:
        return True

    def ensure_rules(self) -> bool:
        return False

    def ensure_beside(self) -> bool:
        return False

    def hand_over(self) -> None:
        """Nothing is."""

    def close(self) -> None:
        """Nothing is open."""

    def release(self) -> list[str]:
        return []

    def remove(self, deadline: float) -> list[str]:
        return []
