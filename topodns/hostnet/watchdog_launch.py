"""Restarts the node cache as the child of a watchdog process, for iptables only."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from topodns.hostnet import watchdog
from topodns.hostnet.instances import any_instance_serves
from topodns.hostnet.iptables import Tools, find_all_tools, has_chains
from topodns.hostnet.iptables_ruleset import redirect_text
from topodns.hostnet.rules import HostNetwork


def run_under_watchdog(network: HostNetwork, command: Sequence[str]) -> NoReturn:
    """Replace this process (execv) by the watchdog, which starts `command`: an absolute path and arguments.

    The command gets its keepalive pipe from `heartbeat_fd`. Call this early: only the process id is kept. Raises
    HostNetworkError if there is no iptables.
    """
    tools = find_all_tools(network)
    left_behind = any(map(has_chains, tools)) and not any_instance_serves(network.interface)
    settings = watchdog_input(network, tools, left_behind)
    descriptor = os.memfd_create("orders", flags=0)  # no MFD_CLOEXEC: the watchdog inherits it
    os.write(descriptor, settings)
    os.lseek(descriptor, 0, os.SEEK_SET)
    # -I -S: without site-packages and their .pth files, which would double its memory.
    os.execv(sys.executable, (sys.executable, "-I", "-S", watchdog.__file__, str(descriptor), *command))


def heartbeat_fd() -> int | None:
    """The descriptor to write keepalives to, for `HostNetworkReconciler`; None if this process has no watchdog."""
    number = os.environ.get(watchdog.HEARTBEAT_VARIABLE, "")
    return int(number) if number.isdecimal() else None


def watchdog_input(network: HostNetwork, tools: Sequence[Tools], left_behind: bool) -> bytes:
    """The watchdog's input, NUL-separated: "unknown" or "off" for the redirect at its start, then for each IP version
    the path of iptables-restore and its input for on and for off.

    `left_behind`: there are rules of a dead instance and no other instance uses them, so the watchdog switches them off
    ("unknown").
    """
    fields = ["unknown" if left_behind else "off"]
    for each in tools:
        fields += [each.restore, *(redirect_text(network, each.version, on) for on in (True, False))]
    return "\0".join(fields).encode()
