"""Puts this process under a `supervisor`, where the firewall is iptables."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from topodns.edge.host_network import supervisor
from topodns.edge.host_network.iptables import Tools, find_all_tools
from topodns.edge.host_network.iptables_text import switch_text
from topodns.edge.host_network.plan import HostNetwork
from topodns.edge.host_network.presence import others_serve


def run_supervised(network: HostNetwork, command: Sequence[str]) -> NoReturn:
    """Become the supervisor of `command`, which is started anew: an absolute path, and arguments.

    It finds its pipe to the supervisor with `heartbeat_fd`. Call it early: nothing of this process stays but its id.
    Raises HostNetworkError where there is no iptables.
    """
    orders = write_orders(network, find_all_tools(network), alone=not others_serve(network.interface))
    given = os.memfd_create("orders", flags=0)  # to be inherited
    os.write(given, orders)
    os.lseek(given, 0, os.SEEK_SET)
    # -I -S: without site-packages and their start-up files, which double its memory.
    os.execv(sys.executable, (sys.executable, "-I", "-S", supervisor.__file__, str(given), *command))


def heartbeat_fd() -> int | None:
    """The descriptor to give the keeper; None where no supervisor listens."""
    number = os.environ.get(supervisor.HEARTBEAT_VARIABLE, "")
    return int(number) if number.isdecimal() else None


def write_orders(network: HostNetwork, tools: Sequence[Tools], alone: bool) -> bytes:
    """What the supervisor reads: the position of the switch at its start, then program, on, off for each IP version.

    `alone` says that no other instance uses the rules: what a dead one left behind is switched off.
    """
    fields = ["unknown" if alone else "off"]
    for each in tools:
        fields += [each.restore, *(switch_text(network, each.version, on) for on in (True, False))]
    return "\0".join(fields).encode()
